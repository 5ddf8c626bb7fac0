package site

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/history"
)

// logKeeper is what moves lines to files: the test is one, and is killed now and then.
type logKeeper struct {
	b     *bench
	lines []history.Line
}

// move writes up to most lines to the files, and has the site know it unless it is killed
// before that.
func (k *logKeeper) move(most int, told bool) {
	k.b.t.Helper()
	var keys []string
	for key := range k.b.records {
		if strings.HasPrefix(key, history.Prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		l, err := history.Parse(k.b.records[key])
		if err != nil {
			k.b.t.Fatal(err)
		}
		if l.Seq > k.last() && most > 0 {
			k.lines = append(k.lines, l)
			most--
		}
	}
	if told {
		k.b.step(&HistoryKept{Last: k.last()})
	}
}

func (k *logKeeper) last() uint64 {
	if len(k.lines) == 0 {
		return 0
	}
	return k.lines[len(k.lines)-1].Seq
}

func loggingBench(t *testing.T) *bench {
	return newBench(t, func(c *Config) { c.History = &HistoryConfig{} })
}

// Whoever reads a line need not know the IDs of sites.
func TestLineNamesSites(t *testing.T) {
	b := newBench(t, func(c *Config) { c.History, c.Name = &HistoryConfig{}, "alpha" })
	l := &history.Line{Kind: history.Job, ID: "x", Home: b.cfg.ID, Site: b.cfg.ID, Bank: b.cfg.ID}
	b.site.chronicle.write(l, &grid.Outbox{})
	if l.HomeName != "alpha" || l.SiteName != "alpha" || l.BankName != "alpha" {
		t.Errorf("home %q, site %q, bank %q; want all alpha", l.HomeName, l.SiteName, l.BankName)
	}
}

// Killed wherever it may be, the log has each job that ended once, in order, with numbers
// that rise by one.
func TestJobLogSurvivesKills(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b := loggingBench(t)
		k := &logKeeper{b: b}
		var want []string
		for n := uint64(1); n <= 60; n++ {
			b.now += grid.Second
			b.step(&Submit{Token: n, Job: b.job(n, 1+rng.Int64N(4))})
			if rng.IntN(3) == 0 {
				b.step(&Cancel{Token: 1000 + n, Job: grid.JobID{Lo: n}, Cause: "unwanted"})
			}
			for len(b.started) > 0 {
				task := b.started[0]
				b.started = b.started[1:]
				b.now += 10 * grid.Second
				b.step(b.ended(task, rng.Int32N(2)))
			}
			if v, ok := b.site.Job(grid.JobID{Lo: n}); !ok || !v.State.Terminal() {
				t.Fatalf("job %d is not over", n)
			}
			want = append(want, grid.JobID{Lo: n}.String())
			switch rng.IntN(5) {
			case 0:
				k.move(rng.IntN(4), true)
			case 1:
				k.move(rng.IntN(4), false) // killed before the site knew
				fallthrough
			case 2:
				b.cfg.History = &HistoryConfig{Last: k.last()}
				b.crash()
			}
		}
		k.move(100, true)
		for key := range b.records {
			if strings.HasPrefix(key, history.Prefix) {
				t.Errorf("seed %d: %s is still there", seed, key)
			}
		}
		var got []string
		for i, l := range k.lines {
			got = append(got, l.ID)
			if l.Seq != uint64(i+1) {
				t.Fatalf("seed %d: line %d has number %d", seed, i, l.Seq)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: lines of %v, want %v", seed, got, want)
		}
	}
}

// heldFor returns for how long something was had.
func heldFor(l *history.Line) grid.Time {
	if l.Start == 0 {
		return 0
	}
	return l.End - l.Start
}

// What a line says of jobs of one's own and of others, and of a lease.
func TestJobLogLines(t *testing.T) {
	b := loggingBench(t)
	k := &logKeeper{b: b}
	job := b.job(1, 3)
	job.Name = "fit"
	b.step(&Submit{Token: 1, Job: job})
	b.now += 20 * grid.Second
	b.step(b.ended(b.started[0], 3))
	b.step(&Submit{Token: 2, Job: b.job(2, 4)}, &Submit{Token: 3, Job: b.job(3, 4)})
	b.step(&Cancel{Token: 4, Job: grid.JobID{Lo: 3}, Cause: "unwanted"})

	// A guest: ended here, cancelled in the queue, given back.
	for n := uint64(11); n <= 13; n++ {
		guest := b.job(n, 2)
		guest.Home, guest.User = "beta", "eve"
		e := &entry{job: guest, state: Queued, foreign: true, adrift: true, epoch: 2, award: market.Award{Site: "here", Epoch: 2, Price: grid.Price(grid.Credit), Cost: grid.Credit, Until: grid.Never}}
		b.site.jobs.add(e)
		b.out.Save(e)
	}
	guest := func(n uint64) *entry { return b.site.jobs.byID[grid.JobID{Lo: n}] }
	guest(11).state, guest(11).start = Running, b.now-10*grid.Second
	b.step(&grid.TaskEnded{ID: guest(11).task(), Result: grid.Result{Start: b.now - 10*grid.Second, End: b.now, ExitCode: 137, Reason: "out of memory"}})
	b.site.jobs.withdraw(b.now, guest(12), "cancelled by the owner", &b.out)
	b.site.jobs.expired(b.now, guest(13), &b.out)
	b.site.chronicle.lent(b.now, &lease.Ended{Cause: lease.Freed, Lease: lease.Lease{
		ID: lease.ID{Borrower: "beta", Number: 5}, Lent: true, State: lease.Active, Processors: 4, Since: b.now - 10*grid.Minute, End: b.now + grid.Hour, Price: grid.Price(grid.Credit),
	}}, &b.out)
	b.site.chronicle.lent(b.now, &lease.Ended{Lease: lease.Lease{ID: lease.ID{Borrower: "beta", Number: 5}, State: lease.Ending}}, &b.out) // told again
	b.carryOut()
	k.move(100, true)
	var got []string
	for _, l := range k.lines {
		got = append(got, fmt.Sprintf("%s %v %s@%s at %s: %d for %v, %v used, costs %v: %s %d %q",
			l.Kind, l.Foreign, l.User, l.Home, l.Site, l.Processors, heldFor(&l), l.Used, l.Cost, l.State, l.Exit, l.Reason))
	}
	want := []string{
		`job false ann@here at here: 3 for 10s, 30s used, costs 0.008333: failed 3 ""`,
		`job false ann@here at here: 4 for 0s, 0s used, costs 0: cancelled 143 "unwanted"`,
		`job true eve@beta at here: 2 for 10s, 20s used, costs 0.005556: failed 137 "out of memory"`,
		`job true eve@beta at here: 2 for 0s, 0s used, costs 0: cancelled 143 "cancelled by the owner"`,
		`job true eve@beta at here: 2 for 0s, 0s used, costs 0: returned 0 ""`,
		`lease true @beta at here: 4 for 10m0s, 40m0s used, costs 0.666667: ended 0 "released"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Nothing is taken in whose end could not be logged.
func TestFullJobLog(t *testing.T) {
	b := loggingBench(t)
	for range history.PendingMax {
		b.site.chronicle.log.Add(&history.Line{Kind: history.Job, ID: "x"}, &grid.Outbox{})
	}
	b.step(&Submit{Token: 1, Job: b.job(1, 1)})
	if a := b.answers[1].(*Submitted); a.Err == nil || !strings.Contains(a.Err.Error(), "job log") {
		t.Errorf("%+v", a)
	}
	b.step(&HistoryKept{Last: 10})
	b.step(&Submit{Token: 2, Job: b.job(2, 1)})
	if a := b.answers[2].(*Submitted); a.Err != nil {
		t.Errorf("%+v", a)
	}
}
