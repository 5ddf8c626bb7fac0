package muscle

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// Placement says why a job of a batch is where it is.
type Placement struct {
	Cluster int       // -1: no cluster is wide enough
	Start   grid.Time // in the seed schedule
	Space   int       // processors that were free there then
	Row     int       // of the composition table in which it was found
	Mates   int       // jobs found together with it
	Epsilon float64   // of the cluster before, to be read; no other cluster's was less
}

// Packing is a batch shared out.
type Packing struct {
	Shares     []Share     // by cluster
	Unplaced   []int32     // jobs that may run nowhere
	Placements []Placement // by job; nil unless MUSCLE packed
}

// Rule is a form of MUSCLE.
type Rule uint8

const (
	// Published is the paper's.
	Published Rule = iota

	// Urgent departs from it in two places. Jobs enter the composition table by slack
	// instead of arrival, the least first, so that of equally good compositions the
	// most pressed is found first. And ε is divided by the sum of slacks and run times,
	// that is of the times left until the deadlines, instead of the slacks alone: when
	// most slack is used up, equation 3 leaves out clusters that happen to have
	// received jobs without any.
	Urgent
)

// Pack shares a batch out by MUSCLE (algorithm 4). rng breaks ties of clusters with
// the same ε and size. The error is that of Batch.Validate.
func Pack(b *Batch, rule Rule, rng *rand.Rand) (*Packing, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	p := newPacker(b, rule, rng)
	for p.left > 0 {
		c := p.next()
		if c < 0 {
			break
		}
		p.allocate(c)
	}
	for i, job := range p.order { // of those that fit nowhere it keeps the order of the batch
		if !p.search.taken[i] {
			p.packing.Unplaced = append(p.packing.Unplaced, job)
			p.packing.Placements[job] = Placement{Cluster: -1}
		}
	}
	for c := range b.Clusters {
		p.packing.Shares[c].Seed = p.seed(c)
	}
	return p.packing, nil
}

// packer is a run of algorithm 4.
type packer struct {
	b        *Batch
	rule     Rule
	rng      *rand.Rand
	order    []int32 // jobs of the batch as they stand in the table
	search   *search
	clusters []room
	packing  *Packing
	left     int // jobs to be placed
	ties     []int
}

// room is a cluster while it is filled.
type room struct {
	workload
	free   []grid.Time // by processor
	floor  grid.Time   // no job that is left fits into what is free before
	closed bool        // no job that is left fits at all
	barred []int32     // of the table: jobs that may not run here although they are narrow enough

	placed []placed
}

// placed is a job's place in a room.
type placed struct {
	job        int32
	processors []int32
}

func newPacker(b *Batch, rule Rule, rng *rand.Rand) *packer {
	widest := 0
	p := &packer{
		b: b, rule: rule, rng: rng, order: rule.order(b), left: len(b.Jobs), clusters: make([]room, len(b.Clusters)),
		packing: &Packing{Shares: make([]Share, len(b.Clusters)), Placements: make([]Placement, len(b.Jobs))},
	}
	sizes := make([]int, len(b.Jobs))
	for i, job := range p.order {
		sizes[i] = b.Jobs[job].Processors
	}
	for c := range p.clusters {
		r := &p.clusters[c]
		widest = max(widest, b.Clusters[c].Processors)
		r.free = make([]grid.Time, b.Clusters[c].Processors)
		copy(r.free, b.Clusters[c].Free)
		for _, j := range b.Clusters[c].Has {
			r.add(rule, j)
		}
		for i, job := range p.order {
			if !b.fits(int(job), c) && sizes[i] <= len(r.free) {
				r.barred = append(r.barred, int32(i))
			}
		}
	}
	p.search = newSearch(NewTable(sizes, widest))
	return p
}

// order returns the jobs of a batch in the order in which they enter the table.
func (rule Rule) order(b *Batch) []int32 {
	order := make([]int32, len(b.Jobs))
	slack := make([]grid.Time, len(b.Jobs)) // where a job has the most
	for i := range order {
		order[i] = int32(i)
		for c := range b.Clusters {
			if b.fits(i, c) {
				slack[i] = max(slack[i], rule.slack(b.held(i, c)))
			}
		}
	}
	if rule == Urgent {
		slices.SortStableFunc(order, func(i, j int32) int { return cmp.Compare(slack[i], slack[j]) })
	}
	return order
}

// next returns the cluster with the least ε that is not closed; among equals the
// widest; among those any. It is -1 if all are closed.
func (p *packer) next() int {
	p.ties = p.ties[:0]
	var least ratio
	var widest int
	for c := range p.clusters {
		r := &p.clusters[c]
		if r.closed {
			continue
		}
		e, m := r.epsilon(p.rule, len(r.free)), len(r.free)
		order := -1
		if len(p.ties) > 0 {
			order = cmp.Or(e.compare(&least), cmp.Compare(widest, m))
		}
		switch {
		case order < 0:
			least, widest = e, m
			p.ties = append(p.ties[:0], c)
		case order == 0:
			p.ties = append(p.ties, c)
		}
	}
	switch len(p.ties) {
	case 0:
		return -1
	case 1:
		return p.ties[0]
	}
	return p.ties[p.rng.IntN(len(p.ties))]
}

// allocate fills the earliest free space of a cluster. If no job fits, the space
// lasts until more processors become free; if all are, the cluster is closed.
func (p *packer) allocate(c int) {
	r := &p.clusters[c]
	at, space, then := r.space()
	bar := r.barred[:0:0]
	for _, i := range r.barred {
		if !p.search.taken[i] {
			p.search.taken[i] = true
			bar = append(bar, i)
		}
	}
	jobs, row := p.search.fill(space)
	for _, i := range bar {
		p.search.taken[i] = false
	}
	if len(jobs) == 0 {
		r.floor, r.closed = then, then == grid.Never
		return
	}
	epsilon := r.epsilon(p.rule, len(r.free))
	next := 0
	for _, i := range jobs {
		job := p.order[i]
		j := &p.b.Jobs[job]
		place := placed{job: job, processors: make([]int32, 0, j.Processors)}
		for ; len(place.processors) < j.Processors; next++ {
			if r.free[next] <= at {
				r.free[next] = at + j.Spans[c]
				place.processors = append(place.processors, int32(next))
			}
		}
		r.placed = append(r.placed, place)
		r.add(p.rule, p.b.held(int(job), c))
		p.search.taken[i] = true
		p.left--
		p.packing.Placements[job] = Placement{Cluster: c, Start: at, Space: space, Row: row, Mates: len(jobs) - 1, Epsilon: epsilon.float()}
	}
}

// space returns when the earliest space of a cluster begins, how many processors it
// has, and when it becomes wider, grid.Never if it has them all.
func (r *room) space() (at grid.Time, processors int, then grid.Time) {
	at, then = grid.Never, grid.Never
	for _, free := range r.free {
		at = min(at, max(free, r.floor))
	}
	for _, free := range r.free {
		if free <= at {
			processors++
		} else {
			then = min(then, free)
		}
	}
	return at, processors, then
}

// seed codes what a cluster was given as a schedule of its share.
func (p *packer) seed(c int) titan.Schedule {
	share := &p.packing.Shares[c]
	for i := range p.clusters[c].placed {
		share.Jobs = append(share.Jobs, p.clusters[c].placed[i].job)
	}
	problem := p.b.Problem(c, share)
	s := titan.NewSchedule(problem)
	for i := range p.clusters[c].placed {
		s.Order = append(s.Order, int32(i))
		for _, processor := range p.clusters[c].placed[i].processors {
			s.Give(problem, int32(i), int(processor))
		}
	}
	return s
}
