package lease

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// demand is a resource request: of a job of this site, or of another site.
type demand struct {
	lrms.Request
	processors int64
	unit       int64 // a site has a multiple of so many of them; all: they are at one site
	apart      bool  // its parts may be at several sites
	sequence   uint64
	subject    grid.JobID // of this round
	from       ID         // the lease another site asks for; zero for an own job
	sink       grid.SiteID
	ttl        int32
	born       grid.Time     // on this site's clock: when its user asked
	patience   grid.Time     // of another site: when it gives up
	retry      grid.Time     // own: not to be delegated before
	rounds     int32         // own: rounds of delegation so far
	relation   Relation      // of another site: what it is to this one
	price      grid.Price    // of another site: what it is to pay for a processor-hour
	latest     grid.Time     // the processors have to be there by then; Never: it does not matter
	outlook    outlook       // own, with a deadline: what this round has found out
	wide       bool          // wider than the site
	away       bool          // wide or parked: the cluster's queue does not have it
	aside      bool          // in Matchmaker.aside
	out        uint64        // number of the lease that is asked for; 0: none
	brought    bool          // own: it runs on the lease
	since      grid.Time     // own: when the lease was claimed
	tried      []grid.SiteID // in this round
	round      *round        // what is leased, or asked for, besides own processors; nil: nothing is
}

// roundOf names a resource request: each round of delegation of a job is a new one,
// and so is each of its executions.
func roundOf(task grid.TaskID, round int32) grid.JobID {
	id := task.Job
	id.Lo += uint64(round)<<44 + uint64(max(task.Epoch, 1)-1)<<24
	return id
}

// setAside files an own request that is in no queue.
func (m *Matchmaker) setAside(d *demand) {
	at, _ := slices.BinarySearchFunc(m.aside, d.sequence, func(d *demand, sequence uint64) int { return cmp.Compare(d.sequence, sequence) })
	m.aside = slices.Insert(m.aside, at, d)
	d.aside = true
	if !d.wide {
		m.asideSum += d.processors
	}
}

// takeUp undoes setAside.
func (m *Matchmaker) takeUp(d *demand) {
	if !d.aside {
		return
	}
	at, _ := slices.BinarySearchFunc(m.aside, d.sequence, func(d *demand, sequence uint64) int { return cmp.Compare(d.sequence, sequence) })
	m.aside = slices.Delete(m.aside, at, at+1)
	d.aside = false
	if !d.wide {
		m.asideSum -= d.processors
	}
}

// giveWay takes a request out of the queue, where it would keep others waiting.
func (m *Matchmaker) giveWay(now grid.Time, d *demand) {
	if !d.away {
		d.away = true
		m.cluster.Park(now, d.ID)
	}
}
