package site

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
)

// TestSpreadHasBounds: a job of more tasks than start together is refused as it is
// submitted. It would wait for those that nobody starts, and never end.
func TestSpreadHasBounds(t *testing.T) {
	for tasks, want := range map[int64]error{grid.RanksMax: nil, grid.RanksMax + 1: ErrInvalid} {
		b := newBench(t, func(c *Config) { c.Parts, c.Processors = Everything, 2*grid.RanksMax })
		j := b.job(1, tasks)
		j.Tasks, j.Spread = tasks, true
		b.step(&Submit{Token: 1, Job: j})
		if got := b.answers[1].(*Submitted).Err; !errors.Is(got, want) {
			t.Errorf("%d tasks: error %v, want %v", tasks, got, want)
		}
	}
}

// TestSpreadLossesCount: a job that may be spread and vanishes time and again is given up.
func TestSpreadLossesCount(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Parts = Everything })
	j := b.job(1, 2)
	j.Tasks, j.Spread = 2, true
	b.submit(j)
	for range lossesMax {
		task := b.running(1)
		b.now += grid.Minute
		b.step(&grid.TaskEnded{ID: task.ID, Lost: true})
	}
	if v := b.want(1, Failed); v.Reason != causeLosses {
		t.Errorf("it fails as %q, want %q", v.Reason, causeLosses)
	}
}

// TestSpreadOutlivesItsClock: a job one of whose leases had ended while the daemon was down waits, after yet
// another restart, as long as its tasks were said to live, and no longer, however the clock was set.
func TestSpreadOutlivesItsClock(t *testing.T) {
	const lives = 10 * grid.Minute
	for _, by := range []grid.Time{0, 5 * grid.Hour, -5 * grid.Hour} {
		b := newBench(t, func(c *Config) { c.Parts = Everything })
		sp, now := b.site.spreads, 10*grid.Hour
		j := b.job(1, 2)
		j.Tasks, j.Spread = 2, true
		e := &entry{job: j, epoch: 1, state: Running, gang: &grid.Gang{Task: grid.TaskID{Job: j.ID, Epoch: 1}, Each: 1, Parts: []grid.GangPart{
			{Site: "there", Pilot: grid.Pilot{Site: "there", Key: 7}, Processors: 2},
		}}}
		sp.recovery.waiting = []*entry{e}
		for _, l := range []lease.Lease{{Source: "there", Key: 7}, {Source: "there", Key: 8}} { // the second is another job's
			sp.over(now, &lease.Ended{Lease: l, Gone: now + lives*grid.Time(l.Key-6)}, &b.out)
		}
		now += by
		if _, _, gone, err := sp.processors(now, e); err == nil || gone != now+lives || e.gone != gone {
			t.Errorf("set by %v: its tasks are dead %v after the restart, and it waits for %v (%v), want %v", by, gone-now, e.gone-now, err, lives)
		}
	}
}

// TestSpreadKnowsItsLeases: after a restart a job goes on with the processors that it ran on, and
// with no others that the site has borrowed meanwhile.
func TestSpreadKnowsItsLeases(t *testing.T) {
	type borrowed struct {
		source grid.SiteID
		key    uint64
	}
	for _, c := range []struct {
		name   string
		leases []borrowed
		want   []uint64 // numbers of those it goes on with
		err    error
	}{
		{"all are there", []borrowed{{"there", 8}, {"there", 7}, {"yonder", 7}}, []uint64{2, 3}, nil},
		{"one has ended", []borrowed{{"there", 7}}, []uint64{1}, errGone},
		{"others are there", []borrowed{{"there", 8}, {"yonder", 9}}, nil, errGone},
		{"none is", nil, nil, errGone},
	} {
		b := newBench(t, func(c *Config) { c.Parts = Everything })
		sp, now := b.site.spreads, grid.Hour
		records := make(map[string][]byte)
		for i, l := range c.leases {
			number := uint64(i + 1)
			value, err := proto.Marshal(&wirepb.LeaseRecord{
				Number: number, Borrower: string(sp.cfg.ID), Lender: "lender", Processors: 2, State: uint32(lease.Active), Epoch: number,
				End: int64(2 * grid.Hour), Limit: int64(2 * grid.Hour), Span: int64(grid.Hour), Subject: wire.JobBytes(grid.JobID{Lo: 1}), Sink: string(sp.cfg.ID),
				Source: string(l.source), Key: l.key, Hops: 1, GoneSpan: int64(30 * grid.Minute),
			})
			if err != nil {
				t.Fatal(err)
			}
			records[lease.RecordPrefix+string(sp.cfg.ID)+"/"+strconv.FormatUint(number, 10)] = value
		}
		if err := sp.book.Recover(now, maps.All(records), &b.out); err != nil {
			t.Fatal(err)
		}
		j := b.job(1, 5)
		e := &entry{job: j, epoch: 1, state: Running, goneSpan: grid.Minute, gang: &grid.Gang{Task: grid.TaskID{Job: j.ID, Epoch: 1}, Each: 1, Parts: []grid.GangPart{
			{Site: sp.cfg.ID, Processors: 1}, {Site: "there", Pilot: grid.Pilot{Site: "there", Key: 7}, Processors: 2},
			{Site: "yonder", Pilot: grid.Pilot{Site: "yonder", Key: 7}, Processors: 2},
		}}}
		own, ids, gone, err := sp.processors(now, e)
		var numbers []uint64
		for _, id := range ids {
			numbers = append(numbers, id.Number)
		}
		if own != 1 || !slices.Equal(numbers, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %d of its own, leases %v, %v; want 1, %v, %v", c.name, own, numbers, err, c.want, c.err)
		}
		if late := gone >= now+30*grid.Minute; late != (len(c.want) > 0) || gone < now+grid.Minute {
			t.Errorf("%s: nothing of it is left from %v on", c.name, gone)
		}
	}
}

// TestSpreadThatRunsHasItsProcessors: of two jobs that were given up while the daemon was down, the one whose tasks
// run here still has the site's processors after a restart, and not the one that came first and has left them.
func TestSpreadThatRunsHasItsProcessors(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Parts, c.Processors = Everything, 4 })
	sp, now := b.site.spreads, grid.Hour
	var all []*entry
	for number, own := range map[uint64]int64{1: 2, 2: 4} {
		j := b.job(number, own+2)
		j.Tasks, j.Spread = own+2, true
		e := &entry{job: j, epoch: 1, state: Running, gone: now, goneSpan: grid.Minute, gang: &grid.Gang{Task: grid.TaskID{Job: j.ID, Epoch: 1}, Each: 1, Parts: []grid.GangPart{
			{Site: sp.cfg.ID, Processors: own}, {Site: "there", Pilot: grid.Pilot{Site: "there", Key: number}, Processors: 2},
		}}}
		sp.jobs.byID[j.ID] = e
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.job.ID.Compare(b.job.ID) })
	sp.recovery.waiting = slices.Clone(all)
	sp.recovery.adopted(now, &Adopted{ID: grid.SquadTask(all[1].task(), 0), Start: now}, &b.out)
	sp.recovery.tick(now, &b.out)
	if idle := sp.cluster.Idle(now); idle != 0 {
		t.Errorf("%d processors are idle, and the tasks of job 2 run on all", idle)
	}
	if !sp.cluster.Ended(now, all[1].task()) {
		t.Error("job 2 has no processors, and its tasks run here")
	}
}
