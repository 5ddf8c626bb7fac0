package lease

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// strdRun checks what must hold whatever happens to messages.
type strdRun struct {
	*script
	t       *rapid.T
	sizes   map[grid.SiteID]int64
	width   map[uint64]int64
	running map[uint64]grid.SiteID
	ran     map[uint64]bool
}

// begun: a job begins on so many processors, of which some are leased.
func (r *strdRun) begun(s *scriptSite, id grid.TaskID, own int64, leases []Lease) {
	job, processors := id.Job.Lo, own
	for _, l := range leases {
		processors += l.Processors
		theirs, there := r.sites[l.Lender].book.Get(l.ID)
		if !there || theirs.State != Active || theirs.Processors != l.Processors {
			r.t.Fatalf("job %d begins on %+v, which its lender has as %+v", job, l, theirs)
		}
	}
	if r.ran[job] || processors != r.width[job] {
		r.t.Fatalf("job %d of width %d begins on %d processors, before: %t", job, r.width[job], processors, r.ran[job])
	}
	r.running[job], r.ran[job] = s.id, true
}

// hear is what the owner of a site does.
func (r *strdRun) hear(s *scriptSite, in grid.Input) {
	switch in := in.(type) {
	case *Brought:
		leases := in.Leases
		if leases == nil {
			leases = []Lease{in.Lease}
		}
		r.begun(s, in.Task, in.Own, leases)
	case *Lost:
		if !in.Rest {
			delete(r.running, in.Task.Job.Lo)
		}
	}
}

// check compares what the books of borrowers and lenders say.
func (r *strdRun) check() {
	for _, s := range r.sites {
		for _, l := range s.book.Leases() {
			if l.Lent || l.State != Active {
				continue
			}
			if theirs, there := r.sites[l.Lender].book.Get(l.ID); l.End > r.now && (!there || theirs.End < l.End) {
				r.t.Fatalf("at %v %s has a lease until %v, its lender %s until %v (%t)", r.now, s.id, l.End, l.Lender, theirs.End, there)
			}
		}
	}
}

// TestSTRDUnderFaults: whatever happens to messages, a job begins at most once, on as many
// processors as it asked for, each of them granted; in the end every processor is back.
func TestSTRDUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &strdRun{t: t, sizes: map[grid.SiteID]int64{}, width: map[uint64]int64{}, running: map[uint64]grid.SiteID{}, ran: map[uint64]bool{}}
		r.script = newScript()
		r.script.t = t
		r.heard = r.hear
		r.started = func(s *scriptSite, q lrms.Request) { r.begun(s, q.ID, q.Processors, nil) }
		names := []grid.SiteID{"a", "b", "c"}[:rapid.IntRange(2, 3).Draw(t, "sites")]
		policy := rapid.SampledFrom([]Policy{SSTRD, XSTRD}).Draw(t, "policy")
		for _, name := range names {
			var links []string
			for _, other := range names {
				if other != name {
					links = append(links, fmt.Sprintf("%s:sibling", other))
				}
			}
			r.sizes[name] = rapid.Int64Range(1, 8).Draw(t, "processors")
			r.run("site name=%s processors=%d policy=%s links=%s", name, r.sizes[name], policy, strings.Join(links, "+"))
		}
		for job := uint64(1); job <= 25; job++ {
			site := rapid.SampledFrom(names).Draw(t, "at")
			r.width[job] = rapid.Int64Range(1, r.sizes[site]).Draw(t, "width")
			r.run("submit site=%s job=%d processors=%d for=%dm", site, job, r.width[job], rapid.IntRange(1, 9).Draw(t, "minutes"))
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				r.act()
				r.check()
			}
		}
		for range 200 { // the network heals, and jobs end one after the other
			r.run("advance for=20s")
			r.endOne()
		}
		r.run("advance for=2h")
		for _, s := range r.sites {
			if idle := s.cluster.Idle(r.now); idle != r.sizes[s.id] || len(s.book.Leases()) > 0 {
				t.Errorf("%s has %d of %d processors idle in the end, leases %v", s.id, idle, r.sizes[s.id], s.book.Leases())
			}
		}
		for job := range r.width {
			if !r.ran[job] {
				t.Errorf("job %d never ran", job)
			}
		}
	})
}

// act has something happen.
func (r *strdRun) act() {
	what := rapid.SampledFrom([]string{"deliver", "deliver", "deliver", "drop", "copy", "last", "wait", "end"}).Draw(r.t, "what")
	switch {
	case what == "end":
		r.endOne()
	case what == "wait":
		r.run("wait for=%ds", rapid.SampledFrom([]int{0, 1, 7, 60}).Draw(r.t, "seconds"))
	case len(r.flight) > 0 && what == "deliver":
		r.run("deliver count=%d", rapid.IntRange(1, 4).Draw(r.t, "messages"))
	case len(r.flight) > 0:
		r.run("%s", what)
	}
}

// endOne ends the oldest job that runs.
func (r *strdRun) endOne() {
	for _, job := range slices.Sorted(maps.Keys(r.running)) {
		site := r.running[job]
		delete(r.running, job)
		r.run("end site=%s job=%d", site, job)
		return
	}
}
