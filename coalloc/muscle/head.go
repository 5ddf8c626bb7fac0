package muscle

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// Bounds and defaults of a Head.
const (
	WindowMax    = grid.Hour
	BatchMax     = 1000
	BatchDefault = 500

	// again is how long jobs that were left wait at most, as a member may be back by
	// then, and those that came back for the first time; then twice as long each time, up
	// to againMax.
	again    = 2 * grid.Second
	againMax = 2 * grid.Minute

	// unitsMax is in how many units of several processors the widest cluster is planned
	// at most: packing 500 jobs over ten such clusters takes milliseconds.
	unitsMax = 128
)

// HeadConfig is how a site collects jobs for the clusters it heads.
type HeadConfig struct {
	Collect   Collect
	Window    grid.Time // by CollectWindow: from the first job that waits to the packing; 0 packs at the next instant
	Threshold grid.Time // of CollectMakespan, 0 to ThresholdMax
	Batch     int       // most jobs of a packing, 1 to BatchMax; when as many have come they are collected no longer; 0: BatchDefault
	Policy    Policy
	Plan      *PlanConfig // how the order of a share is looked for; nil: HeadPlan
}

// Head collects the jobs of a site that heads clusters, and shares them out.
// Deterministic; not safe for concurrent use.
type Head struct {
	cfg     HeadConfig
	rng     *rand.Rand
	planner *Planner
	tickets []*ticket // in the order of arrival; job nil: withdrawn
	waiting map[grid.JobID]*ticket
	fresh   int // of those waiting, have come since the last window
	closes  grid.Time
	look    grid.Time // by CollectMakespan: no cluster runs short before, as far as is known
	windows uint64

	// What waits could not be taken by any of the members as they were looked at, and
	// has not to be looked at again before one of them, or a job, has come.
	settled bool
	looked  []look
}

// look is of a member what decides whether it could take a job.
type look struct {
	site       grid.SiteID
	presence   Presence
	processors int64
}

func lookAt(m *Member) look { return look{m.Site, m.Presence, m.Processors} }

// ticket is a job that waits for the end of a window.
type ticket struct {
	job    *grid.Job
	site   grid.SiteID   // chosen on arrival; empty: when the window closes
	barred []grid.SiteID // not in this window
	unfit  []grid.SiteID // never
	fresh  bool          // has come since the last window
	back   grid.Time     // when it came back from a member; grid.Never: it has not
	left   bool          // no member that was there in the last window could take it
}

// may reports whether the job could run at a cluster, now or ever.
func (t *ticket) may(m *Member) (now, ever bool) {
	ever = m.wide(t.job) && !slices.Contains(t.unfit, m.Site)
	return ever && !slices.Contains(t.barred, m.Site) && (t.site == "" || t.site == m.Site), ever
}

// Window is what came of one.
type Window struct {
	Number  uint64 // counts from 1
	Policy  Policy
	Members []Member

	// Allotments has the jobs that were shared out, in the order in which the clusters
	// are to be given them, and those that no cluster can take.
	Allotments []Allotment
	Left       int // jobs that wait for the next window
	Packed     int // jobs that were shared out
	Clusters   int // took part

	free [][]grid.Time // by member
	unit int64
}

// Allotment is one job's share.
type Allotment struct {
	Job       *grid.Job
	Member    int       // of Window.Members; -1: no cluster is wide enough, present or not
	Finish    grid.Time // planned, by the run time that its user states
	Placement Placement // why, if MUSCLE packed
}

// NewHead returns a head for which nothing waits. The error is about cfg.
func NewHead(cfg HeadConfig, rng *rand.Rand) (*Head, error) {
	if cfg.Batch == 0 {
		cfg.Batch = BatchDefault
	}
	switch {
	case cfg.Window < 0 || cfg.Window > WindowMax:
		return nil, fmt.Errorf("muscle: window of %v, want 0 to %v", cfg.Window, WindowMax)
	case int(cfg.Collect) >= len(CollectNames):
		return nil, fmt.Errorf("muscle: unknown rule %d of collecting", cfg.Collect)
	case cfg.Threshold < 0 || cfg.Threshold > ThresholdMax:
		return nil, fmt.Errorf("muscle: threshold of %v, want 0 to %v", cfg.Threshold, ThresholdMax)
	case cfg.Batch < 1 || cfg.Batch > BatchMax:
		return nil, fmt.Errorf("muscle: batch of %d jobs, want 1 to %d", cfg.Batch, BatchMax)
	case int(cfg.Policy) >= len(PolicyNames):
		return nil, fmt.Errorf("muscle: unknown policy %d", cfg.Policy)
	}
	plan := HeadPlan
	if cfg.Plan != nil {
		plan = *cfg.Plan
	}
	planner, err := NewPlanner(plan, rng)
	if err != nil {
		return nil, err
	}
	return &Head{cfg: cfg, rng: rng, planner: planner, waiting: make(map[grid.JobID]*ticket), closes: grid.Never}, nil
}

