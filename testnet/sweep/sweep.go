// Package sweep does runs that do not depend on each other, such as one network for each
// seed or size, so many at a time. Whoever sweeps gives each run a place of its own for
// what comes of it: read in the order of the runs once all are over, that is the same as
// if they had been done one after the other.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Run is a part of a sweep.
type Run struct {
	Name   string // shown with its error; empty: the error says it all
	Weight int64  // how long it takes, roughly, in any unit that all runs share; 0 or more
	Memory int64  // bytes that it needs at most, roughly; 0: too few to count

	// Do does it. It may tell pulse now and then how much of it is done, in thousandths.
	Do func(ctx context.Context, pulse func(permille int64)) error

	// Result points to all that Do leaves: by it what another process has left is filled in.
	// nil: it can be done here only.
	Result any
}

// Away does the runs of a sweep otherwise than by calling Do of each, and fills in what their
// Results point to. It tells o.Progress, but not o.Over.
type Away func(ctx context.Context, runs []Run, o Options) error

// Options says how runs are done.
type Options struct {
	Workers int // runs at a time, 0 to WorkersMax; 0: one on each processor (GOMAXPROCS)

	// Memory is how many bytes those under way may need together; 0: any number. One that
	// needs more is done alone.
	Memory int64

	// Progress is told how much weight of all is done, from one goroutine at a time; done
	// never falls. nil: nobody wants to know.
	Progress func(done, total int64)

	// Over is told of each run once it and all before it are done, in their order, from one
	// goroutine at a time. nil: nobody wants to know.
	Over func(run int)

	// Away has the runs done elsewhere. nil: they are done here.
	Away Away
}

// WorkersMax bounds Options.Workers.
const WorkersMax = 1024

// CheckWorkers returns what is wrong with Options.Workers.
func CheckWorkers(workers int) error {
	if workers < 0 || workers > WorkersMax {
		return fmt.Errorf("%d: want 1 to %d, or 0 for one on each processor", workers, WorkersMax)
	}
	return nil
}

// AtATime returns how many of so many runs are done at a time, if there is memory for them.
func (o *Options) AtATime(runs int) int { return min(cmp.Or(o.Workers, runtime.GOMAXPROCS(0)), runs) }

// Do does the runs, the heaviest first, and returns when the last is over. The first error
// ends it, as does ctx: those under way see their ctx end, and no other is begun.
func Do(ctx context.Context, runs []Run, o Options) error {
	if o.Away != nil {
		err := o.Away(ctx, runs, o)
		for i := 0; err == nil && o.Over != nil && i < len(runs); i++ {
			o.Over(i)
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := sweep{runs: runs, o: o, done: make([]int64, len(runs)), ended: make([]bool, len(runs))}
	s.over.L = &s.lock
	s.waiting = make([]int, len(runs))
	for i := range runs {
		s.waiting[i] = i
		s.total += runs[i].Weight
	}
	slices.SortStableFunc(s.waiting, func(a, b int) int { return cmp.Compare(runs[b].Weight, runs[a].Weight) })
	s.pulse(0, 0)
	var group sync.WaitGroup
	for range o.AtATime(len(runs)) {
		group.Go(func() {
			for i, ok := s.take(ctx); ok; i, ok = s.take(ctx) {
				err := runs[i].Do(ctx, func(permille int64) { s.pulse(i, permille) })
				if err != nil && runs[i].Name != "" {
					err = fmt.Errorf("%s: %w", runs[i].Name, err)
				}
				if err != nil {
					cancel(err)
				}
				s.end(i, err == nil)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// sweep is one under way.
type sweep struct {
	runs  []Run
	o     Options
	total int64

	lock    sync.Mutex // of what follows
	over    sync.Cond  // a run is
	waiting []int      // the heaviest first
	under   int        // way
	memory  int64      // that those need
	done    []int64    // weight, by run
	sum     int64      // of done
	ended   []bool     // those that are done
	told    int        // how many of them Options.Over knows
}

// take returns the next run that there is memory for, once there is; or that no more is to
// be begun.
func (s *sweep) take(ctx context.Context) (run int, ok bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for len(s.waiting) > 0 && ctx.Err() == nil {
		for at, i := range s.waiting {
			if needs := s.runs[i].Memory; s.under == 0 || s.o.Memory == 0 || s.memory+needs <= s.o.Memory {
				s.waiting = slices.Delete(s.waiting, at, at+1)
				s.under++
				s.memory += needs
				return i, true
			}
		}
		s.over.Wait() // one is under way, and its end is told
	}
	return 0, false
}

// end notes that a run is over.
func (s *sweep) end(run int, done bool) {
	if done {
		s.pulse(run, 1000)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.under--
	s.memory -= s.runs[run].Memory
	s.over.Broadcast()
	s.ended[run] = done
	for ; s.o.Over != nil && s.told < len(s.runs) && s.ended[s.told]; s.told++ {
		s.o.Over(s.told)
	}
}

// pulse takes how much of a run is done.
func (s *sweep) pulse(run int, permille int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.runs) > 0 {
		weight := s.runs[run].Weight
		done := weight/1000*min(permille, 1000) + weight%1000*min(permille, 1000)/1000
		if done > s.done[run] {
			s.sum += done - s.done[run]
			s.done[run] = done
		}
	}
	if s.o.Progress != nil {
		s.o.Progress(s.sum, s.total)
	}
}

// Available returns how many bytes of this machine's memory could be used now, 0 if nobody
// can tell.
func Available() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return availableIn(string(text))
}

// availableIn reads the text of /proc/meminfo.
func availableIn(text string) int64 {
	for line := range strings.Lines(text) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
