package market

import (
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// Messages of the protocol. Spans count from when the message was sent; the
// receiver counts them from when it arrived.

// Negotiate: home asks for a guarantee that a job finishes in time.
type Negotiate struct {
	Task       grid.TaskID
	Request    uint64    // of home; rises with every request and never repeats
	Validity   grid.Time // span for which home waits for the reply
	Processors int64
	Memory     int64 // bytes per processor
	Work       grid.Work
	Deadline   grid.Time    // span within which it must have finished; Never if none
	CostMax    grid.Credits // most that home accepts
	Bank       grid.SiteID  // whose cheque comes with the job; empty if nobody pays
	Module     bool         // it is a module
	Lease      grid.Time    // for how long the execution is to go on unless it is renewed; 0: until its end
	GPUs       grid.GPUs    // beside processors
	Probe      bool         // home only wants to know: nothing is held
}

// Reply: the guarantee, or a refusal. Either carries what is startable there now.
type Reply struct {
	Task     grid.TaskID
	Request  uint64
	Refusal  Refusal   // Granted if it is a guarantee
	Hold     uint64    // the replying site's name for the guarantee; 0 if refused
	HoldSpan grid.Time // how long the guarantee waits for the job
	Price    grid.Price
	Cost     grid.Credits // most that will be charged
	Start    grid.Time    // span to the promised start; for TooLate to the best start; Never if unsaid
	Finish   grid.Time    // span to Start plus estimate; Never if unsaid
	Load     Load
	Lease    grid.Time // as asked, if the site keeps it; else 0
	GPUs     int64     // as asked, if it is a guarantee
	Probe    bool      // as asked: Granted is no guarantee, but what one would say
}

// JobSubmission: the job, for a guarantee.
type JobSubmission struct {
	Job      *grid.Job // Submit and Deadline are on home's clock; use Age and Deadline
	Epoch    uint32
	Hold     uint64
	Price    grid.Price
	Cost     grid.Credits
	Age      grid.Time    // since it was submitted
	Deadline grid.Time    // span; Never if none, 0 if it has passed
	Cheque   *bank.Cheque // over Cost; nil if nobody pays
	Losses   uint32       // executions of the job that have vanished so far; at most LossesMax
}

// JobCompletion: how an execution ended.
type JobCompletion struct {
	Task      grid.TaskID
	Abandoned bool      // nothing of it runs or ever will; of what follows, only Losses is set
	Losses    uint32    // executions of the job that have vanished so far; at most LossesMax
	Ago       grid.Time // since it ended
	Run       grid.Time // how long it ran
	ExitCode  int32
	Reason    string
	Cost      grid.Credits
	Silent    bool          // it wrote nothing and left no files: there is nothing to fetch
	Output    [2]grid.Kept  // what it wrote, as in grid.Result
	Claim     *bank.Receipt // the sender's, for a job that came with a cheque
}

// Acknowledge: receipt of a submission, a completion, or a cancellation.
type Acknowledge struct {
	Task    grid.TaskID
	Of      grid.Kind
	Hold    uint64 // as in the acknowledged message; 0 for a completion
	Unknown bool   // there is no such guarantee, nor a job from it, and never will be

	Agreement *bank.Receipt // of a completion: the sender's, for a job that went with a cheque
}

// Cancel: home does not want a guarantee, or the job it gave for it, any more.
type Cancel struct {
	Task   grid.TaskID
	Hold   uint64
	Cause  string
	Answer bool // an Acknowledge is wanted if nothing is known of it
}

// MessageKind implements grid.Message.
func (*Negotiate) MessageKind() grid.Kind { return wire.MarketNegotiate }

// MessageKind implements grid.Message.
func (*Reply) MessageKind() grid.Kind { return wire.MarketReply }

// MessageKind implements grid.Message.
func (*JobSubmission) MessageKind() grid.Kind { return wire.MarketJobSubmission }

// MessageKind implements grid.Message.
func (*JobCompletion) MessageKind() grid.Kind { return wire.MarketJobCompletion }

// MessageKind implements grid.Message.
func (*Acknowledge) MessageKind() grid.Kind { return wire.MarketAcknowledge }

// MessageKind implements grid.Message.
func (*Cancel) MessageKind() grid.Kind { return wire.MarketCancel }

// ForJob implements grid.JobMessage.
func (m *Negotiate) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Reply) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *JobSubmission) ForJob() grid.JobID { return m.Job.ID }

// ForJob implements grid.JobMessage.
func (m *JobCompletion) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Acknowledge) ForJob() grid.JobID { return m.Task.Job }

// ForJob implements grid.JobMessage.
func (m *Cancel) ForJob() grid.JobID { return m.Task.Job }

// Slabs are what messages and records of jobs are cut from, a chunk of each type at a
// time. Agents that take turns, as those of one virtual network, may share one. The
// zero value is ready. Not safe for concurrent use.
type Slabs struct {
	negotiate   grid.Slab[Negotiate]
	reply       grid.Slab[Reply]
	submission  grid.Slab[JobSubmission]
	completion  grid.Slab[JobCompletion]
	acknowledge grid.Slab[Acknowledge]
	cancel      grid.Slab[Cancel]

	placed    grid.Slab[Placed]
	completed grid.Slab[Completed]
	accepts   grid.Slab[Accepted]
	delivered grid.Slab[Delivered]
}
