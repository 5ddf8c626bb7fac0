package site

import (
	"bytes"
	"slices"
	"testing"

	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
)

// TestSiteRemembersOthers: after a restart a site greets its siblings and sends its record to those who
// had it, without a look-up of either. What it remembers is stored if it has changed, and not else.
func TestSiteRemembersOthers(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory.Federation = "test"
		c.Siblings.Authority, c.Siblings.Size = "lab", 4
		c.Record.Lifetime = record.LifetimeDefault
	})
	b.site.Step(b.now, grid.Tick{}, &b.out)
	keys := slices.Clone(b.out.Keys)
	b.carryOut()
	b.step(&grid.Delivery{From: "s1", Message: &sibling.Greet{Authority: "lab"}}, &grid.Delivery{From: "s2", Message: &sibling.Greet{Authority: "lab"}})
	for _, key := range keys {
		if b.site.names.registry.Asked(key) {
			b.step(&grid.Closest{Key: key, Peers: []grid.SiteID{"h1", "h2", "h3", "h4", "h5"}})
		}
	}
	b.now += memoryFirst
	b.step()
	stored := b.records[memoryKey]
	if len(stored) == 0 {
		t.Fatal("it stores nothing")
	}
	delete(b.records, memoryKey)
	b.site.siblings.memory.due = b.now // not when its siblings have been silent for too long
	b.step()
	if b.records[memoryKey] != nil {
		t.Error("it stores again what has not changed")
	}
	b.records[memoryKey], b.sends = stored, nil
	b.crash()
	to := func(kind any) (sites []grid.SiteID) {
		for _, s := range b.sends {
			switch s.Message.(type) {
			case *sibling.Greet:
				if kind == "greet" {
					sites = append(sites, s.To)
				}
			case *record.Enter:
				if kind == "enter" {
					sites = append(sites, s.To)
				}
			}
		}
		slices.Sort(sites)
		return sites
	}
	if greeted, entered := to("greet"), to("enter"); !slices.Equal(greeted, []grid.SiteID{"s1", "s2"}) || !slices.Equal(entered, []grid.SiteID{"h1", "h2", "h3", "h4"}) {
		t.Errorf("after a restart it greets %v and sends its record to %v", greeted, entered)
	}
	if !bytes.Equal(b.site.siblings.memory.saved, stored) {
		t.Error("it does not know what is stored")
	}
}

// TestStrangeMemory: a site does not come up with a memory that no site has written.
func TestStrangeMemory(t *testing.T) {
	for _, value := range []string{"\xff", "\x0a\x01b", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x22\x03\x0a\x01k", "\x40\x01"} {
		b := newBench(t, func(c *Config) {
			c.Parts, c.Directory.Federation = Everything, "test"
			c.Siblings.Size = 4
		})
		b.boot()
		err := b.site.Recover(b.now, func(yield func(string, []byte) bool) { yield(memoryKey, []byte(value)) }, &b.out)
		if err == nil {
			t.Errorf("%q is taken", value)
		}
	}
}
