package testnet

import (
	"fmt"
	"iter"
	"slices"

	"gridnode/grid"
)

// outbox returns what a core may order into. All cores share it: what is left in it
// would be taken for what the next one orders, perhaps another site's.
func (n *Network) outbox() *grid.Outbox {
	if !n.out.Empty() {
		panic(fmt.Sprintf("testnet: of the step before %d effects and %d inputs are left in the outbox", len(n.out.Effects), len(n.out.Locals)))
	}
	return &n.out
}

// carryOut carries out what a site ordered in one step: first everything it
// saves, then the rest in order. It leaves the outbox empty.
func (n *Network) carryOut(s int32) {
	out, m := &n.out, &n.members[s]
	if len(out.Locals) > 0 {
		panic(fmt.Sprintf("testnet: site %s has told itself %d things that it has not taken in, first %T", m.ID, len(out.Locals), out.Locals[0]))
	}
	if len(out.Effects) == 0 {
		return
	}
	crash := m.fuse && len(out.Records) > 0
	var tear Tear
	if n.cfg.Tear != nil && !crash {
		tear = n.cfg.Tear(n.now, int(s), out)
		crash = tear.For > 0
	}
	if crash && tear.Unsaved {
		out.Reset()
		n.faults.die(s, tear.For)
		n.faults.crash(s, false)
		return
	}
	if m.records != nil {
		n.save(m, out)
	}
	n.keys = n.keys[:0]
	for _, e := range out.Effects {
		if crash && !tear.leaves(e.Kind) {
			continue
		}
		n.carry(s, e, out)
	}
	out.Reset()
	if tear.For > 0 {
		n.faults.die(s, tear.For)
	}
	if crash {
		n.faults.crash(s, false)
		return
	}
	if len(n.keys) == 0 {
		return
	}
	keys := n.keys
	n.keys = nil // answers that come at once may ask again
	for _, key := range keys {
		n.closestTo(s, key)
	}
	n.keys = keys[:0]
}

// leaves reports whether the next effect of a step leaves within which a daemon dies: what
// is saved has happened, so observers are told.
func (t *Tear) leaves(kind grid.EffectKind) bool {
	switch kind {
	case grid.EffectTell:
		return true
	case grid.EffectSave, grid.EffectDelete:
		return false
	}
	t.Left--
	return t.Left >= 0
}

// carry carries out one effect.
func (n *Network) carry(s int32, e grid.Effect, out *grid.Outbox) {
	switch e.Kind {
	case grid.EffectSend:
		send := &out.Sends[e.Index]
		n.wires.transmit(s, send.To, send.Message)
	case grid.EffectPublish:
		send := &out.Sends[e.Index]
		n.trace.effect(s, e.Kind, uint64(send.Message.MessageKind()))
		n.wires.publish(s, string(send.To), send.Message)
	case grid.EffectStart:
		t := &out.Tasks[e.Index]
		n.trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		n.trace.job(t.ID.Job)
		n.tasks.start(s, t)
	case grid.EffectKill:
		t := &out.Tasks[e.Index]
		n.trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		n.trace.job(t.ID.Job)
		n.tasks.kill(s, t)
	case grid.EffectRenew:
		t := &out.Tasks[e.Index]
		n.trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		n.trace.job(t.ID.Job)
		n.tasks.renew(s, t)
	case grid.EffectClosest:
		n.trace.effect(s, e.Kind, uint64(out.Keys[e.Index][0]))
		n.keys = append(n.keys, out.Keys[e.Index])
	case grid.EffectProvide:
		n.providers.provide(s, out.Keys[e.Index])
	case grid.EffectProviders:
		n.providers.find(s, out.Keys[e.Index])
	case grid.EffectProbe:
		n.wires.probe(s, out.Probes[e.Index])
	case grid.EffectExpel: // the site itself hears nobody whom it has expelled
		n.trace.effect(s, e.Kind, 0)
	case grid.EffectTell:
		event := &out.Events[e.Index]
		n.trace.effect(s, e.Kind, uint64(event.Kind))
		n.trace.job(event.Job.ID)
		for i := range n.observers {
			if f := n.observers[i].Event; f != nil {
				f(n.now, int(s), event)
			}
		}
	case grid.EffectAnswer:
		n.trace.effect(s, e.Kind, out.Answers[e.Index].Token)
		n.answered(s, out.Answers[e.Index])
	case grid.EffectSave, grid.EffectDelete:
		n.trace.effect(s, e.Kind, 0)
	}
}

// save keeps and forgets records, in order.
func (n *Network) save(m *member, out *grid.Outbox) {
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			r := out.Records[e.Index]
			key := r.RecordKey()
			m.records[key] = r.AppendRecord(m.records[key][:0])
		case grid.EffectDelete:
			delete(m.records, out.Records[e.Index].RecordKey())
		}
	}
}

// saved yields a site's records in the order of their keys.
func (m *member) saved(yield func(key string, record []byte) bool) {
	m.savedBut(nil)(yield)
}

// savedBut yields them but for those that are to be left out; nil: none is.
func (m *member) savedBut(without map[string]bool) iter.Seq2[string, []byte] {
	return func(yield func(key string, record []byte) bool) {
		keys := make([]string, 0, len(m.records))
		for key := range m.records {
			if !without[key] {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(key, m.records[key]) {
				return
			}
		}
	}
}

// Saved yields what a site has saved, in the order of the keys.
func (n *Network) Saved(site int) iter.Seq2[string, []byte] { return n.members[site].saved }

// Records returns how many records a site has saved.
func (n *Network) Records(site int) int { return len(n.members[site].records) }

// HasSaved reports whether a site has saved a record under a key.
func (n *Network) HasSaved(site int, key string) bool {
	_, there := n.members[site].records[key]
	return there
}

// SavedRecord returns what a site has saved under a key, nil if nothing. It must not be changed.
func SavedRecord(n *Network, site int, key string) []byte { return n.members[site].records[key] }

// Twin returns what a site would be if its daemon came up at this instant: its records are
// taken up, but for those with the keys without, and nothing else has happened. The site
// itself learns nothing of it.
func (n *Network) Twin(site int, without map[string]bool) (Site, error) {
	m := &n.members[site]
	twin, err := m.New(int(m.incarnation) + 1)
	if err != nil {
		return nil, err
	}
	if r, ok := twin.(Recoverer); ok {
		err = r.Recover(m.Clock.Local(n.now), m.savedBut(without), new(grid.Outbox))
	}
	return twin, err
}