// Collect lets a job wait for the end of the window, which opens with the first one.
// It is not given to the sites in barred this time, and never to those in unfit. A job
// that comes back from a member has waited already, so its window is short at first;
// refusals is how often it did.
func (h *Head) Collect(now grid.Time, job *grid.Job, barred, unfit []grid.SiteID, refusals int) {
	if h.waiting[job.ID] != nil {
		panic(fmt.Sprintf("muscle: job %s is collected twice", job.ID))
	}
	t := &ticket{job: job, barred: barred, unfit: unfit, back: grid.Never}
	h.tickets = append(h.tickets, t)
	h.waiting[job.ID] = t
	h.settled = false
	if refusals > 0 {
		t.back = now
		h.closes = min(h.closes, now.Add(h.pause(refusals)))
		return
	}
	if h.cfg.Collect == CollectMakespan {
		h.closes = min(h.closes, max(now, h.look))
	} else {
		h.closes = min(h.closes, now.Add(h.cfg.Window))
	}
	t.fresh = true
	if h.fresh++; h.fresh >= h.cfg.Batch {
		h.closes = now
	}
}

// pause is how long jobs wait that were not shared out, or came back.
func (h *Head) pause(refusals int) grid.Time {
	longest := min(again<<min(refusals-1, 10), againMax)
	if refusals == 1 && h.cfg.Collect == CollectWindow {
		longest = min(longest, h.cfg.Window)
	}
	return max(longest, grid.Millisecond)
}

// Withdraw takes a job out, and reports whether it was waiting.
func (h *Head) Withdraw(id grid.JobID) bool {
	t := h.waiting[id]
	if t == nil {
		return false
	}
	if t.fresh {
		h.fresh--
	}
	t.job = nil
	delete(h.waiting, id)
	if len(h.waiting) == 0 {
		h.tickets, h.closes, h.fresh = h.tickets[:0], grid.Never, 0
	}
	return true
}

// Waiting returns how many jobs wait, and when the window closes.
func (h *Head) Waiting() (jobs int, closes grid.Time) { return len(h.waiting), h.closes }

// NextTimer returns when Close is to be called, and grid.Never if nothing waits.
func (h *Head) NextTimer() grid.Time { return h.closes }

// Close ends the window: it shares out, of the jobs that fit a cluster that is present,
// the first ones, as many as a batch holds. The others wait for the next window, which
// closes at once if it is full. now must have reached NextTimer.
func (h *Head) Close(now grid.Time, members []Member) *Window {
	h.windows++
	w := &Window{Number: h.windows, Policy: h.cfg.Policy, Members: members, free: make([][]grid.Time, len(members))}
	w.measure()
	if h.settled && len(h.waiting) > 0 && slices.EqualFunc(h.looked, members, func(l look, m Member) bool { return l == lookAt(&m) }) {
		w.Left, h.closes = len(h.waiting), now.Add(h.pause(1))
		return w
	}
	batch, more := h.batch(now, w)
	h.share(now, w, batch)
	h.tickets = slices.DeleteFunc(h.tickets, func(t *ticket) bool { return t.job == nil || h.waiting[t.job.ID] != t })
	h.fresh, h.closes, h.look = 0, grid.Never, 0
	switch {
	case more:
		h.closes = now
	case len(h.tickets) > 0:
		h.closes = now.Add(h.pause(1))
	}
	h.settled, h.looked = !more, h.looked[:0]
	for _, t := range h.tickets {
		if t.back == now {
			h.settled = false
			continue // it keeps its bars for the next window
		}
		h.settled = h.settled && t.barred == nil
		t.barred, t.fresh = nil, false // bars are of one window
	}
	for i := range members {
		h.looked = append(h.looked, lookAt(&members[i]))
	}
	w.Left = len(h.tickets)
	return w
}

// Left reports whether a job waits that no member could take that was there in the
// last window.
func (h *Head) Left(id grid.JobID) bool {
	t := h.waiting[id]
	return t != nil && t.left
}

// Preview returns what a window that closes now would make of a job, together with
// those that wait, as many as a batch holds. The Head does not change.
func (h *Head) Preview(now grid.Time, job *grid.Job, members []Member) *Window {
	p, err := NewHead(h.cfg, rand.New(rand.NewPCG(h.windows, uint64(len(h.waiting)))))
	if err != nil {
		panic(err) // it was fine once
	}
	p.windows = h.windows
	for _, t := range h.tickets {
		if len(p.tickets) == h.cfg.Batch-1 {
			break
		}
		if t.job != nil {
			p.tickets = append(p.tickets, &ticket{job: t.job, site: t.site, barred: t.barred, unfit: t.unfit})
		}
	}
	p.tickets = append(p.tickets, &ticket{job: job})
	for _, t := range p.tickets {
		p.waiting[t.job.ID] = t
	}
	return p.Close(now, members)
}

// measure settles the units in which clusters are planned, and when they are free.
func (w *Window) measure() {
	widest := int64(1)
	for i := range w.Members {
		widest = max(widest, w.Members[i].Processors)
	}
	w.unit = (widest + unitsMax - 1) / unitsMax
	for i := range w.Members {
		m := &w.Members[i]
		if m.Weights.Validate() != nil {
			m.Weights = titan.DefaultWeights
		}
		if m.Presence == Present && m.Processors > 0 {
			w.Clusters++
			w.free[i] = m.free(w.unit)
		}
	}
}

