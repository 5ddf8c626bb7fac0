package api

// JobSpec is a job, or an array of jobs, as it is submitted.
type JobSpec struct {
	// ID is the job's identity, 26 characters, chosen by the client so that it may
	// repeat a request whose answer was lost; made up here if empty. The jobs of
	// an array get IDs of their own that follow from it.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"` // at most 128 bytes; default: the program's name

	Args []string `json:"args"`          // program and arguments; looked up in PATH where it runs
	Env  []string `json:"env,omitempty"` // KEY=VALUE
	Dir  string   `json:"dir,omitempty"` // working directory at home; elsewhere a scratch directory

	Tasks              int64 `json:"tasks,omitempty"`              // default 1
	CPUsPerTask        int64 `json:"cpusPerTask,omitempty"`        // default 1
	MemoryPerProcessor int64 `json:"memoryPerProcessor,omitempty"` // bytes; 0: any

	Time       Seconds `json:"time,omitempty"`       // bound on the run time; default: job.time of the configuration
	Deadline   Instant `json:"deadline,omitzero"`    // must have ended by then
	DeadlineIn Seconds `json:"deadlineIn,omitempty"` // the same from now; not both
	Budget     *Amount `json:"budget,omitempty"`     // most it may cost
	Policy     string  `json:"policy,omitempty"`     // cheapest, fastest, local, spill; default: see docs/cli.md
	Site       string  `json:"site,omitempty"`       // the only site it may run at: name or ID

	Array []int64 `json:"array,omitempty"` // one job for each, with GRIDNODE_ARRAY_TASK_ID

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads; with coallocation
	Coallocation *Coallocation `json:"coallocation,omitempty"` // it may run at several sites at the same moment
	Spread       bool          `json:"spread,omitempty"`       // its tasks are processes of their own, which may run at several sites
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
	State string `json:"state"` // placing queued awarded running cancelling done failed cancelled refused

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

	Inputs       []DataInput   `json:"inputs,omitempty"`       // data sets that it reads
	Coallocation *Coallocation `json:"coallocation,omitempty"` // as it was submitted, sites by their IDs
	Spread       bool          `json:"spread,omitempty"`       // as it was submitted
	Components   []Component   `json:"components,omitempty"`   // where it runs or ran

	Submitted      Instant `json:"submitted"`
	Start          Instant `json:"start,omitzero"`          // of its execution, once it began
	End            Instant `json:"end,omitzero"`            // once it is over
	Late           Seconds `json:"late,omitempty"`          // by how much it ended after its deadline, if it did
	PromisedFinish Instant `json:"promisedFinish,omitzero"` // by the site it was awarded to
	Price          Amount  `json:"price"`                   // agreed, per hour
	Cost           Amount  `json:"cost"`                    // agreed ceiling; what it cost once it is over
	ExitCode       *int32  `json:"exitCode,omitempty"`      // once it is over, if it ran or was cancelled
	Reason         string  `json:"reason,omitempty"`        // why it is in its state
	Epoch          uint32  `json:"epoch"`                   // how often it was placed
	Messages       int32   `json:"messages"`                // sent and received for it by home
	Known          bool    `json:"known,omitempty"`         // answer to a submission that had come before
}

// Over reports whether the job's state is terminal.
func (j *Job) Over() bool {
	switch j.State {
	case "done", "failed", "cancelled", "refused":
		return true
	}
	return false
}

// JobsReply answers GET /v1/jobs, POST /v1/cancel and POST /v1/wait.
type JobsReply struct {
	Jobs     []Job `json:"jobs"`
	TimedOut bool  `json:"timedOut,omitempty"` // of a wait: some are not over yet
}

// Verdict is what came of one site that was considered for a job.
type Verdict struct {
	Site     string  `json:"site"`
	SiteName string  `json:"siteName"`
	Price    Amount  `json:"price"`           // per hour
	Cost     Amount  `json:"cost"`            // of the whole job there
	Finish   Instant `json:"finish,omitzero"` // estimated; left out if it never could
	Outcome  string  `json:"outcome"`         // stable word
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

// IDsRequest is the body of POST /v1/cancel and POST /v1/wait.
type IDsRequest struct {
	IDs     []string `json:"ids"`             // unique prefixes do
	Names   []string `json:"names,omitempty"` // jobs of that name, arrays included, that are not over
	Cause   string   `json:"cause,omitempty"` // of a cancellation, at most 200 bytes
	Timeout Seconds  `json:"timeout,omitempty"`
}
