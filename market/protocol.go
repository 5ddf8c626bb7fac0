package market

import (
	"math"

	"google.golang.org/protobuf/proto"

	"gridnode/internal/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market/bank"
)

// Protocol is how agents speak over libp2p. Every decoder checks every field, so
// a decoded message holds nothing that Step could trip over.
var Protocol = wire.Protocol{
	ID: "/gridnode/market/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{
		wire.MarketNegotiate:     decodeNegotiate,
		wire.MarketReply:         decodeReply,
		wire.MarketJobSubmission: decodeJobSubmission,
		wire.MarketJobCompletion: decodeJobCompletion,
		wire.MarketAcknowledge:   decodeAcknowledge,
		wire.MarketCancel:        decodeCancel,
	},
}

// Bounds of fields on the wire; those of the job itself are package wire's.
const (
	processorsMax = 1 << 24 // per job and per site
	memoryMax     = 1 << 50 // bytes per processor
	textMax       = 256     // causes and reasons
	siteMax       = 128     // bytes of a site ID
)

// Proto implements wire.Message.
func (m *Negotiate) Proto() proto.Message {
	return &wirepb.MarketNegotiate{
		Job: jobBytes(m.Task), Epoch: m.Task.Epoch, Request: m.Request, Validity: int64(m.Validity),
		Processors: m.Processors, Memory: m.Memory, Instructions: m.Work.Instructions, Traffic: m.Work.Traffic,
		Deadline: optional(m.Deadline), CostMax: int64(m.CostMax), Bank: string(m.Bank),
	}
}

