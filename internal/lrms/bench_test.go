package lrms

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

// BenchmarkReplay replays CTC through the cluster under a bare event loop;
// parsing is not measured.
func BenchmarkReplay(b *testing.B) {
	for _, d := range []Discipline{EASY, FCFS} {
		b.Run(d.String(), func(b *testing.B) {
			const processors = 430
			jobs := readTrace(b, "CTC-SP2-1996-3.1-cln.swf.gz", processors, grid.Never)
			var loop replayer
			b.ReportAllocs()
			for b.Loop() {
				c, err := New(Config{Processors: processors, Discipline: d})
				if err != nil {
					b.Fatal(err)
				}
				loop.run(c, jobs, nil)
			}
			b.ReportMetric(float64(len(jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// mill is a saturated cluster whose queue is kept at one length.
type mill struct {
	c       *Cluster
	rng     *rand.Rand
	ends    endHeap
	runs    []grid.Time
	started []Request
	now     grid.Time
}

const millProcessors = 1024

func newMill(b *testing.B, queued int) *mill {
	c, err := New(Config{Processors: millProcessors, QueueMax: 2 * queued})
	if err != nil {
		b.Fatal(err)
	}
	m := &mill{c: c, rng: rand.New(rand.NewPCG(1, 2))}
	for range queued {
		m.submit()
	}
	m.schedule()
	for range 2 * queued / 10 {
		m.turn() // until what backfills easily is gone
	}
	return m
}

// submit adds a job like those of the logs: mostly powers of two, estimates over
// three orders of magnitude, run times below them.
func (m *mill) submit() {
	processors := int64(1) << m.rng.IntN(10)
	if m.rng.IntN(4) == 0 {
		processors += m.rng.Int64N(processors)
	}
	estimate := grid.Minute << m.rng.IntN(11)
	m.runs = append(m.runs, 1+grid.Time(m.rng.Int64N(int64(estimate))))
	if err := m.c.Submit(m.now, Request{ID: replayID(len(m.runs) - 1), Processors: processors, Estimate: estimate}); err != nil {
		panic(err)
	}
}

func (m *mill) schedule() {
	m.started = m.c.Schedule(m.now, m.started[:0])
	for _, r := range m.started {
		i := int(r.ID.Job.Lo)
		m.ends.push(endEvent{m.now + m.runs[i], i})
	}
}

// turn ends one job, starts what fits, and submits as many as started.
func (m *mill) turn() {
	m.now = m.ends[0].at
	m.c.Ended(m.now, replayID(m.ends.pop()))
	m.schedule()
	for range m.started {
		m.submit()
	}
}

// BenchmarkQueue measures a completion with its pass, and a submission, with that
// many jobs in the queue.
func BenchmarkQueue(b *testing.B) {
	for n := 1_000; n <= 1_000_000; n *= 10 {
		b.Run(fmt.Sprintf("turn/%d", n), func(b *testing.B) {
			m := newMill(b, n)
			b.ReportAllocs()
			for b.Loop() {
				m.turn()
			}
		})
		b.Run(fmt.Sprintf("submit/%d", n), func(b *testing.B) {
			m := newMill(b, n)
			b.ReportAllocs()
			for b.Loop() {
				m.submit()
				m.schedule()
				m.c.Cancel(m.now, replayID(len(m.runs)-1))
			}
		})
	}
}

// book makes standing reservations, two thirds of them committed.
func book(b *testing.B, standing int) (*Cluster, *rand.Rand) {
	c, err := New(Config{Processors: millProcessors, QueueMax: 2 * standing, Hold: grid.Second})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range standing {
		r := Request{ID: replayID(i), Processors: 1 + rng.Int64N(millProcessors), Estimate: grid.Minute << rng.IntN(11)}
		if _, err := c.Reserve(0, r, grid.Never); err != nil {
			b.Fatal(err)
		}
		if i%3 != 0 {
			if err := c.Commit(0, r.ID); err != nil {
				b.Fatal(err)
			}
		}
	}
	c.Schedule(0, nil)
	return c, rng
}

// BenchmarkReserve measures a reservation and its withdrawal among others, and a
// scheduling pass after each.
func BenchmarkReserve(b *testing.B) {
	for n := 10; n <= 10_000; n *= 10 {
		b.Run(fmt.Sprintf("reserve/%d", n), func(b *testing.B) {
			c, rng := book(b, n)
			b.ReportAllocs()
			for b.Loop() {
				r := Request{ID: replayID(n), Processors: 1 + rng.Int64N(millProcessors), Estimate: grid.Minute << rng.IntN(11)}
				if _, err := c.Reserve(0, r, grid.Never); err != nil {
					b.Fatal(err)
				}
				c.Cancel(0, r.ID)
			}
		})
		b.Run(fmt.Sprintf("schedule/%d", n), func(b *testing.B) {
			c, rng := book(b, n)
			var started []Request
			b.ReportAllocs()
			for b.Loop() {
				r := Request{ID: replayID(n), Processors: 1 + rng.Int64N(millProcessors), Estimate: grid.Minute << rng.IntN(11)}
				if _, err := c.Reserve(0, r, grid.Never); err != nil {
					b.Fatal(err)
				}
				c.Cancel(0, r.ID)
				started = c.Schedule(0, started[:0])
			}
		})
	}
}

// BenchmarkAdmission is the life of a job placed by the market on a site with
// room: reserved, committed, started, ended, with the site's state read each time.
func BenchmarkAdmission(b *testing.B) {
	c, err := New(Config{Processors: millProcessors, Hold: grid.Second})
	if err != nil {
		b.Fatal(err)
	}
	const inFlight = 100
	var started []Request
	now := grid.Time(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		now += grid.Second
		r := Request{ID: replayID(n), Processors: 1 + int64(n%20), Estimate: grid.Hour}
		if _, err := c.Reserve(now, r, grid.Never); err != nil {
			b.Fatal(err)
		}
		if err := c.Commit(now+grid.Millisecond, r.ID); err != nil {
			b.Fatal(err)
		}
		if n >= inFlight {
			c.Ended(now+grid.Millisecond, replayID(n-inFlight))
		}
		started = c.Schedule(now+grid.Millisecond, started[:0])
		if s := c.State(now + grid.Millisecond); s.Held != 0 {
			b.Fatalf("%+v", s)
		}
		n++
	}
}
