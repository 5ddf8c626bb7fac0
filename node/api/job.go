package api

// JobSpec is a job, or an array of jobs, as it is submitted.
type JobSpec struct {
	// ID is the job's identity, 26 characters, chosen by the client so that it may
	// repeat a request whose answer was lost; made up here if empty. The jobs of
	// an array get IDs of their own that follow from it.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"` // at most 128 bytes; default: the program's name

	Args []string `json:"args"`          // program and arguments; looked up in PATH where it runs; of a module, its name and arguments
	Env  []string `json:"env,omitempty"` // KEY=VALUE
	Dir  string   `json:"dir,omitempty"` // working directory at home; elsewhere a scratch directory

	Tasks              int64 `json:"tasks,omitempty"`              // default 1
	CPUsPerTask        int64 `json:"cpusPerTask,omitempty"`        // default 1
	Once               bool  `json:"once,omitempty"`               // it is started once, and starts its tasks itself; else once for each of them
	MemoryPerProcessor int64 `json:"memoryPerProcessor,omitempty"` // bytes; 0: any

	Time       Seconds `json:"time,omitempty"`       // bound on the run time; default: job.time of the configuration
	Deadline   Instant `json:"deadline,omitzero"`    // must have ended by then
	DeadlineIn Seconds `json:"deadlineIn,omitempty"` // the same from now; not both
	Budget     *Amount `json:"budget,omitempty"`     // most it may cost
	Policy     string  `json:"policy,omitempty"`     // cheapest, fastest, local, spill; default: see docs/cli.md
	Site       string  `json:"site,omitempty"`       // the only site it may run at: name or ID

	GPUs string `json:"gpus,omitempty"` // GPUs for the whole job: a number, or a type and a number as a100:2

	Array     []int64 `json:"array,omitempty"`     // one job for each, with GRIDNODE_ARRAY_TASK_ID
	ArrayMost int64   `json:"arrayMost,omitempty"` // how many of them may run at a time; 0: any number

	Dependency string  `json:"dependency,omitempty"` // as Slurm writes it: afterok:ID[:ID],afterany:ID; singleton
	DropUnmet  bool    `json:"dropUnmet,omitempty"`  // cancelled once its dependencies can never be met; else it waits on
	Begin      Instant `json:"begin,omitzero"`       // not before
	BeginIn    Seconds `json:"beginIn,omitempty"`    // the same from now; not both
	Hold       bool    `json:"hold,omitempty"`       // not before it is released
	Retries    int32   `json:"retries,omitempty"`    // how often it is run again when it fails
	Nice       int32   `json:"nice,omitempty"`       // by how much it lets others go before it at a Slurm site; 0 to 2147483645
	NoRequeue  bool    `json:"noRequeue,omitempty"`  // an execution that vanished is not run again
	Lease      Seconds `json:"lease,omitempty"`      // another site goes on for so long without being heard of; default: 2 minutes
	NoLease    bool    `json:"noLease,omitempty"`    // it goes on until the job's limit; not both
	Signal     *Signal `json:"signal,omitempty"`     // sent before its limit
	Notify     string  `json:"notify,omitempty"`     // command of a shell that runs at home when it is over
	Output     string  `json:"output,omitempty"`     // absolute path of the file at home that gets what it writes; may hold %j and the like
	Error      string  `json:"error,omitempty"`      // of its standard error; default: the same file
	Append     bool    `json:"append,omitempty"`     // to the files; else they are written anew
	Terminal   bool    `json:"terminal,omitempty"`   // it gets a pseudo-terminal, which can be attached to

	Files *JobFiles `json:"files,omitempty"` // what it brings along, and what of it is brought home

	Module string `json:"module,omitempty"` // digest of a module that was handed over before and runs instead of a program of the site

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads; with coallocation
	Coallocation *Coallocation `json:"coallocation,omitempty"` // it may run at several sites at the same moment
	Spread       bool          `json:"spread,omitempty"`       // its tasks are processes of their own, which may run at several sites
	TTL          *int32        `json:"ttl,omitempty"`          // how often a request for processors of it may be delegated; default: delegation.hops
}

