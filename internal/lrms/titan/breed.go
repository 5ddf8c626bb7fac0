package titan

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"gridnode/grid"
)

// Chances of the operations, in percent of the offspring. The paper names the
// operations and gives no chances; these are usual ones, not tuned.
const (
	crossoverChance = 90
	orderChance     = 50 // two columns change places
	setChance       = 70 // a job changes processors
)

// Generation breeds the next generation from the present one: the best schedule as
// it is, and offspring of parents that are drawn with a chance proportional to their
// fitness, f = (CPmax − CP) / (CPmax − CPmin) (equation 2).
func (t *Titan) Generation() {
	t.rate()
	t.next[0].copyFrom(&t.now[t.best].Schedule)
	t.next[0].cost = t.now[t.best].cost
	for i := 1; i < len(t.next); i++ {
		child, a := &t.next[i], &t.now[t.draw()]
		child.copyFrom(&a.Schedule)
		if t.percent(crossoverChance) {
			t.cross(&child.Schedule, &t.now[t.draw()].Schedule)
		}
		t.mutate(&child.Schedule)
		if t.cfg.Settle > 0 && t.percent(t.cfg.Settle) {
			t.p.settle(&child.Schedule, t.busy, t.perm)
		}
		child.cost = t.costOf(&child.Schedule)
	}
	t.now, t.next = t.next, t.now
	t.best = t.least()
	t.generation++
	t.stable++
	if cost := t.now[t.best].cost; t.mark-cost > t.mark/improvement || cost == 0 && t.mark > 0 {
		t.mark, t.stable = cost, 0
	}
}

// rate adds up the fitness of the present generation.
func (t *Titan) rate() {
	worst := int64(0)
	for i := range t.now {
		worst = max(worst, t.now[i].cost)
	}
	sum := int64(0)
	for i := range t.now {
		sum += worst - t.now[i].cost // f without its denominator, which is the same for all
		t.chance[i] = sum
	}
}

// draw picks a parent.
func (t *Titan) draw() int {
	sum := t.chance[len(t.chance)-1]
	if sum == 0 { // all are equally good
		return t.rng.IntN(len(t.chance))
	}
	at := t.rng.Int64N(sum)
	return sort.Search(len(t.chance), func(i int) bool { return t.chance[i] > at })
}

func (t *Titan) percent(chance int) bool { return t.rng.IntN(100) < chance }

// cross replaces what stands after a random column of s: the columns that do not
// stand before it follow in the order that they have in with, on the processors that
// they have there.
func (t *Titan) cross(s, with *Schedule) {
	n, w := len(s.Order), t.p.words()
	if n < 2 {
		return
	}
	cut := 1 + t.rng.IntN(n-1)
	clear(t.seen)
	for _, j := range s.Order[:cut] {
		t.seen[j] = true
	}
	for _, j := range with.Order {
		if t.seen[j] {
			continue
		}
		s.Order[cut] = j
		cut++
		copy(s.Sets[int(j)*w:(int(j)+1)*w], with.Sets[int(j)*w:(int(j)+1)*w])
	}
}

// mutate lets two columns change places, and a job one of its processors for another.
func (t *Titan) mutate(s *Schedule) {
	n := len(s.Order)
	if t.percent(orderChance) {
		i, j := t.rng.IntN(n), t.rng.IntN(n)
		s.Order[i], s.Order[j] = s.Order[j], s.Order[i]
	}
	if t.percent(setChance) {
		t.swap(s, int32(t.rng.IntN(n)))
	}
}

// swap takes a random processor of a job from it and gives it one that it does not
// have.
func (t *Titan) swap(s *Schedule, job int32) {
	m, own, w := t.p.Processors, t.p.Jobs[job].Processors, t.p.words()
	if own == m {
		return
	}
	set := s.Sets[int(job)*w : (int(job)+1)*w]
	lose := nth(set, t.rng.IntN(own), false)
	gain := nth(set, t.rng.IntN(m-own), true)
	set[lose/64] &^= 1 << (lose % 64)
	set[gain/64] |= 1 << (gain % 64)
}

// nth returns the n-th processor, from 0 on, that is in a set, or that is not.
func nth(set []uint64, n int, not bool) int {
	for k, x := range set {
		if not {
			x = ^x
		}
		if c := bits.OnesCount64(x); n >= c {
			n -= c
			continue
		}
		for ; n > 0; n-- {
			x &= x - 1
		}
		return 64*k + bits.TrailingZeros64(x)
	}
	panic("titan: a set has fewer processors than its job")
}

// scatter makes s a random schedule.
func (t *Titan) scatter(s *Schedule) {
	for i := range s.Order {
		s.Order[i] = int32(i)
	}
	t.rng.Shuffle(len(s.Order), func(i, j int) { s.Order[i], s.Order[j] = s.Order[j], s.Order[i] })
	clear(s.Sets)
	w := t.p.words()
	for j := range t.p.Jobs {
		set := s.Sets[j*w : (j+1)*w]
		for i := range t.p.Jobs[j].Processors {
			k := i + t.rng.IntN(len(t.perm)-i)
			t.perm[i], t.perm[k] = t.perm[k], t.perm[i]
			set[t.perm[i]/64] |= 1 << (t.perm[i] % 64)
		}
	}
}

// Settle gives each job, in the order of s's columns, the processors that are free
// first; of those that are free by its start, the ones that were free last, so that
// the others remain for jobs that could start earlier.
func (p *Problem) Settle(s *Schedule) {
	busy, perm := make([]grid.Time, p.Processors), make([]int32, p.Processors)
	for i := range perm {
		perm[i] = int32(i)
	}
	p.settle(s, busy, perm)
}

func (p *Problem) settle(s *Schedule, busy []grid.Time, perm []int32) {
	clear(busy)
	copy(busy, p.Free)
	clear(s.Sets)
	slices.SortFunc(perm, func(a, b int32) int { return cmp.Or(cmp.Compare(busy[a], busy[b]), cmp.Compare(a, b)) })
	for _, j := range s.Order {
		job := &p.Jobs[j]
		first := job.Processors - 1
		start := busy[perm[first]]
		for first+1 < len(perm) && busy[perm[first+1]] == start {
			first++
		}
		chosen := perm[first+1-job.Processors : first+1]
		for _, processor := range chosen {
			s.Give(p, j, int(processor))
			busy[processor] = start + job.Span
		}
		p.requeue(perm, busy, first+1-job.Processors, first+1)
	}
}

// requeue moves the processors perm[from:to], which are all free at one instant, to
// where they belong in the order of when processors are free.
func (p *Problem) requeue(perm []int32, busy []grid.Time, from, to int) {
	end := busy[perm[from]]
	at := to
	for at < len(perm) && busy[perm[at]] < end {
		at++
	}
	rotate(perm[from:at], to-from)
}

// rotate moves the first n elements behind the others.
func rotate(s []int32, n int) {
	slices.Reverse(s[:n])
	slices.Reverse(s[n:])
	slices.Reverse(s)
}
