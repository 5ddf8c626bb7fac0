// Package keepalive has a job that another site runs end there when its home has heard
// nothing of that site for a while, and tells home from when on nothing of it can be
// alive. An execution is held under a lease (Gray and Cheriton 1989): the executing site
// asks its home to renew it, four times in its span, and four times as often as long as the
// last time is not answered.
//
// # Messages
//
//	executing site           home
//	Renew         ->         what I have of your jobs, and since when it runs
//	              <-         Renewed: these go on; those nobody wants any more
//
// # Who lets go when
//
// A Renew carries the instant at which its sender asked, and the answer carries it back:
// the executing site counts a lease from when it asked, home from when it answered, which
// is later. With lease L, grace G (Grace) and clocks that each gain or lose a thousandth at most:
//
//	executing site, its clock    asked + L           whoever runs the task asks it to stop,
//	                             asked + L + Kill    and kills what has not; Kill is less than G
//	home, its clock              heard + (L+G)·1.002 nothing of it can be alive
//
// The first lease counts from the guarantee, at home from when that arrived. Whoever runs
// the task (a shim, not the daemon) has been told the instant beforehand, so a dead or a
// hanging daemon delays nothing. If the messages of a renewal are lost, the lease ends
// early: that costs time, and is safe.
//
// A Holder is the side of the executing site. Home needs no state but an instant for each
// job (Dead), and one for all that it has said before a restart: now.
package keepalive
