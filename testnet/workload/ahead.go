package workload

import "sync"

// Sizes of what an Ahead holds: batches that are large enough for a hand-over to cost
// little beside the jobs, and few.
const (
	aheadBatch   = 256 // jobs
	aheadBatches = 4
)

// Ahead is a Source that reads another one in a goroutine of its own, some batches of jobs
// ahead of who asks: a log is unpacked and parsed while the jobs before are run. They are
// the same jobs in the same order. Until Next has returned false or an error, or Close
// has returned, the other source is not the caller's.
type Ahead struct {
	filled chan *batch
	empty  chan *batch
	stop   chan struct{} // closed: nothing more is wanted
	ended  sync.WaitGroup
	once   sync.Once

	current *batch // nil before the first, and once all is over
	next    int    // of its jobs
}

// batch is some jobs, and what came after the last of them.
type batch struct {
	jobs []Job
	last bool  // nothing comes after them
	err  error // with last: why
}

// NewAhead begins to read source. The caller closes what it returns.
func NewAhead(source Source) *Ahead {
	a := &Ahead{filled: make(chan *batch, aheadBatches), empty: make(chan *batch, aheadBatches), stop: make(chan struct{})}
	for range aheadBatches {
		a.empty <- &batch{jobs: make([]Job, 0, aheadBatch)}
	}
	a.ended.Go(func() { a.read(source) })
	return a
}

// read fills batches until the source ends, or nobody wants more.
func (a *Ahead) read(source Source) {
	defer close(a.filled)
	for {
		var b *batch
		select {
		case b = <-a.empty:
		case <-a.stop:
			return
		}
		b.jobs = b.jobs[:0]
		for len(b.jobs) < aheadBatch && !b.last {
			b.jobs = b.jobs[:len(b.jobs)+1]
			ok, err := source.Next(&b.jobs[len(b.jobs)-1])
			if err != nil || !ok {
				b.jobs, b.last, b.err = b.jobs[:len(b.jobs)-1], true, err
			}
		}
		a.filled <- b // there is room for all
		if b.last {
			return
		}
	}
}

// Next implements Source.
func (a *Ahead) Next(job *Job) (bool, error) {
	for {
		if b := a.current; b != nil && a.next < len(b.jobs) {
			*job = b.jobs[a.next]
			a.next++
			return true, nil
		} else if b != nil && b.last {
			a.Close()
			return false, b.err
		} else if b != nil {
			a.empty <- b // there is room for all
		}
		a.current, a.next = <-a.filled, 0
		if a.current == nil { // closed before its end
			return false, nil
		}
	}
}

// Close ends the reading. Next returns what had been read, and then that there is no more.
// It may be called again.
func (a *Ahead) Close() {
	a.once.Do(func() { close(a.stop) })
	a.ended.Wait()
}
