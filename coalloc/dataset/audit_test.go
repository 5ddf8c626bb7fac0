package dataset

import (
	"testing"

	"gridnode/grid"
)

// TestAudit: what is not as it has to be is found.
func TestAudit(t *testing.T) {
	for name, spoil := range map[string]func(c *Catalog, o *own, l *look){
		"announcements are counted": func(c *Catalog, _ *own, _ *look) { c.puts++ },
		"trees are counted":         func(c *Catalog, _ *own, _ *look) { c.lent++ },
		"look-ups are counted":      func(c *Catalog, _ *own, l *look) { c.backlog = append(c.backlog, l) },
		"keys go":                   func(c *Catalog, _ *own, _ *look) { c.keys[grid.Key{1}] = "gone" },
		"a set is announced": func(c *Catalog, o *own, l *look) {
			delete(c.looks, l.name)
			delete(c.keys, l.key)
			c.alive, c.due, c.puts, o.putting, o.next = nil, grid.Never, 0, false, grid.Hour+grid.Minute
		},
		"a set is announced in time":        func(c *Catalog, o *own, _ *look) { c.puts, o.putting, o.next = 0, false, 3*grid.Hour },
		"pauses are bounded":                func(_ *Catalog, o *own, _ *look) { o.pause = 2 * grid.Hour },
		"a look-up ends":                    func(c *Catalog, _ *own, _ *look) { c.due = grid.Never },
		"a look-up ends in time":            func(_ *Catalog, _ *own, l *look) { l.deadline += grid.Minute },
		"what is under way is looked after": func(c *Catalog, _ *own, _ *look) { c.alive = nil },
		"what waits begins":                 func(c *Catalog, _ *own, l *look) { c.alive, l.phase = nil, waiting },
		"who waits is told":                 func(c *Catalog, _ *own, l *look) { c.alive, l.phase, l.known, l.none = nil, resting, true, 1 },
		"nobody is counted":                 func(_ *Catalog, _ *own, l *look) { l.known = true },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.step(&Hold{Token: 1, Set: Set{DataSet: grid.DataSet{Name: "here", Size: 1}, Path: "/here"}})
			b.step(&Find{Token: 2, Name: "there"})
			if err := b.c.Audit(b.now); err != nil {
				t.Fatal(err)
			}
			spoil(b.c, b.c.sets["here"], b.c.looks["there"])
			if b.c.Audit(b.now) == nil {
				t.Error("it is not seen")
			}
		})
	}
}
