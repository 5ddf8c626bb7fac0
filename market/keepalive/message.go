package keepalive

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// heldMax bounds the executions in one message.
const heldMax = 500

// Held is an execution that a site has under a lease.
type Held struct {
	Task  grid.TaskID
	Begun bool
	Ran   grid.Time // Begun: for so long
	Start grid.Time // else: the span until it begins, as far as is known; Never if nothing is
}

// Renew: an executing site wants the leases of these executions renewed.
type Renew struct {
	Stamp grid.Time // when it asks, on its own clock
	Held  []Held
}

// Renewed: the answer of their home.
type Renewed struct {
	Stamp    grid.Time // as asked
	Renewed  []grid.TaskID
	Unwanted []grid.TaskID // home does not count on these any more
}

// MessageKind implements grid.Message.
func (*Renew) MessageKind() grid.Kind { return wire.MarketRenew }

// MessageKind implements grid.Message.
func (*Renewed) MessageKind() grid.Kind { return wire.MarketRenewed }

// Proto implements wire.Message.
func (m *Renew) Proto() proto.Message {
	p := &wirepb.MarketRenew{Stamp: int64(m.Stamp)}
	for i := range m.Held {
		h := &m.Held[i]
		held := &wirepb.MarketHeld{Job: wire.JobBytes(h.Task.Job), Epoch: h.Task.Epoch}
		switch {
		case h.Begun:
			held.Ran = (*int64)(&h.Ran)
		case h.Start != grid.Never:
			held.Start = (*int64)(&h.Start)
		}
		p.Held = append(p.Held, held)
	}
	return p
}

// DecodeRenew is a wire.Decoder.
func DecodeRenew(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketRenew
	if err := wire.Unmarshal(body, &p, wire.MarketRenew); err != nil {
		return nil, err
	}
	m := &Renew{Stamp: grid.Time(p.Stamp)}
	var c wire.Check
	c.Within("stamp", p.Stamp, 0, int64(grid.Never)-1)
	c.Within("executions", int64(len(p.Held)), 1, heldMax)
	for _, h := range p.Held {
		if c.Err != nil {
			break
		}
		held := Held{Task: task(&c, h), Start: grid.Never}
		if h.Ran != nil {
			c.Within("run time", *h.Ran, 0, int64(grid.SpanMax))
			held.Begun, held.Ran = true, grid.Time(*h.Ran)
		}
		if h.Start != nil {
			c.Within("start", *h.Start, 0, int64(grid.SpanMax))
			held.Start = grid.Time(*h.Start)
		}
		if h.Ran != nil && h.Start != nil {
			c.Fail("an execution that runs and is to begin")
		}
		m.Held = append(m.Held, held)
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Renewed) Proto() proto.Message {
	return &wirepb.MarketRenewed{Stamp: int64(m.Stamp), Renewed: names(m.Renewed), Unwanted: names(m.Unwanted)}
}

// DecodeRenewed is a wire.Decoder.
func DecodeRenewed(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.MarketRenewed
	if err := wire.Unmarshal(body, &p, wire.MarketRenewed); err != nil {
		return nil, err
	}
	m := &Renewed{Stamp: grid.Time(p.Stamp)}
	var c wire.Check
	c.Within("stamp", p.Stamp, 0, int64(grid.Never)-1)
	c.Within("executions", int64(len(p.Renewed)+len(p.Unwanted)), 0, heldMax)
	if c.Err == nil {
		m.Renewed, m.Unwanted = tasks(&c, p.Renewed), tasks(&c, p.Unwanted)
	}
	return wire.Checked(m, c.Err)
}

func names(tasks []grid.TaskID) (list []*wirepb.MarketHeld) {
	for _, t := range tasks {
		list = append(list, &wirepb.MarketHeld{Job: wire.JobBytes(t.Job), Epoch: t.Epoch})
	}
	return list
}

func tasks(c *wire.Check, list []*wirepb.MarketHeld) (tasks []grid.TaskID) {
	for _, h := range list {
		if h.Ran != nil || h.Start != nil {
			c.Fail("an answer that says how far an execution is")
		}
		tasks = append(tasks, task(c, h))
	}
	return tasks
}

func task(c *wire.Check, h *wirepb.MarketHeld) grid.TaskID {
	id, err := grid.JobIDFromBytes(h.Job)
	if err != nil || id.IsZero() {
		c.Fail("no job ID")
	}
	c.Within("epoch", int64(h.Epoch), 1, grid.EpochMax)
	return grid.TaskID{Job: id, Epoch: h.Epoch}
}
