package stream

import (
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/node/api"
)

func changed(ids ...uint64) (list []grid.Event) {
	for _, id := range ids {
		list = append(list, grid.Event{Job: &grid.Job{ID: grid.JobID{Lo: id}}})
	}
	return list
}

// TestChanges: who comes back is told of what has changed since, each job once, or that it
// cannot be told.
func TestChanges(t *testing.T) {
	c := NewChanges()
	wake := c.Listen()
	after := func(place string) ([]uint64, string, string) {
		ids, next, gap := c.After(place)
		var list []uint64
		for id := range ids {
			list = append(list, id.Lo)
		}
		slices.Sort(list)
		return list, next, gap
	}
	_, begin, gap := after("")
	if gap != GapBegin {
		t.Errorf("who begins: gap %q", gap)
	}
	c.Note(changed(1, 2, 1))
	select {
	case <-wake:
	default:
		t.Error("nobody was woken")
	}
	ids, then, gap := after(begin)
	if !slices.Equal(ids, []uint64{1, 2}) || gap != "" {
		t.Errorf("after the beginning: %v, gap %q", ids, gap)
	}
	if ids, next, gap := after(then); len(ids) != 0 || next != then || gap != "" {
		t.Errorf("after all: %v, gap %q", ids, gap)
	}
	for _, other := range []string{"x", "x-1", c.run, c.run + "-", c.run + "--1", c.run + "-4", NewChanges().run + "-1"} {
		if _, _, gap := after(other); gap != api.GapOther {
			t.Errorf("place %q: gap %q", other, gap)
		}
	}

	c.Missed()
	if _, _, gap := after(then); gap != api.GapForgotten {
		t.Errorf("before what was missed: gap %q", gap)
	}
	_, then, _ = after("")
	for id := range uint64(changesMax) {
		c.Note(changed(id))
	}
	if ids, _, gap := after(then); len(ids) != changesMax || gap != "" {
		t.Errorf("of as many as are remembered: %d, gap %q", len(ids), gap)
	}
	_, late, _ := after("")
	c.Note(changed(7, 8))
	if _, _, gap := after(then); gap != api.GapForgotten {
		t.Errorf("of more than are remembered: gap %q", gap)
	}
	if ids, _, gap := after(late); !slices.Equal(ids, []uint64{7, 8}) || gap != "" {
		t.Errorf("of the newest: %v, gap %q", ids, gap)
	}
	if len(c.ids) != changesMax {
		t.Errorf("%d changes are remembered", len(c.ids))
	}
	c.Unlisten(wake)
	if len(c.wakes) != 0 {
		t.Error("somebody listens still")
	}
}
