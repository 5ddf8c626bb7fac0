package grid

// Input is what a core's Step takes: one of the types below or the core's own.
// Drivers pass pointers to structs they reuse, so a core copies what it keeps.
type Input any

// Tick says that time has passed; the work is whatever is due.
type Tick struct{}

// Delivery is a message from another site. Its sender is authenticated.
type Delivery struct {
	From    SiteID
	Message Message
	Span    uint64 // the sender's of the trace of the job, 0 if it is not traced; drivers only, no core looks at it
}

// Undelivered says that To certainly never saw the message (no connection could
// be made). Silence means nothing: an undeliverable message may also just vanish.
type Undelivered struct {
	To      SiteID
	Message Message
}

// Closest answers EffectClosest: the sites nearest to Key, nearest first, this
// site included if it is one. Peers is empty if the look-up failed.
type Closest struct {
	Key   Key
	Peers []SiteID
}

// Provided answers EffectProvide. Stored is false if no other site has the record.
type Provided struct {
	Key    Key
	Stored bool
}

// Providers answers EffectProviders: sites of which there are provider records under
// Key, in no order, this site not among them, each once, at most ProvidersMax. That one
// has a record says only that it once claimed to provide.
type Providers struct {
	Key   Key
	Peers []SiteID
}

// ProvidersMax bounds the sites of one Providers.
const ProvidersMax = 64

// Probed answers EffectProbe: how long a small message to To and its answer took.
// RoundTrip is -1 if no answer came in time.
type Probed struct {
	To        SiteID
	RoundTrip Time
}

// Parted follows EffectAttend: the connection with a site has ended, or there is none. The
// site may be there all the same.
type Parted struct{ Site SiteID }

// TaskEnded says that an execution and everything it started is gone.
type TaskEnded struct {
	ID     TaskID
	Result Result
	Lost   bool // it vanished without an outcome (its shim or machine died): Result says nothing but perhaps, by its Reason, why
	Lapsed bool // its lease ended (Task.Lease), and so it was ended
}
