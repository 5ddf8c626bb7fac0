// Package gpu shares out the GPUs of one site: each to one task at a time.
//
// A task is promised GPUs from an instant on, for as long as it may take: whole devices, which
// nobody else is promised meanwhile. It has them once it Begins, until Release. Package lrms
// asks for both, GPUs and processors, so that a task has them at the same time. Like the rest
// of lrms the package reads no clock and is not safe for concurrent use.
package gpu

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Device is one GPU.
type Device struct {
	Name string // as it is told to tasks and stored; unique at the site
	Type string
}

// PromisesMax bounds the tasks to which GPUs are promised that have not begun: what a promise
// costs grows with them.
const PromisesMax = 256

// nominal is the span of the task that the Wait of a stock speaks of.
const nominal = grid.Hour

// Pool is the GPUs of a site. The zero value has none.
type Pool struct {
	devices []Device
	grants  map[grid.TaskID]*grant
	waiting int    // grants that have not begun
	busy    []bool // scratch, by index of devices
}

// grant is GPUs that a task has, or is promised.
type grant struct {
	need    grid.GPUs
	devices []int
	start   grid.Time
	span    grid.Time // for how long it has them at most
	begun   bool
}

// Grants yields the tasks that have GPUs, or are promised some, in no particular order.
func (p *Pool) Grants(yield func(grid.TaskID) bool) {
	for id := range p.grants {
		if !yield(id) {
			return
		}
	}
}

// New returns the pool of some devices, all free.
func New(devices []Device) (*Pool, error) {
	p := &Pool{devices: slices.Clone(devices), busy: make([]bool, len(devices)), grants: make(map[grid.TaskID]*grant)}
	var types []string
	for i, d := range devices {
		if need := (grid.GPUs{Type: d.Type, Count: 1}); d.Name == "" || need.Check() != nil || d.Type == "" {
			return nil, fmt.Errorf("GPU %q of type %q: want a name and a type", d.Name, d.Type)
		}
		if slices.ContainsFunc(devices[:i], func(other Device) bool { return other.Name == d.Name }) {
			return nil, fmt.Errorf("two GPUs are called %q", d.Name)
		}
		if !slices.Contains(types, d.Type) {
			types = append(types, d.Type)
		}
	}
	if len(types) > grid.GPUTypesMax {
		return nil, fmt.Errorf("GPUs of %d types, want %d at most", len(types), grid.GPUTypesMax)
	}
	return p, nil
}

// Stock returns what there is at now, by type, in the order of the devices.
func (p *Pool) Stock(now grid.Time) (list grid.GPUStock) {
	taken := p.taken(now, now, now+1, grid.TaskID{})
	for i, d := range p.devices {
		at := slices.IndexFunc(list, func(s grid.GPUCount) bool { return s.Type == d.Type })
		if at < 0 {
			at = len(list)
			list = append(list, grid.GPUCount{Type: d.Type})
		}
		list[at].Count++
		if !taken[i] {
			list[at].Free++
		}
	}
	for i := range list {
		if s := &list[i]; len(p.grants) > 0 {
			s.Wait = min(p.Earliest(now, grid.GPUs{Type: s.Type, Count: s.Count}, nominal, now)-now, grid.SpanMax)
		}
	}
	return list
}

// Fits returns why a need can never be met.
func (p *Pool) Fits(need grid.GPUs) error {
	n := int64(0)
	for i := range p.devices {
		if p.suits(i, need) {
			n++
		}
	}
	if n < need.Count {
		return fmt.Errorf("it wants GPUs (%v), and this site has %d of them", need, n)
	}
	return nil
}

func (p *Pool) suits(i int, need grid.GPUs) bool {
	return need.Type == "" || p.devices[i].Type == need.Type
}

// Full reports whether so many tasks are promised GPUs that no other one is.
func (p *Pool) Full() bool { return p.waiting >= PromisesMax }

// end returns until when a grant takes its devices, as far as one knows at now: one whose
// task should have ended or begun may do so any moment.
func (g *grant) end(now grid.Time) grid.Time {
	switch {
	case g.begun:
		return max(g.start.Add(g.span), now+1)
	case g.start < now:
		return now.Add(g.span)
	}
	return g.start.Add(g.span)
}

// taken returns which devices somebody else than a task has or is promised at any time
// between two instants, as far as one knows at now. It is good until the next call.
func (p *Pool) taken(now, from, to grid.Time, but grid.TaskID) []bool {
	clear(p.busy)
	for id, g := range p.grants {
		if id == but || g.start >= to || g.end(now) <= from {
			continue
		}
		for _, i := range g.devices {
			p.busy[i] = true
		}
	}
	return p.busy
}

