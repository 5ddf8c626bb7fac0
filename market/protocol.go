package market

import (
	"math"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
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
		wire.MarketRenew:         keepalive.DecodeRenew,
		wire.MarketRenewed:       keepalive.DecodeRenewed,
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
		Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Request: m.Request, Validity: int64(m.Validity),
		Processors: m.Processors, Memory: m.Memory, Instructions: m.Work.Instructions, Traffic: m.Work.Traffic,
		Deadline: optional(m.Deadline), CostMax: int64(m.CostMax), Bank: string(m.Bank), Module: m.Module, Lease: int64(m.Lease),
		Gpus: m.GPUs.Count, GpuType: m.GPUs.Type, Probe: m.Probe,
	}
}

func decodeNegotiate(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketNegotiate
	if err := wire.Unmarshal(body, &p, wire.MarketNegotiate); err != nil {
		return nil, err
	}
	m := &Negotiate{
		Request: p.Request, Validity: grid.Time(p.Validity), Processors: p.Processors, Memory: p.Memory,
		Work:     grid.Work{Instructions: p.Instructions, Traffic: p.Traffic},
		Deadline: spanOr(p.Deadline, grid.Never), CostMax: grid.Credits(p.CostMax), Bank: grid.SiteID(p.Bank), Module: p.Module, Lease: grid.Time(p.Lease),
		GPUs: grid.GPUs{Count: p.Gpus, Type: p.GpuType}, Probe: p.Probe,
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.Positive("request number", p.Request)
	c.Within("validity", p.Validity, 0, int64(grid.SpanMax))
	c.Within("processors", p.Processors, 1, processorsMax)
	c.Within("memory", p.Memory, 0, memoryMax)
	c.Within("instructions", p.Instructions, 0, math.MaxInt64)
	c.Within("traffic", p.Traffic, 0, math.MaxInt64)
	c.optionalSpan("deadline", p.Deadline)
	c.Within("highest cost", p.CostMax, 0, int64(grid.CreditsMax))
	c.Within("bank's length", int64(len(p.Bank)), 0, siteMax)
	c.lease(p.Lease)
	if err := m.GPUs.Check(); err != nil {
		c.Fail(err.Error())
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Reply) Proto() proto.Message {
	return &wirepb.MarketReply{
		Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Request: m.Request, Refusal: uint32(m.Refusal),
		Hold: m.Hold, HoldSpan: int64(m.HoldSpan), Price: int64(m.Price), Cost: int64(m.Cost),
		Start: optional(m.Start), Finish: optional(m.Finish),
		Load: &wirepb.MarketLoad{
			Free: m.Load.Free, Widest: m.Load.Widest, Wait: int64(m.Load.Wait),
			Price: int64(m.Load.Price), Sequence: m.Load.Sequence,
		},
		Lease: int64(m.Lease), Gpus: m.GPUs, Probe: m.Probe,
	}
}

func decodeReply(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketReply
	if err := wire.Unmarshal(body, &p, wire.MarketReply); err != nil {
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
		Lease: grid.Time(p.Lease), GPUs: p.Gpus, Probe: p.Probe,
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.Within("GPUs", p.Gpus, 0, grid.GPUsMax)
	c.Positive("request number", p.Request)
	c.Within("refusal", int64(p.Refusal), 0, 255) // a newer site's reason is still a refusal
	c.Within("hold span", p.HoldSpan, 0, int64(grid.SpanMax))
	c.Within("price", p.Price, 1, int64(grid.CreditsMax))
	c.Within("cost", p.Cost, 0, int64(grid.CreditsMax))
	c.optionalSpan("start", p.Start)
	c.optionalSpan("finish", p.Finish)
	c.Within("free processors", p.Load.Free, 0, processorsMax)
	c.Within("widest job", p.Load.Widest, 0, processorsMax)
	c.Within("wait", p.Load.Wait, 0, int64(grid.SpanMax))
	c.Within("price", p.Load.Price, 1, int64(grid.CreditsMax))
	c.lease(p.Lease)
	switch {
	case m.Refusal == Granted && (p.Hold == 0 && !m.Probe || p.Start == nil || p.Finish == nil):
		c.Fail("guarantee without hold, start or finish")
	case (m.Refusal != Granted || m.Probe) && p.Hold != 0:
		c.Fail("refusal with a hold")
	case (p.Start == nil) != (p.Finish == nil), p.Start != nil && *p.Start > *p.Finish:
		c.Fail("start and finish that do not fit")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *JobSubmission) Proto() proto.Message {
	job := wire.JobAbroad(m.Job)
	job.Submit, job.Deadline = 0, 0
	p := &wirepb.MarketJobSubmission{
		Job: job, Epoch: m.Epoch, Hold: m.Hold, Price: int64(m.Price), Cost: int64(m.Cost),
		Age: int64(m.Age), Deadline: optional(m.Deadline), Losses: m.Losses,
	}
	if m.Cheque != nil {
		p.Cheque = m.Cheque.Sealed
	}
	return p
}

func decodeJobSubmission(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketJobSubmission
	if err := wire.Unmarshal(body, &p, wire.MarketJobSubmission); err != nil {
		return nil, err
	}
	job, err := wire.JobFromProto(p.Job)
	if err != nil {
		return nil, err
	}
	m := &JobSubmission{
		Job: job, Epoch: p.Epoch, Hold: p.Hold, Price: grid.Price(p.Price), Cost: grid.Credits(p.Cost),
		Age: grid.Time(p.Age), Deadline: spanOr(p.Deadline, grid.Never), Losses: p.Losses,
	}
	var c check
	c.Within("epoch", int64(p.Epoch), 1, grid.EpochMax)
	c.Positive("hold", p.Hold)
	c.Within("price", p.Price, 1, int64(grid.CreditsMax))
	c.Within("cost", p.Cost, 0, int64(grid.CreditsMax))
	c.Within("age", p.Age, 0, int64(grid.SpanMax))
	c.Within("losses", int64(p.Losses), 0, LossesMax)
	c.optionalSpan("deadline", p.Deadline)
	switch {
	case job.Home != from:
		c.Fail("job of another home")
	case job.Coallocate != nil:
		c.Fail("co-allocated job: its home claims processors for it, and awards it to nobody")
	case job.Submit != 0 || job.Deadline != grid.Never:
		c.Fail("instants in a submitted job")
	}
	if len(p.Cheque) > 0 && c.Err == nil {
		m.Cheque, c.Err = bank.OpenCheque(p.Cheque)
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *JobCompletion) Proto() proto.Message {
	p := &wirepb.MarketJobCompletion{
		Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Abandoned: m.Abandoned, Ago: int64(m.Ago), Run: int64(m.Run),
		ExitCode: m.ExitCode, Reason: []byte(m.Reason), Cost: int64(m.Cost), Losses: m.Losses, Silent: m.Silent,
		Stdout: wire.KeptProto(m.Output[0]), Stderr: wire.KeptProto(m.Output[1]),
	}
	if m.Claim != nil {
		p.Claim = m.Claim.Sealed
	}
	return p
}

func decodeJobCompletion(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketJobCompletion
	if err := wire.Unmarshal(body, &p, wire.MarketJobCompletion); err != nil {
		return nil, err
	}
	m := &JobCompletion{
		Abandoned: p.Abandoned, Ago: grid.Time(p.Ago), Run: grid.Time(p.Run),
		ExitCode: p.ExitCode, Reason: string(p.Reason), Cost: grid.Credits(p.Cost), Losses: p.Losses, Silent: p.Silent,
	}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.Within("end", p.Ago, 0, int64(grid.SpanMax))
	c.Within("run time", p.Run, 0, int64(grid.SpanMax))
	c.Within("reason's length", int64(len(p.Reason)), 0, textMax)
	c.Within("cost", p.Cost, 0, int64(grid.CreditsMax))
	c.Within("losses", int64(p.Losses), 0, LossesMax)
	m.Claim = c.receipt(from, p.Claim)
	m.Output[0], m.Output[1] = c.kept(p.Stdout), c.kept(p.Stderr)
	switch {
	case m.Abandoned && *m != (JobCompletion{Task: m.Task, Abandoned: true, Losses: m.Losses}):
		c.Fail("result of a task that was given up")
	case !m.Abandoned && m.Losses != 0:
		c.Fail("losses of a task that has a result")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Acknowledge) Proto() proto.Message {
	p := &wirepb.MarketAcknowledge{Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Of: uint32(m.Of), Hold: m.Hold, Unknown: m.Unknown}
	if m.Agreement != nil {
		p.Agreement = m.Agreement.Sealed
	}
	return p
}

func decodeAcknowledge(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketAcknowledge
	if err := wire.Unmarshal(body, &p, wire.MarketAcknowledge); err != nil {
		return nil, err
	}
	m := &Acknowledge{Of: grid.Kind(p.Of), Hold: p.Hold, Unknown: p.Unknown}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	switch p.Of {
	case uint32(wire.MarketJobSubmission), uint32(wire.MarketCancel):
		c.Positive("hold", p.Hold)
	case uint32(wire.MarketJobCompletion):
		c.Within("hold", int64(p.Hold), 0, 0)
		m.Agreement = c.receipt(from, p.Agreement)
	default:
		c.Fail("acknowledgement of a message that is none")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Cancel) Proto() proto.Message {
	return &wirepb.MarketCancel{Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Hold: m.Hold, Cause: []byte(m.Cause), Answer: m.Answer}
}

func decodeCancel(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketCancel
	if err := wire.Unmarshal(body, &p, wire.MarketCancel); err != nil {
		return nil, err
	}
	m := &Cancel{Hold: p.Hold, Cause: string(p.Cause), Answer: p.Answer}
	var c check
	m.Task = c.task(p.Job, p.Epoch)
	c.Positive("hold", p.Hold)
	c.Within("cause's length", int64(len(p.Cause)), 0, textMax)
	return wire.Checked(m, c.Err)
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
type check struct{ wire.Check }

func (c *check) task(job []byte, epoch uint32) grid.TaskID {
	id, err := grid.JobIDFromBytes(job)
	if err != nil || id.IsZero() {
		c.Fail("no job ID")
	}
	c.Within("epoch", int64(epoch), 1, grid.EpochMax)
	return grid.TaskID{Job: id, Epoch: epoch}
}

// lease checks the span of a lease; 0 is none.
func (c *check) lease(span int64) {
	if span != 0 {
		c.Within("lease", span, int64(grid.LeaseMin), int64(grid.SpanMax))
	}
}

// receipt opens the sender's receipt; nil if there is none.
func (c *check) receipt(from grid.SiteID, sealed []byte) *bank.Receipt {
	if len(sealed) == 0 || c.Err != nil {
		return nil
	}
	r, err := bank.OpenReceipt(sealed)
	if err == nil && r.Signer != from {
		err = wire.Malformed("receipt of %q sent by %q", r.Signer, from)
	}
	c.Err = err
	return r
}

// kept returns what is said of an output.
func (c *check) kept(p *wirepb.Kept) (k grid.Kept) {
	if c.Err == nil {
		k, c.Err = wire.KeptFromProto(p)
	}
	return k
}

func (c *check) optionalSpan(what string, v *int64) {
	if v != nil {
		c.Within(what, *v, 0, int64(grid.SpanMax))
	}
}
