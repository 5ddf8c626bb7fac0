package wire

import (
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

func arrayProto(a *grid.Array) *wirepb.Array {
	if a == nil {
		return nil
	}
	id := a.ID.Bytes()
	return &wirepb.Array{
		Id: id[:], Number: a.Number, Index: a.Index, Count: a.Count, Min: a.Min, Max: a.Max, Step: a.Step, Most: a.Most,
	}
}

func arrayFromProto(p *wirepb.Array) (*grid.Array, error) {
	if p == nil {
		return nil, nil
	}
	id, err := grid.JobIDFromBytes(p.Id)
	if err != nil {
		return nil, Malformed("array id of %d bytes", len(p.Id))
	}
	return &grid.Array{
		ID: id, Number: p.Number, Index: p.Index, Count: p.Count, Min: p.Min, Max: p.Max, Step: p.Step, Most: p.Most,
	}, nil
}

func termsProto(t *grid.Terms) *wirepb.Terms {
	if t == nil {
		return nil
	}
	p := &wirepb.Terms{
		Any: t.Any, Drop: t.Drop, Singleton: t.Singleton, Begin: int64(t.Begin), Held: t.Held, Retries: t.Retries, Once: t.Once,
		Signal: t.Signal.Number, SignalBefore: int64(t.Signal.Before), SignalFirst: t.Signal.First, Lease: int64(t.Lease),
		Notify: []byte(t.Notify), Nice: t.Nice,
	}
	for _, d := range t.After {
		id := d.Job.Bytes()
		p.After = append(p.After, &wirepb.Dependency{Condition: uint32(d.Condition), Job: id[:]})
	}
	return p
}

func termsFromProto(p *wirepb.Terms) (*grid.Terms, error) {
	if p == nil {
		return nil, nil
	}
	if len(p.After) > grid.DependenciesMax {
		return nil, Malformed("%d dependencies, at most %d", len(p.After), grid.DependenciesMax)
	}
	t := &grid.Terms{
		Any: p.Any, Drop: p.Drop, Singleton: p.Singleton, Begin: grid.Time(p.Begin), Held: p.Held, Retries: p.Retries, Once: p.Once,
		Signal: grid.Signal{Number: p.Signal, Before: grid.Time(p.SignalBefore), First: p.SignalFirst},
		Lease:  grid.Time(p.Lease),
		Notify: string(p.Notify), Nice: p.Nice,
	}
	for _, d := range p.After {
		id, err := grid.JobIDFromBytes(d.Job)
		if err != nil || d.Condition > uint32(grid.After) {
			return nil, Malformed("dependency %d on an id of %d bytes", d.Condition, len(d.Job))
		}
		t.After = append(t.After, grid.Dependency{Condition: grid.Condition(d.Condition), Job: id})
	}
	return t, nil
}
