package record

import (
	"bytes"
	"cmp"
	"container/heap"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// world is registries over a network in virtual time, whose router errs nowhere.
type world struct {
	t      *testing.T
	cfg    Config
	now    grid.Time
	queue  events
	number int
	sites  map[grid.SiteID]*member
	order  []grid.SiteID
	token  uint64
	found  map[uint64]*Found
	sent   map[grid.Kind]int
	looks  int
	onSend func(from, to grid.SiteID, m grid.Message)
}

type member struct {
	id       grid.SiteID
	registry *Registry // nil: it is down
	life     int
}

type event struct {
	at     grid.Time
	number int
	to     grid.SiteID
	life   int // of an answer of the driver; -1: whoever is there
	in     grid.Input
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].number, e[j].number)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)   { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t *testing.T, cfg Config) *world {
	return &world{t: t, cfg: cfg, sites: make(map[grid.SiteID]*member), found: make(map[uint64]*Found), sent: make(map[grid.Kind]int), onSend: func(grid.SiteID, grid.SiteID, grid.Message) {}}
}

// join adds a site.
func (w *world) join(id grid.SiteID) *member {
	p := &member{id: id}
	w.sites[id] = p
	w.order = append(w.order, id)
	w.start(p)
	return p
}

// start starts a site, again perhaps.
func (w *world) start(p *member) {
	cfg := w.cfg
	cfg.Self = p.id
	p.life++
	g, err := New(cfg, rand.New(rand.NewPCG(uint64(p.life), uint64(len(w.order)))))
	if err != nil {
		w.t.Fatal(err)
	}
	p.registry = g
}

func (w *world) push(after grid.Time, to grid.SiteID, life int, in grid.Input) {
	w.number++
	heap.Push(&w.queue, event{w.now + after, w.number, to, life, in})
}

// do has a site do something and carries out what it orders.
func (w *world) do(p *member, what func(*Registry, *grid.Outbox)) {
	out := &grid.Outbox{}
	what(p.registry, out)
	if err := Audit(w.now, p.registry); err != nil {
		w.t.Errorf("%s at %v: %v", p.id, w.now, err)
	}
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			s := out.Sends[e.Index]
			w.sent[s.Message.MessageKind()]++
			w.onSend(p.id, s.To, s.Message)
			if to := w.sites[s.To]; to == nil || to.registry == nil {
				w.push(20*grid.Millisecond, p.id, p.life, &grid.Undelivered{To: s.To, Message: s.Message})
			} else {
				w.push(10*grid.Millisecond, s.To, -1, &grid.Delivery{From: p.id, Message: s.Message})
			}
		case grid.EffectClosest:
			w.looks++
			w.push(50*grid.Millisecond, p.id, p.life, &grid.Closest{Key: out.Keys[e.Index], Peers: w.closest(out.Keys[e.Index], 20)})
		case grid.EffectAnswer:
			a := out.Answers[e.Index]
			w.found[a.Token] = a.Value.(*Found)
		default:
			w.t.Fatalf("effect %v", e.Kind)
		}
	}
}

// closest returns the sites that are up and nearest to a key.
func (w *world) closest(key grid.Key, k int) (list []grid.SiteID) {
	for _, id := range w.order {
		if w.sites[id].registry != nil {
			list = append(list, id)
		}
	}
	distance := func(id grid.SiteID) []byte {
		d := sha256.Sum256([]byte(id))
		for i := range d {
			d[i] ^= key[i]
		}
		return d[:]
	}
	slices.SortFunc(list, func(a, b grid.SiteID) int { return bytes.Compare(distance(a), distance(b)) })
	return list[:min(k, len(list))]
}

func (w *world) run(until grid.Time) {
	for {
		next := until
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		for _, p := range w.sites {
			if p.registry != nil {
				next = min(next, p.registry.NextTimer())
			}
		}
		if next >= until {
			w.now = until
			return
		}
		w.now = max(w.now, next)
		for len(w.queue) > 0 && w.queue[0].at <= w.now {
			e := heap.Pop(&w.queue).(event)
			if p := w.sites[e.to]; p.registry != nil && (e.life < 0 || e.life == p.life) {
				w.do(p, func(g *Registry, out *grid.Outbox) { g.Step(w.now, e.in, out) })
			}
		}
		for _, id := range w.order {
			if p := w.sites[id]; p.registry != nil && p.registry.NextTimer() <= w.now {
				w.do(p, func(g *Registry, out *grid.Outbox) { g.Step(w.now, grid.Tick{}, out) })
				if p.registry.NextTimer() <= w.now {
					w.t.Fatalf("%v: %s wants a tick again and again", w.now, id)
				}
			}
		}
	}
}

func (w *world) set(id grid.SiteID, offer Offer) {
	w.do(w.sites[id], func(g *Registry, out *grid.Outbox) { g.Set(w.now, offer, out) })
}

// find has a site look for a text and waits for the answer.
func (w *world) find(id grid.SiteID, text string) *Found {
	w.t.Helper()
	w.token++
	token := w.token
	w.do(w.sites[id], func(g *Registry, out *grid.Outbox) { g.Step(w.now, &Find{token, text}, out) })
	for end := w.now + 2*grid.Minute; w.found[token] == nil; {
		if w.now >= end {
			w.t.Fatalf("%s has no answer about %s", id, text)
		}
		w.run(w.now + grid.Second)
	}
	return w.found[token]
}

func (f *Found) sites() (ids []string) {
	for _, r := range f.Records {
		ids = append(ids, string(r.Site))
	}
	return ids
}

// describe prints a message.
func describe(m grid.Message) string {
	switch m := m.(type) {
	case *Enter:
		return "enter " + describeRecord(m.Record)
	case *Entered:
		return strings.TrimSpace(fmt.Sprintf("entered %v %v %v", [...]string{"taken", "outdated", "void", "full"}[m.Refusal], m.Sequence, strings.Trim(fmt.Sprint(m.Claims), "[]")))
	case *Inquire:
		return "inquire " + m.Text
	case *Inform:
		var list []string
		for _, r := range m.Records {
			list = append(list, describeRecord(r))
		}
		return strings.TrimSpace("inform " + strings.Join(list, "; "))
	}
	return fmt.Sprintf("%T", m)
}

func describeRecord(r *Record) string {
	return strings.TrimSpace(fmt.Sprintf("%s %q %v #%d", r.Site, r.Name, r.Services, r.Sequence))
}