// pick returns the first devices that are free for a span, nil if they are too few.
func (p *Pool) pick(now grid.Time, need grid.GPUs, from, to grid.Time, but grid.TaskID) (list []int) {
	taken := p.taken(now, from, to, but)
	for i := range p.devices {
		if int64(len(list)) < need.Count && !taken[i] && p.suits(i, need) {
			list = append(list, i)
		}
	}
	if int64(len(list)) < need.Count {
		return nil
	}
	return list
}

// Earliest returns the first instant, not before one, from which as many GPUs are free for a
// span; grid.Never if there are not as many. It takes time in proportion to the square of the
// number of grants.
func (p *Pool) Earliest(now grid.Time, need grid.GPUs, span, from grid.Time) grid.Time {
	from = max(from, now)
	ends := []grid.Time{from}
	for _, g := range p.grants {
		if end := g.end(now); end > from {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	for _, at := range slices.Compact(ends) {
		if p.pick(now, need, at, at.Add(span), grid.TaskID{}) != nil {
			return at
		}
	}
	return grid.Never
}

// Promise gives a task GPUs from start on, for a span. They must be free then, as Earliest
// says.
func (p *Pool) Promise(now grid.Time, id grid.TaskID, need grid.GPUs, start, span grid.Time) {
	list := p.pick(now, need, start, start.Add(span), id)
	if list == nil || p.grants[id] != nil {
		panic(fmt.Sprintf("gpu: task %v is promised %v, which are not free", id, need))
	}
	p.grants[id] = &grant{need: need, devices: list, start: start, span: span}
	p.waiting++
}

// Shorten says for how long a task that is promised GPUs will have them at most.
func (p *Pool) Shorten(id grid.TaskID, span grid.Time) {
	if g := p.grants[id]; g != nil && !g.begun {
		g.span = min(g.span, span)
	}
}

// Ready reports whether a task can have the GPUs that it is promised now. Before its time
// that must not delay anybody else.
func (p *Pool) Ready(now grid.Time, id grid.TaskID) bool { return p.ready(now, id) != nil }

func (p *Pool) ready(now grid.Time, id grid.TaskID) []int {
	g := p.grants[id]
	if g == nil {
		return nil
	}
	if g.start <= now {
		free := true
		for other, h := range p.grants {
			free = free && (other == id || !h.begun || !intersect(g.devices, h.devices))
		}
		if free {
			return g.devices
		}
	}
	return p.pick(now, g.need, now, now.Add(g.span), id)
}

func intersect(a, b []int) bool {
	return slices.ContainsFunc(a, func(i int) bool { return slices.Contains(b, i) })
}

// Begin gives a task that is Ready its GPUs.
func (p *Pool) Begin(now grid.Time, id grid.TaskID) {
	list := p.ready(now, id)
	if list == nil {
		panic(fmt.Sprintf("gpu: task %v begins without its GPUs", id))
	}
	g := p.grants[id]
	if !g.begun {
		p.waiting--
	}
	g.devices, g.start, g.begun = list, now, true
}

// Extend says until when a task that has begun may have its GPUs.
func (p *Pool) Extend(id grid.TaskID, end grid.Time) {
	if g := p.grants[id]; g != nil && g.begun {
		g.span = max(end-g.start, 1)
	}
}

// Of returns the names of the devices that a task has or is promised.
func (p *Pool) Of(id grid.TaskID) (names []string) {
	if g := p.grants[id]; g != nil {
		for _, i := range g.devices {
			names = append(names, p.devices[i].Name)
		}
	}
	return names
}

// Adopt gives a task the devices that it had before a restart: those of them that are still
// there and that nobody has. For how long, Extend says.
func (p *Pool) Adopt(now grid.Time, id grid.TaskID, names []string) {
	if p.grants[id] != nil {
		return
	}
	g := &grant{start: now, span: 1, begun: true}
	for i, d := range p.devices {
		had := slices.Contains(names, d.Name)
		for _, other := range p.grants {
			had = had && !slices.Contains(other.devices, i)
		}
		if had {
			g.devices = append(g.devices, i)
		}
	}
	p.grants[id] = g
}

// Release takes back what a task has or is promised.
func (p *Pool) Release(id grid.TaskID) {
	g := p.grants[id]
	if g == nil {
		return
	}
	if !g.begun {
		p.waiting--
	}
	delete(p.grants, id)
}
