package node

import (
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// hosts starts n hosts that have joined each other, with prices 1, 2, 3, …
func hosts(t *testing.T, n int, homes bool) []*Host {
	t.Helper()
	memory := &p2p.Memory{}
	var list []*Host
	for i := range n {
		cfg := hostConfig(byte(i), "", memory, &timers{})
		cfg.Site.Price = grid.Price(i+1) * grid.Credit
		for _, other := range list[:min(i, 3)] {
			cfg.Join = append(cfg.Join, other.Addrs()...)
		}
		list = append(list, startHost(t, cfg))
	}
	return list
}

func TestMarketPlacesAtTheCheapestSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := hosts(t, 3, false)
		for _, h := range list {
			defer closeHost(t, h)
		}
		time.Sleep(10 * time.Second) // quotes are published and copied
		dear := list[2]
		for i := range uint64(4) {
			job := testJob(dear, i, 10*grid.Second)
			job.Goal = grid.GoalCost
			began := time.Now()
			if _, err := submitTo(dear, job); err != nil {
				t.Fatal(err)
			}
			v := awaitState(t, dear, job.ID, site.Done)
			if v.Site != list[0].ID() {
				t.Errorf("job %d ran at %s, want the cheapest site %s: %+v", i, v.Site, list[0].ID(), v.Verdicts)
			}
			if took := time.Since(began); took > 11*time.Second {
				t.Errorf("job %d took %v", i, took)
			}
		}
	})
}

// TestDeadSiblingIsMissed: a site whose daemon has ended is no sibling any more seconds later,
// long before the next heartbeat.
func TestDeadSiblingIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := hosts(t, 3, false)
		defer closeHost(t, list[0])
		defer closeHost(t, list[1])
		siblings := func() (n int) {
			if err := list[0].Do(t.Context(), func(s *site.Site) { n = len(s.Siblings()) }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		time.Sleep(3 * time.Minute)
		if n := siblings(); n != 2 {
			t.Errorf("%d siblings, want 2", n)
		}
		closeHost(t, list[2])
		time.Sleep(40 * time.Second) // a connection that comes as it ends may be left: then no answer comes
		if n := siblings(); n != 1 {
			t.Errorf("%d siblings after one has died, want 1", n)
		}
	})
}