// batch takes the tickets of the jobs that are shared out now. Jobs that no cluster
// will ever take are allotted to nobody. more: there would be more for another batch. What has come
// back at this instant is not taken: jobs that are refused at once would go round, a batch after the
// other, for ever.
func (h *Head) batch(now grid.Time, w *Window) (batch []*ticket, more bool) {
	for _, t := range h.tickets {
		if t.job == nil || t.back == now {
			continue
		}
		if t.site != "" && !slices.ContainsFunc(w.Members, func(m Member) bool { return m.Site == t.site && m.Presence == Present }) {
			t.site = ""
		}
		fits, hope := false, false
		for i := range w.Members {
			m := &w.Members[i]
			could, ever := t.may(m)
			fits, hope = fits || could && m.Presence == Present, hope || m.hope(ever)
		}
		t.left = !fits
		switch {
		case !hope:
			w.Allotments = append(w.Allotments, Allotment{Job: t.job, Member: -1, Placement: Placement{Cluster: -1}})
			delete(h.waiting, t.job.ID)
		case !fits:
		case len(batch) == h.cfg.Batch:
			more = true
		default:
			batch = append(batch, t)
			delete(h.waiting, t.job.ID)
		}
	}
	return batch, more
}

// share shares a batch out and plans in which order the clusters are given it.
func (h *Head) share(now grid.Time, w *Window, tickets []*ticket) {
	if len(tickets) == 0 {
		return
	}
	b, clusters := w.describe(now, tickets)
	packing, err := h.cfg.Policy.Share(b, h.rng)
	if err != nil || len(packing.Unplaced) > 0 {
		panic(fmt.Sprintf("muscle: window %d: %v", w.Number, err)) // all was checked before
	}
	w.Packed = len(tickets)
	first := len(w.Allotments)
	for c := range b.Clusters {
		share := &packing.Shares[c]
		for i, start := range h.plan(b, c, share) {
			job := share.Jobs[i]
			a := Allotment{Job: tickets[job].job, Member: clusters[c]}
			a.Finish = now.Add(start).Add(b.Jobs[job].Spans[c])
			if packing.Placements != nil {
				a.Placement = packing.Placements[job]
				a.Placement.Space = int(min(int64(a.Placement.Space)*w.unit, w.Members[a.Member].Processors))
				a.Placement.Row = int(min(int64(a.Placement.Row)*w.unit, w.Members[a.Member].Processors))
			}
			a.Placement.Cluster, a.Placement.Start = clusters[c], start
			w.Allotments = append(w.Allotments, a)
		}
	}
	slices.SortStableFunc(w.Allotments[first:], func(a, b Allotment) int {
		return cmp.Or(cmp.Compare(a.Placement.Start, b.Placement.Start), cmp.Compare(a.Member, b.Member))
	})
}

// describe makes the batch of a window. Processors are counted in units.
func (w *Window) describe(now grid.Time, tickets []*ticket) (b *Batch, clusters []int) {
	b = &Batch{Jobs: make([]Job, len(tickets))}
	for i := range w.Members {
		if w.free[i] != nil {
			clusters = append(clusters, i)
			b.Clusters = append(b.Clusters, Cluster{
				Processors: len(w.free[i]), Free: w.free[i], Weights: w.Members[i].Weights, Has: w.Members[i].has(w.unit),
			})
		}
	}
	spans := make([]grid.Time, len(tickets)*len(clusters))
	for i, t := range tickets {
		j := &b.Jobs[i]
		j.Processors, j.Deadline = int((t.job.Processors+w.unit-1)/w.unit), grid.Never
		j.Arrival = min(max(t.job.Submit-now, -spanMax), 0)
		if t.job.Deadline != grid.Never {
			j.Deadline = within(t.job.Deadline - now)
		}
		j.Spans = spans[i*len(clusters):][:len(clusters)]
		for c, m := range clusters {
			if could, _ := t.may(&w.Members[m]); could {
				j.Spans[c] = w.Members[m].span(t.job)
			}
		}
	}
	return b, clusters
}

// plan returns when each job of a share starts in the best schedule that is found. A
// cluster serves jobs in the order in which it is given them, so this is where the order
// is chosen.
func (h *Head) plan(b *Batch, cluster int, share *Share) []grid.Time {
	if len(share.Jobs) == 0 {
		return nil
	}
	p := b.Problem(cluster, share)
	_, cut := h.planner.Plan(b, p, share)
	starts := h.planner.Best().Starts(p, nil)
	for i := range starts {
		starts[i] <<= cut
	}
	return starts
}

// Alone returns when a job would be done at a member if it were the only one of the
// window, and grid.Never if it cannot run there.
func (w *Window) Alone(now grid.Time, job *grid.Job, member int) grid.Time {
	m := &w.Members[member]
	if w.free[member] == nil || !m.wide(job) {
		return grid.Never
	}
	units := (job.Processors + w.unit - 1) / w.unit
	return now.Add(w.free[member][units-1]).Add(m.span(job))
}
