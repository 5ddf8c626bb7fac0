// Package tracing makes one trace of each job, over all sites that it touches, for whoever
// collects them by OpenTelemetry.
//
// The cores know nothing of it. A Tracer looks at what the loop of a node sees anyway: the
// inputs that it takes (Input), what a turn of the site has ordered (Effects), and a few
// things that only the driver or the market knows (Sought, Staged, Ordered, Launched, Over).
//
// The ID of a job is that of its trace, and that of the trace's first span follows from it, so
// that nothing needs to be kept: after a restart the spans of a job of this site go on where
// they belong. What two sites tell each other is the number of one span. A site makes spans of
// another site's job only if it was told one, and only for the trace of that job: whoever sends
// a wrong number spoils his own trace.
//
//	span      made by                    from                            to
//	job       home                       it was submitted                it is over
//	submit    home                       it was submitted                it is durable
//	look-up   home                       the directory is asked          a page of quotes is there
//	ask       home                       a site is asked                 it has answered
//	answer    who is asked               the question came               it is answered; child of ask
//	award     home                       a site is chosen                it has the job
//	queue     who runs it                it is there                     it is to start
//	start     who runs it                it is to start                  it runs; child of award, if it is not home
//	stage     where it runs              what it needs is brought        all of it is there; child of start
//	run       where it runs              it runs                         it has ended; at a lender a child of start
//	end       who runs it                it has ended                    home has the result
//	pay       home; who runs it          a cheque is asked for, shown    the bank has answered
//	bank      the bank                   the question came               it is answered; child of pay
//
// What is over before a span has ended is marked as an error. Spans that are open when a node
// dies are lost.
package tracing
