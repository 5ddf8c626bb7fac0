package stream

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"

	"gridnode/grid"
	"gridnode/node/api"
)

// changesMax bounds the changes of jobs that are remembered: those of a burst of ten thousand
// jobs. Who was away for longer is told of all jobs anew.
const changesMax = 1 << 16

// GapBegin is what one who has not been told anything has missed: everything. He is not told so.
const GapBegin = "begin"

// Changes numbers the changes of jobs and remembers which job each was of, so that a stream that
// breaks off goes on where it was, and a slow reader holds nothing up. What a job is then is
// looked up when it is told. It may be used concurrently.
type Changes struct {
	run string // of numbers: those of another daemon mean nothing here

	mu    sync.Mutex
	ids   []grid.JobID // of change n at (n-1) % changesMax
	last  uint64       // number of the newest change; 0: there was none
	since uint64       // those up to this one were not all seen
	wakes map[chan struct{}]bool
}

// NewChanges returns changes of which there are none.
func NewChanges() *Changes {
	return &Changes{run: rand.Text()[:8], wakes: make(map[chan struct{}]bool)}
}

// Note takes what the host tells, once it is durable.
func (c *Changes) Note(list []grid.Event) {
	if len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range list {
		c.add(list[i].Job.ID)
	}
	c.wake()
}

// Missed says that changes were not seen: what was told before is no place to go on from.
func (c *Changes) Missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(grid.JobID{})
	c.since = c.last
	c.wake()
}

func (c *Changes) add(id grid.JobID) {
	if len(c.ids) < changesMax {
		c.ids = append(c.ids, id)
	} else {
		c.ids[c.last%changesMax] = id
	}
	c.last++
}

func (c *Changes) wake() {
	for wake := range c.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// Listen returns a channel that holds a token once something has changed. Unlisten must follow.
func (c *Changes) Listen() chan struct{} {
	wake := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes[wake] = true
	return wake
}

// Unlisten gives a channel back.
func (c *Changes) Unlisten(wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wakes, wake)
}

// After returns the jobs that have changed since a place, and the place from which to go on. gap
// is why that cannot be told, empty if it can: then everything has to be told anew.
func (c *Changes) After(place string) (ids map[grid.JobID]bool, next string, gap string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = c.run + "-" + strconv.FormatUint(c.last, 10)
	run, text, _ := strings.Cut(place, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case place == "":
		return nil, next, GapBegin
	case err != nil || run != c.run || n > c.last:
		return nil, next, api.GapOther
	case n < c.since || c.last-n > uint64(len(c.ids)):
		return nil, next, api.GapForgotten
	}
	ids = make(map[grid.JobID]bool)
	for ; n < c.last; n++ {
		ids[c.ids[n%changesMax]] = true
	}
	return ids, next, ""
}