// ModuleReply answers POST /v1/modules, whose body is the module.
type ModuleReply struct {
	Module string `json:"module"` // SHA-256 of its content, 64 hexadecimal digits
	Size   int64  `json:"size"`   // bytes
}

// Signal is sent to a job before its limit.
type Signal struct {
	Number int32   `json:"number"`          // 1 to 64
	Before Seconds `json:"before"`          // the limit
	First  bool    `json:"first,omitempty"` // to its first process only
}

// SubmitRequest is the body of POST /v1/jobs.
type SubmitRequest struct {
	Jobs []JobSpec `json:"jobs"`
}

// SubmitStored comes before SubmitReply with wait=done: the jobs are safe, and the
// asker may go away.
type SubmitStored struct {
	IDs []string `json:"stored"`
}

// SubmitReply answers it: the jobs in order, arrays spread out. With wait=done every
// job is over, or Failure says why that is not known.
type SubmitReply struct {
	Jobs    []Job  `json:"jobs"`
	Failure *Error `json:"failure,omitempty"`
}

// Job is a job as users see it.
type Job struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	User  string `json:"user"`
	State string `json:"state"` // waiting placing queued awarded running cancelling done failed cancelled refused returned

	Number      uint64  `json:"number,omitempty"`      // at its home, for those who name jobs by numbers
	ArrayNumber uint64  `json:"arrayNumber,omitempty"` // of the array that it belongs to
	ArrayIndex  *int64  `json:"arrayIndex,omitempty"`  // its index there
	ArrayMost   int64   `json:"arrayMost,omitempty"`   // as it was submitted
	WaitsFor    string  `json:"waitsFor,omitempty"`    // while it is waiting: held begin dependency dependency-never-satisfied singleton array-limit user-running user-processors user-spend
	Begin       Instant `json:"begin,omitzero"`        // as it was submitted
	Dependency  string  `json:"dependency,omitempty"`  // the same, with full IDs
	Retries     int32   `json:"retries,omitempty"`     // as it was submitted
	Nice        int32   `json:"nice,omitempty"`        // as it was submitted
	Restarts    int32   `json:"restarts,omitempty"`    // how often it was run again because its owner, or its terms, wanted it
	Notify      string  `json:"notify,omitempty"`      // command of a shell that runs at home when it is over
	Dir         string  `json:"dir,omitempty"`         // working directory at home
	Output      string  `json:"output,omitempty"`      // file at home that gets what it writes
	Error       string  `json:"error,omitempty"`       // of its standard error
	Terminal    bool    `json:"terminal,omitempty"`    // it has a pseudo-terminal
	Once        bool    `json:"once,omitempty"`        // it is started once, and starts its tasks itself

	Brief    bool   `json:"brief,omitempty"`    // of another user: no more of it is shown
	Foreign  bool   `json:"foreign"`            // of another site; it runs here
	Home     string `json:"home"`               // ID of the site it was submitted to
	Site     string `json:"site,omitempty"`     // ID of the site it is at
	SiteName string `json:"siteName,omitempty"` // the same for people

	Processors         int64    `json:"processors"`
	Tasks              int64    `json:"tasks"`
	MemoryPerProcessor int64    `json:"memoryPerProcessor,omitempty"`
	Time               Seconds  `json:"time"`
	Deadline           Instant  `json:"deadline,omitzero"`
	Budget             *Amount  `json:"budget,omitempty"`
	Policy             string   `json:"policy"`
	Args               []string `json:"args,omitempty"`
	GPUs               string   `json:"gpus,omitempty"`   // GPUs that it needs, as it was submitted
	Module             string   `json:"module,omitempty"` // digest of the module that it is, if it is one

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads
	Files        *JobFiles     `json:"files,omitempty"`        // what it brings along, and what of it is brought home
	Coallocation *Coallocation `json:"coallocation,omitempty"` // as it was submitted, sites by their IDs
	Spread       bool          `json:"spread,omitempty"`       // as it was submitted
	TTL          *int32        `json:"ttl,omitempty"`          // how often a request of it may be delegated, where its site delegates
	Components   []Component   `json:"components,omitempty"`   // where it runs or ran

	Submitted      Instant  `json:"submitted"`
	Start          Instant  `json:"start,omitzero"`          // of its execution, once it began
	End            Instant  `json:"end,omitzero"`            // once it is over
	Late           Seconds  `json:"late,omitempty"`          // by how much it ended after its deadline, if it did
	Place          int      `json:"place,omitempty"`         // in its site's queue, from 1 on; of a job that is asked for by itself
	ExpectedStart  Instant  `json:"expectedStart,omitzero"`  // of one that waits for processors
	Expectation    string   `json:"expectation,omitempty"`   // how sure that is: promised, foretold (by the site that has it), estimated
	PromisedFinish Instant  `json:"promisedFinish,omitzero"` // by the site it was awarded to
	Price          Amount   `json:"price"`                   // agreed, per hour
	Cost           Amount   `json:"cost"`                    // agreed ceiling; what it cost once it is over
	ExitCode       *int32   `json:"exitCode,omitempty"`      // once it is over, if it ran or was cancelled
	Reason         string   `json:"reason,omitempty"`        // why it is in its state
	Cut            []string `json:"cut,omitempty"`           // outputs of which only the first part is kept: stdout, stderr; of a job that is asked for by itself
	Missing        int64    `json:"missing,omitempty"`       // bytes of its outputs that were kept once and are not any more; of a job that is asked for by itself
	Damaged        []string `json:"damaged,omitempty"`       // outputs of at most 1 MiB that are not what the job wrote any more: stdout, stderr; of a job that is asked for by itself
	Epoch          uint32   `json:"epoch"`                   // how often it was placed
	Messages       int32    `json:"messages"`                // sent and received for it by home
	Known          bool     `json:"known,omitempty"`         // answer to a submission that had come before
}

