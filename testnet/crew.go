package testnet

import (
	"runtime"
	"sync/atomic"

	"gridnode/grid"
)

// crew goes through the strides of a network: a worker for each lane but the first, which is
// the caller's. The nil crew goes through none.
type crew struct {
	workers []*worker
	turn    atomic.Int64 // strides so far; -1: it is dismissed
	busy    atomic.Int64 // workers that are within a stride
	spins   int
	lean    int64 // events until which strides are left
	pause   int64 // for how many events they are after the next that does not pay
}

// worker is who goes through strides for a lane.
type worker struct {
	lane   *lane
	asleep atomic.Bool
	wake   chan struct{}
}

// Strides are left for a while when they hold too little: handing it over takes longer than
// doing it. The while becomes longer as long as none pays.
const (
	eventsLeast = 16 // of a lane, in a stride that pays
	pauseLeast  = 1 << 10
	pauseMost   = 1 << 17
)

// spinsMax is how often a worker looks for the next stride before it sleeps: for some tens of
// microseconds, which is what waking it takes.
const spinsMax = 1 << 16

// engage makes the crew of a run, nil if there is one lane of sites only, or events of one depend
// on those of another without any delay.
func (n *Network) engage(stop func() bool) *crew {
	c := &n.cfg
	if len(n.lanes) == 1 || len(n.members) <= 1<<blockBits || c.Link.LatencyMin <= 0 || c.Link.Latency != nil || c.Link.Coincide > 0 || c.DialTimeout < c.Link.LatencyMin ||
		c.Check != nil || c.Tear != nil || stop != nil {
		return nil
	}
	crew := &crew{pause: pauseLeast}
	if runtime.GOMAXPROCS(0) >= len(n.lanes) {
		crew.spins = spinsMax
	}
	for _, l := range n.lanes[1:] {
		worker := &worker{lane: l, wake: make(chan struct{}, 1)}
		crew.workers = append(crew.workers, worker)
		go worker.work(crew)
	}
	return crew
}

// work goes through one stride after the other.
func (w *worker) work(c *crew) {
	for seen := int64(0); ; {
		w.await(c, seen)
		if seen = c.turn.Load(); seen < 0 {
			return
		}
		w.lane.through()
		c.busy.Add(-1)
	}
}

// await returns once there is another stride than the one seen.
func (w *worker) await(c *crew, seen int64) {
	for i := 0; c.turn.Load() == seen; i++ {
		if i < c.spins {
			continue
		}
		w.asleep.Store(true)
		if c.turn.Load() == seen || !w.asleep.CompareAndSwap(true, false) {
			<-w.wake
		}
	}
}

// call has the workers see that there is another stride, or with -1 that there is none any more.
func (c *crew) call(turn int64) {
	c.turn.Store(turn)
	for _, w := range c.workers {
		if w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// through goes through a stride for all lanes.
func (c *crew) through(n *Network) {
	c.busy.Store(int64(len(c.workers)))
	c.call(c.turn.Load() + 1)
	n.lanes[0].through()
	for i := 0; c.busy.Load() > 0; i++ {
		if i >= c.spins {
			runtime.Gosched()
		}
	}
}

// dismiss ends a crew.
func (c *crew) dismiss() {
	if c != nil {
		c.call(-1)
	}
}

// pays reports whether to go through strides now.
func (c *crew) pays(n *Network) bool { return c != nil && n.events >= c.lean && !n.joint.Load() }

// strideEnd returns when a stride ends that begins at an instant: before anything happens that
// is not one site's alone.
func (n *Network) strideEnd(at, until grid.Time) grid.Time {
	end := min(at+n.cfg.Link.LatencyMin, n.common.next())
	if until < end {
		end = until + 1
	}
	return end
}

// throughStride lets everything happen that comes before an instant.
func (n *Network) throughStride(c *crew, end grid.Time) error {
	n.submitted = n.submitted[:0]
	for n.arrival.job != nil && n.arrival.job.Submit < end {
		l := n.laneOf(n.arrival.site)
		l.arrivals = append(l.arrivals, n.arrival)
		n.submitted = append(n.submitted, l)
		n.arrival = arrival{}
		if err := n.fetch(); err != nil {
			return err
		}
	}
	n.oracle.sort()
	for _, l := range n.lanes {
		l.begin(end, n.inserted)
	}
	c.through(n)
	before := n.events
	n.merge()
	n.strides++
	if n.events-before < eventsLeast*int64(len(n.lanes)) {
		c.lean = n.events + c.pause
		c.pause = min(2*c.pause, pauseMost)
	} else {
		c.pause = pauseLeast
	}
	n.enter(n.now)
	return nil
}
