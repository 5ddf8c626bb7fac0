package testnet

import (
	"gridnode/grid"
	"gridnode/testnet/draw"
)

// trace is a running hash over all events and effects of a site, of integers only, so that
// it is the same on every machine.
type trace uint64

func newTrace() trace { return 0x6772_6964_6e6f_6465 }

func (t *trace) add(v uint64) { *t = trace(draw.Mix(uint64(*t), v)) }

func (t *trace) job(id grid.JobID) { t.add(id.Hi<<1 ^ id.Lo) }

// event adds an event that happens now.
func (t *trace) event(now grid.Time, e *event) {
	t.add(uint64(now))
	var kind grid.Kind
	if e.message != nil {
		kind = e.message.MessageKind()
	}
	t.add(uint64(e.kind) | uint64(kind)<<8 | uint64(uint32(e.to))<<16 ^ uint64(uint32(e.from))<<40)
	t.message(e.message)
}

// tick adds a site's Tick.
func (t *trace) tick(s int32) { t.add(1<<63 | uint64(s)) }

// effect adds an order a site gave.
func (t *trace) effect(s int32, kind grid.EffectKind, detail uint64) {
	t.add(3<<62 | uint64(kind)<<48 | uint64(s))
	t.add(detail)
}

// away adds what is said about a task on borrowed processors.
func (t *trace) away(s int32, what uint64, id grid.TaskID) {
	t.add(5<<61 | what<<32 | uint64(s))
	t.add(uint64(id.Epoch))
	t.job(id.Job)
}

// message adds the job that a message is about.
func (t *trace) message(m grid.Message) {
	if about, ok := m.(grid.JobMessage); ok {
		t.job(about.ForJob())
	}
}