func decodeNegotiate(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketNegotiate
	if err := unmarshal(body, &p, wire.MarketNegotiate); err != nil {
		return nil, err
	}
	m := &Negotiate{
		Request: p.Request, Validity: grid.Time(p.Validity), Processors: p.Processors, Memory: p.Memory,
		Work:     grid.Work{Instructions: p.Instructions, Traffic: p.Traffic},
		Deadline: spanOr(p.Deadline, grid.Never), CostMax: grid.Credits(p.CostMax), Bank: grid.SiteID(p.Bank),
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.positive("request number", p.Request)
	c.within("validity", p.Validity, 0, int64(grid.SpanMax))
	c.within("processors", p.Processors, 1, processorsMax)
	c.within("memory", p.Memory, 0, memoryMax)
	c.within("instructions", p.Instructions, 0, math.MaxInt64)
	c.within("traffic", p.Traffic, 0, math.MaxInt64)
	c.optionalSpan("deadline", p.Deadline)
	c.within("highest cost", p.CostMax, 0, int64(grid.CreditsMax))
	c.within("bank's length", int64(len(p.Bank)), 0, siteMax)
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Reply) Proto() proto.Message {
	return &wirepb.MarketReply{
		Job: jobBytes(m.Task), Epoch: m.Task.Epoch, Request: m.Request, Refusal: uint32(m.Refusal),
		Hold: m.Hold, HoldSpan: int64(m.HoldSpan), Price: int64(m.Price), Cost: int64(m.Cost),
		Start: optional(m.Start), Finish: optional(m.Finish),
		Load: &wirepb.MarketLoad{
			Free: m.Load.Free, Widest: m.Load.Widest, Wait: int64(m.Load.Wait),
			Price: int64(m.Load.Price), Sequence: m.Load.Sequence,
		},
	}
}

func decodeReply(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketReply
	if err := unmarshal(body, &p, wire.MarketReply); err != nil {
		return nil, err
	}
	if p.Load == nil {
		return nil, wire.Malformed("reply without a load")
	}
	m := &Reply{
		Request: p.Request, Refusal: Refusal(p.Refusal), Hold: p.Hold, HoldSpan: grid.Time(p.HoldSpan),
		Price: grid.Price(p.Price), Cost: grid.Credits(p.Cost),
		Start: spanOr(p.Start, grid.Never), Finish: spanOr(p.Finish, grid.Never),
		Load: Load{
			Free: p.Load.Free, Widest: p.Load.Widest, Wait: grid.Time(p.Load.Wait),
			Price: grid.Price(p.Load.Price), Sequence: p.Load.Sequence,
		},
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.positive("request number", p.Request)
	c.within("refusal", int64(p.Refusal), 0, 255) // a newer site's reason is still a refusal
	c.within("hold span", p.HoldSpan, 0, int64(grid.SpanMax))
	c.within("price", p.Price, 1, int64(grid.CreditsMax))
	c.within("cost", p.Cost, 0, int64(grid.CreditsMax))
	c.optionalSpan("start", p.Start)
	c.optionalSpan("finish", p.Finish)
	c.within("free processors", p.Load.Free, 0, processorsMax)
	c.within("widest job", p.Load.Widest, 0, processorsMax)
	c.within("wait", p.Load.Wait, 0, int64(grid.SpanMax))
	c.within("price", p.Load.Price, 1, int64(grid.CreditsMax))
	switch {
	case m.Refusal == Granted && (p.Hold == 0 || p.Start == nil || p.Finish == nil):
		c.fail("guarantee without hold, start or finish")
	case m.Refusal != Granted && p.Hold != 0:
		c.fail("refusal with a hold")
	case (p.Start == nil) != (p.Finish == nil), p.Start != nil && *p.Start > *p.Finish:
		c.fail("start and finish that do not fit")
	}
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *JobSubmission) Proto() proto.Message {
	job := wire.JobProto(m.Job)
	job.Submit, job.Deadline = 0, 0
	p := &wirepb.MarketJobSubmission{
		Job: job, Epoch: m.Epoch, Hold: m.Hold, Price: int64(m.Price), Cost: int64(m.Cost),
		Age: int64(m.Age), Deadline: optional(m.Deadline),
	}
	if m.Cheque != nil {
		p.Cheque = m.Cheque.Sealed
	}
	return p
}

func decodeJobSubmission(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketJobSubmission
	if err := unmarshal(body, &p, wire.MarketJobSubmission); err != nil {
		return nil, err
	}
	job, err := wire.JobFromProto(p.Job)
	if err != nil {
		return nil, err
	}
	m := &JobSubmission{
		Job: job, Epoch: p.Epoch, Hold: p.Hold, Price: grid.Price(p.Price), Cost: grid.Credits(p.Cost),
		Age: grid.Time(p.Age), Deadline: spanOr(p.Deadline, grid.Never),
	}
	var c check
	c.positive("epoch", uint64(p.Epoch))
	c.positive("hold", p.Hold)
	c.within("price", p.Price, 1, int64(grid.CreditsMax))
	c.within("cost", p.Cost, 0, int64(grid.CreditsMax))
	c.within("age", p.Age, 0, int64(grid.SpanMax))
	c.optionalSpan("deadline", p.Deadline)
	switch {
	case job.Home != from:
		c.fail("job of another home")
	case job.Submit != 0 || job.Deadline != grid.Never:
		c.fail("instants in a submitted job")
	}
	if len(p.Cheque) > 0 && c.err == nil {
		m.Cheque, c.err = bank.OpenCheque(p.Cheque)
	}
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *JobCompletion) Proto() proto.Message {
	p := &wirepb.MarketJobCompletion{
		Job: jobBytes(m.Task), Epoch: m.Task.Epoch, Abandoned: m.Abandoned, Ago: int64(m.Ago), Run: int64(m.Run),
		ExitCode: m.ExitCode, Reason: []byte(m.Reason), Cost: int64(m.Cost),
	}
	if m.Claim != nil {
		p.Claim = m.Claim.Sealed
	}
	return p
}

func decodeJobCompletion(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketJobCompletion
	if err := unmarshal(body, &p, wire.MarketJobCompletion); err != nil {
		return nil, err
	}
	m := &JobCompletion{
		Abandoned: p.Abandoned, Ago: grid.Time(p.Ago), Run: grid.Time(p.Run),
		ExitCode: p.ExitCode, Reason: string(p.Reason), Cost: grid.Credits(p.Cost),
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.within("end", p.Ago, 0, int64(grid.SpanMax))
	c.within("run time", p.Run, 0, int64(grid.SpanMax))
	c.within("reason's length", int64(len(p.Reason)), 0, textMax)
	c.within("cost", p.Cost, 0, int64(grid.CreditsMax))
	m.Claim = c.receipt(from, p.Claim)
	if m.Abandoned && *m != (JobCompletion{Task: m.Task, Abandoned: true}) {
		c.fail("result of a task that never ran")
	}
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Acknowledge) Proto() proto.Message {
	p := &wirepb.MarketAcknowledge{Job: jobBytes(m.Task), Epoch: m.Task.Epoch, Of: uint32(m.Of), Hold: m.Hold, Unknown: m.Unknown}
	if m.Agreement != nil {
		p.Agreement = m.Agreement.Sealed
	}
	return p
}

func decodeAcknowledge(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketAcknowledge
	if err := unmarshal(body, &p, wire.MarketAcknowledge); err != nil {
		return nil, err
	}
	m := &Acknowledge{Of: grid.Kind(p.Of), Hold: p.Hold, Unknown: p.Unknown}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	switch p.Of {
	case uint32(wire.MarketJobSubmission), uint32(wire.MarketCancel):
		c.positive("hold", p.Hold)
	case uint32(wire.MarketJobCompletion):
		c.within("hold", int64(p.Hold), 0, 0)
		m.Agreement = c.receipt(from, p.Agreement)
	default:
		c.fail("acknowledgement of a message that is none")
	}
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Cancel) Proto() proto.Message {
	return &wirepb.MarketCancel{Job: jobBytes(m.Task), Epoch: m.Task.Epoch, Hold: m.Hold, Cause: []byte(m.Cause), Answer: m.Answer}
}

func decodeCancel(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketCancel
	if err := unmarshal(body, &p, wire.MarketCancel); err != nil {
		return nil, err
	}
	m := &Cancel{Hold: p.Hold, Cause: string(p.Cause), Answer: p.Answer}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.positive("hold", p.Hold)
	c.within("cause's length", int64(len(p.Cause)), 0, textMax)
	return result(m, c.err)
}

func unmarshal(body []byte, p proto.Message, kind grid.Kind) error {
	if err := proto.Unmarshal(body, p); err != nil {
		return wire.Malformed("%s: %v", wire.KindName(kind), err)
	}
	return nil
}

// result returns m, or only the error.
func result[M grid.Message](m M, err error) (grid.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func jobBytes(t grid.TaskID) []byte {
	b := t.Job.Bytes()
	return b[:]
}

// optional leaves Never out.
func optional(t grid.Time) *int64 {
	if t == grid.Never {
		return nil
	}
	return (*int64)(&t)
}

func spanOr(v *int64, def grid.Time) grid.Time {
	if v == nil {
		return def
	}
	return grid.Time(*v)
}

// check collects the first thing wrong with a message.
type check struct{ err error }

func (c *check) fail(what string) {
	if c.err == nil {
		c.err = wire.Malformed("%s", what)
	}
}

func (c *check) task(job []byte, epoch uint32) grid.TaskID {
	id, err := grid.JobIDFromBytes(job)
	if err != nil || id.IsZero() {
		c.fail("no job ID")
	}
	c.positive("epoch", uint64(epoch))
	return grid.TaskID{Job: id, Epoch: epoch}
}

// receipt opens the sender's receipt; nil if there is none.
func (c *check) receipt(from grid.SiteID, sealed []byte) *bank.Receipt {
	if len(sealed) == 0 || c.err != nil {
		return nil
	}
	r, err := bank.OpenReceipt(sealed)
	if err == nil && r.Signer != from {
		err = wire.Malformed("receipt of %q sent by %q", r.Signer, from)
	}
	c.err = err
	return r
}

func (c *check) positive(what string, v uint64) {
	if v == 0 {
		c.fail("no " + what)
	}
}

func (c *check) within(what string, v, low, high int64) {
	if c.err == nil && (v < low || v > high) {
		c.err = wire.Malformed("%s %d, want %d to %d", what, v, low, high)
	}
}

func (c *check) optionalSpan(what string, v *int64) {
	if v != nil {
		c.within(what, *v, 0, int64(grid.SpanMax))
	}
}