// Over reports whether the job's state is terminal.
func (j *Job) Over() bool {
	switch j.State {
	case "done", "failed", "cancelled", "refused", "returned":
		return true
	}
	return false
}

// JobsReply answers GET /v1/jobs, POST /v1/cancel and POST /v1/wait.
type JobsReply struct {
	Jobs     []Job `json:"jobs"`
	TimedOut bool  `json:"timedOut,omitempty"` // of a wait: some are not over yet

	Trouble string `json:"trouble,omitempty"` // why the scheduler of the site's processors does not answer; of GET /v1/jobs
}

// Verdict is what came of one site that was considered for a job.
type Verdict struct {
	Site     string  `json:"site"`
	SiteName string  `json:"siteName"`
	Price    Amount  `json:"price"`           // per hour
	Cost     Amount  `json:"cost"`            // of the whole job there
	Finish   Instant `json:"finish,omitzero"` // estimated; left out if it never could
	Outcome  string  `json:"outcome"`         // stable word
	Until    Instant `json:"until,omitzero"`  // it has refused, or did not answer, and is asked again then, or once it says anew that it has room
	Detail   string  `json:"detail,omitempty"`
}

// WhyReply answers GET /v1/jobs/{id}/why and POST /v1/preview.
type WhyReply struct {
	Job      Job       `json:"job"`
	Feasible bool      `json:"feasible"` // some site would have it (preview) or had it
	Verdicts []Verdict `json:"verdicts"`
	Certain  *bool     `json:"certain,omitempty"`  // of a preview: no site is missing, as far as the directory knows
	Fastest  *Verdict  `json:"fastest,omitempty"`  // earliest finish that could be had
	Cheapest *Verdict  `json:"cheapest,omitempty"` // lowest cost that could be had
}

// IDsRequest is the body of POST /v1/cancel, /v1/wait, /v1/hold, /v1/release and /v1/requeue.
type IDsRequest struct {
	IDs     []string `json:"ids"`             // unique prefixes do, and numbers: 12, 12_3 and 12_[0-4] of an array
	Names   []string `json:"names,omitempty"` // jobs of that name, arrays included, that are not over
	Cause   string   `json:"cause,omitempty"` // of a cancellation, at most 200 bytes
	Timeout Seconds  `json:"timeout,omitempty"`
}
