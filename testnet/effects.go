package testnet

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gridnode/grid"
)

// outbox returns what a core may order into. All cores share it: what is left in it
// would be taken for what the next one orders, perhaps another site's.
func (l *lane) outbox() *grid.Outbox {
	if !l.out.Empty() {
		panic(fmt.Sprintf("testnet: of the step before %d effects and %d inputs are left in the outbox", len(l.out.Effects), len(l.out.Locals)))
	}
	return &l.out
}

// carryOut carries out what a site ordered in one step: first everything it
// saves, then the rest in order. It leaves the outbox empty.
func (l *lane) carryOut(s int32) {
	out, m := &l.out, &l.members[s]
	if len(out.Locals) > 0 {
		panic(fmt.Sprintf("testnet: site %s has told itself %d things that it has not taken in, first %T", m.ID, len(out.Locals), out.Locals[0]))
	}
	if len(out.Effects) == 0 {
		return
	}
	crash := m.fuse && len(out.Records) > 0
	var tear Tear
	if l.cfg.Tear != nil {
		if tear = l.cfg.Tear(l.now, int(s), out, crash); crash {
			tear = Tear{}
		}
		crash = crash || tear.For > 0
	}
	if crash && tear.Unsaved {
		out.Reset()
		l.faults.die(s, tear.For)
		l.faults.crash(s, false)
		return
	}
	if m.records != nil {
		l.save(m, out)
	}
	l.keys = l.keys[:0]
	for _, e := range out.Effects {
		if crash && !tear.leaves(e.Kind) {
			continue
		}
		l.carry(s, e, out)
	}
	out.Reset()
	if tear.For > 0 {
		l.faults.die(s, tear.For)
	}
	if crash {
		l.faults.crash(s, false)
		return
	}
	if len(l.keys) == 0 {
		return
	}
	keys := l.keys
	l.keys = nil // answers that come at once may ask again
	for _, key := range keys {
		l.closestTo(s, key)
	}
	l.keys = keys[:0]
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
func (l *lane) carry(s int32, e grid.Effect, out *grid.Outbox) {
	switch e.Kind {
	case grid.EffectSend:
		send := &out.Sends[e.Index]
		l.wires.transmit(s, send.To, send.Message)
	case grid.EffectPublish:
		send := &out.Sends[e.Index]
		l.members[s].trace.effect(s, e.Kind, uint64(send.Message.MessageKind()))
		l.wires.publish(s, string(send.To), send.Message)
	case grid.EffectStart:
		t := &out.Tasks[e.Index]
		l.members[s].trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		l.members[s].trace.job(t.ID.Job)
		l.tasks.start(s, t)
	case grid.EffectKill:
		t := &out.Tasks[e.Index]
		l.members[s].trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		l.members[s].trace.job(t.ID.Job)
		l.tasks.kill(s, t)
	case grid.EffectRenew:
		t := &out.Tasks[e.Index]
		l.members[s].trace.effect(s, e.Kind, uint64(t.ID.Epoch))
		l.members[s].trace.job(t.ID.Job)
		l.tasks.renew(s, t)
	case grid.EffectClosest:
		l.members[s].trace.effect(s, e.Kind, uint64(out.Keys[e.Index][0]))
		l.keys = append(l.keys, out.Keys[e.Index])
	case grid.EffectProvide:
		l.providing.provide(s, out.Keys[e.Index])
	case grid.EffectProviders:
		l.providing.find(s, out.Keys[e.Index])
	case grid.EffectProbe:
		l.wires.probe(s, out.Probes[e.Index])
	case grid.EffectAttend:
		l.wires.attend(s, out.Attended[e.Index])
	case grid.EffectExpel: // the site itself hears nobody whom it has expelled
		l.members[s].trace.effect(s, e.Kind, 0)
		l.tellExpel(s, out.Expelled[e.Index])
	case grid.EffectTell:
		event := &out.Events[e.Index]
		l.members[s].trace.effect(s, e.Kind, uint64(event.Kind))
		l.members[s].trace.job(event.Job.ID)
		l.tellEvent(s, event)
	case grid.EffectAnswer:
		l.members[s].trace.effect(s, e.Kind, out.Answers[e.Index].Token)
		l.answered(s, out.Answers[e.Index])
	case grid.EffectSave, grid.EffectDelete:
		l.members[s].trace.effect(s, e.Kind, 0)
	}
}

// save keeps and forgets records, in order.
func (l *lane) save(m *member, out *grid.Outbox) {
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

// copied returns a copy of a site's records.
func (m *member) copied() map[string][]byte {
	copied := make(map[string][]byte, len(m.records))
	for key, record := range m.records {
		copied[key] = bytes.Clone(record)
	}
	return copied
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

// Saved yields what a site has saved, in no particular order.
func (n *Network) Saved(site int) iter.Seq2[string, []byte] { return maps.All(n.members[site].records) }

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
