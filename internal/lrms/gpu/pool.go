// Package gpu shares out the GPUs of one site: each to one task at a time.
//
// A task waits for GPUs before it waits for processors, and has them until it ends: all
// tasks take the two in this order, so none waits for what another one that waits has. GPUs
// are given in the order of asking; who comes later passes those before it only if it wants
// another type. Like the rest of lrms it reads no clock and is not safe for concurrent use.
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

// Count is how many there are of one type.
type Count struct {
	Type        string
	Count, Free int64
}

// Pool is the GPUs of a site. The zero value has none.
type Pool struct {
	devices []Device
	taken   []bool // by index of devices
	grants  map[grid.TaskID][]int
	waiting []request
}

type request struct {
	id   grid.TaskID
	need grid.GPUs
}

// New returns the pool of some devices, all free.
func New(devices []Device) (*Pool, error) {
	p := &Pool{devices: slices.Clone(devices), taken: make([]bool, len(devices)), grants: make(map[grid.TaskID][]int)}
	for i, d := range devices {
		if need := (grid.GPUs{Type: d.Type, Count: 1}); d.Name == "" || need.Check() != nil || d.Type == "" {
			return nil, fmt.Errorf("GPU %q of type %q: want a name and a type", d.Name, d.Type)
		}
		if slices.ContainsFunc(devices[:i], func(other Device) bool { return other.Name == d.Name }) {
			return nil, fmt.Errorf("two GPUs are called %q", d.Name)
		}
	}
	return p, nil
}

// Counts returns what there is, by type.
func (p *Pool) Counts() (list []Count) {
	for i, d := range p.devices {
		at := slices.IndexFunc(list, func(c Count) bool { return c.Type == d.Type })
		if at < 0 {
			at = len(list)
			list = append(list, Count{Type: d.Type})
		}
		list[at].Count++
		if !p.taken[i] {
			list[at].Free++
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
		return fmt.Errorf("it wants %v, and this site has %d of them", need, n)
	}
	return nil
}

func (p *Pool) suits(i int, need grid.GPUs) bool {
	return need.Type == "" || p.devices[i].Type == need.Type
}

// Wait has a task wait for GPUs. Grant gives them. One that has some, or waits, is left as
// it is.
func (p *Pool) Wait(id grid.TaskID, need grid.GPUs) {
	if p.grants[id] == nil && !slices.ContainsFunc(p.waiting, func(r request) bool { return r.id == id }) {
		p.waiting = append(p.waiting, request{id, need})
	}
}

// Grant gives GPUs to those that wait, as far as they go, and calls granted for each. That
// may not call the pool.
func (p *Pool) Grant(granted func(grid.TaskID)) {
	var blocked []grid.GPUs
	left := p.waiting[:0]
	for _, r := range p.waiting {
		behind := slices.ContainsFunc(blocked, func(b grid.GPUs) bool { return b.Type == r.need.Type || b.Type == "" || r.need.Type == "" })
		if behind || !p.take(r) {
			blocked = append(blocked, r.need)
			left = append(left, r)
			continue
		}
		granted(r.id)
	}
	clear(p.waiting[len(left):])
	p.waiting = left
}

// take gives a task the first devices that are free, if there are enough.
func (p *Pool) take(r request) bool {
	var list []int
	for i := range p.devices {
		if int64(len(list)) < r.need.Count && !p.taken[i] && p.suits(i, r.need) {
			list = append(list, i)
		}
	}
	if int64(len(list)) < r.need.Count {
		return false
	}
	for _, i := range list {
		p.taken[i] = true
	}
	p.grants[r.id] = list
	return true
}

// Of returns the names of the devices that a task has.
func (p *Pool) Of(id grid.TaskID) (names []string) {
	for _, i := range p.grants[id] {
		names = append(names, p.devices[i].Name)
	}
	return names
}

// Adopt gives a task the devices that it had before a restart: those of them that are still
// there and that nobody has.
func (p *Pool) Adopt(id grid.TaskID, names []string) {
	for i, d := range p.devices {
		if !p.taken[i] && slices.Contains(names, d.Name) {
			p.taken[i] = true
			p.grants[id] = append(p.grants[id], i)
		}
	}
}

// Release takes back what a task has, or no more has it wait.
func (p *Pool) Release(id grid.TaskID) {
	if len(p.devices) == 0 {
		return
	}
	for _, i := range p.grants[id] {
		p.taken[i] = false
	}
	delete(p.grants, id)
	p.waiting = slices.DeleteFunc(p.waiting, func(r request) bool { return r.id == id })
}
