package site

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market"
	"gridnode/node/after"
	"gridnode/node/blame"
)

// entry is one job as this site knows it, its own or another site's. It is the
// record that survives a crash.
type entry struct {
	job      *grid.Job
	state    State
	foreign  bool          // home is another site; it runs here under award
	epoch    uint32        // of the latest placement; rises with each
	losses   uint32        // executions that vanished
	unheard  blame.Unheard // executions at other sites that were given up
	award    market.Award
	start    grid.Time // of the execution; not stored: the shim knows, or who runs it says so
	expected grid.Time // of one that has not begun at another site: when it will, as that said; 0: it did not
	leased   grid.Time // another site's: end of its lease; not stored, 0 after a restart: its home has to say so again
	adrift   bool      // another site's, after a restart: it waits for that
	result   grid.Result
	reason   string
	verdicts []market.Verdict
	messages int32
	lease    uint64     // number of the borrowed lease it runs on; 0: on this site's own processors
	gone     grid.Time  // the lease has ended, the execution has surely by then; 0: there is none
	goneSpan grid.Time  // how long that was to come when it was said
	gang     *grid.Gang // where the latest execution of a divided job runs or ran
	turn     after.Turn // what has become of its terms so far
	gpus     []string   // names of those that its execution has

	// What parts know of it besides, which is not stored.
	owner   int32      // its user's number, for shares
	place   int32      // of a live one, in the table's list of them
	packed  *packed    // of packing: on its way through the clusters that this site heads; nil if it is not
	divided *gangNotes // of gangs; nil until it is divided
}

// RecordPrefix is where job records are stored.
const RecordPrefix = "job/"

// RecordKey implements grid.Record.
func (e *entry) RecordKey() string { return RecordPrefix + e.job.ID.String() }

// AppendRecord implements grid.Record.
func (e *entry) AppendRecord(dst []byte) []byte {
	p := &wirepb.JobRecord{
		Job: wire.JobProto(e.job), State: uint32(e.state), Foreign: e.foreign,
		Epoch: e.epoch, Losses: e.losses, Messages: e.messages, Reason: []byte(e.reason),
		Lease: e.lease, Gone: int64(e.gone), GoneSpan: int64(e.goneSpan), Gang: wire.GangProto(e.gang, false), Turn: e.turn.Proto(), Gpus: e.gpus,
		Award: &wirepb.Award{
			Site: string(e.award.Site), Epoch: e.award.Epoch, Price: int64(e.award.Price), Cost: int64(e.award.Cost),
			Start: int64(e.award.Start), Finish: int64(e.award.Finish), Until: int64(e.award.Until), Hold: e.award.Hold,
			Bank: string(e.award.Bank), Lease: int64(e.award.Lease),
		},
	}
	if e.state.Terminal() {
		p.Result = wire.ResultProto(e.result)
	} else {
		p.Unheard = e.unheard.Proto()
	}
	for _, v := range e.verdicts {
		p.Verdicts = append(p.Verdicts, &wirepb.Verdict{
			Site: string(v.Site), Name: []byte(v.Name), Price: int64(v.Price), Cost: int64(v.Cost),
			Finish: int64(v.Finish), Outcome: uint32(v.Outcome), Until: int64(v.Until), Detail: []byte(v.Detail),
		})
	}
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, p)
	if err != nil {
		panic(fmt.Sprintf("site: record of job %s does not encode: %v", e.job.ID, err))
	}
	return out
}

// decodeEntry is the inverse of AppendRecord. Its errors say what is wrong with
// the record.
func decodeEntry(b []byte) (*entry, error) {
	var p wirepb.JobRecord
	if err := proto.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	job, err := wire.JobFromProto(p.Job)
	if err != nil {
		return nil, err
	}
	e := &entry{
		job: job, state: State(p.State), foreign: p.Foreign, epoch: p.Epoch,
		losses: p.Losses, unheard: blame.UnheardFromProto(p.Losses, p.Unheard), messages: p.Messages, reason: string(p.Reason),
		lease: p.Lease, gone: grid.Time(p.Gone), goneSpan: grid.Time(p.GoneSpan), turn: after.TurnFromProto(job, p.Turn), gpus: p.Gpus,
	}
	if e.gang, err = wire.GangFromProto(e.task(), p.Gang); err != nil {
		return nil, fmt.Errorf("job %s: %w", job.ID, err)
	}
	if e.state < Placing || e.state > Returned {
		return nil, fmt.Errorf("job %s is in unknown state %d", job.ID, p.State)
	}
	if a := p.Award; a != nil {
		e.award = market.Award{
			Site: grid.SiteID(a.Site), Epoch: a.Epoch, Price: grid.Price(a.Price), Cost: grid.Credits(a.Cost),
			Start: grid.Time(a.Start), Finish: grid.Time(a.Finish), Until: grid.Time(a.Until), Hold: a.Hold,
			Bank: grid.SiteID(a.Bank), Lease: grid.Time(a.Lease),
		}
	}
	if p.Result != nil && e.state.Terminal() { // what goes on has none
		if e.result, err = wire.ResultFromProto(p.Result); err != nil {
			return nil, fmt.Errorf("job %s: %w", job.ID, err)
		}
	}
	e.verdicts = slices.Grow(e.verdicts, len(p.Verdicts))
	for _, v := range p.Verdicts {
		e.verdicts = append(e.verdicts, market.Verdict{
			Site: grid.SiteID(v.Site), Name: string(v.Name), Price: grid.Price(v.Price), Cost: grid.Credits(v.Cost),
			Finish: grid.Time(v.Finish), Outcome: market.Outcome(v.Outcome), Until: grid.Time(v.Until), Detail: string(v.Detail),
		})
	}
	return e, nil
}

// task names the current execution.
func (e *entry) task() grid.TaskID { return grid.TaskID{Job: e.job.ID, Epoch: e.epoch} }

// begun returns when an execution began that has ended and was taken up after a restart: before that, unless
// the clock was set back since. Of one that was lost there is no end.
func (e *entry) begun() grid.Time {
	if e.start < e.result.End {
		return e.start
	}
	return e.result.Start
}

// view copies the entry for users.
func (e *entry) view() View {
	var tries, failed int32
	if e.divided != nil {
		tries, failed = e.divided.tries, e.divided.failed
	}
	start := e.start
	if e.result.End > 0 {
		start = e.result.Start
	}
	return View{
		Job: e.job, State: e.state, Foreign: e.foreign, Site: e.award.Site, Epoch: e.epoch,
		Award: e.award, Start: start, End: e.result.End, Result: e.result,
		Reason: e.reason, Verdicts: e.verdicts, Messages: e.messages, Tries: tries, Failures: failed, Gang: e.gang,
	}
}

// notes returns what gangs knows of the job.
func (e *entry) notes() *gangNotes {
	if e.divided == nil {
		e.divided = new(gangNotes)
	}
	return e.divided
}
