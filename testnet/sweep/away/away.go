package away

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"gridnode/testnet/sweep"
)

// Sweep says what is done elsewhere, and how.
type Sweep struct {
	Dir     string   // that keeps what has come of parts; made if it is not there
	Program string   // path of the program that does a part
	Args    []string // of the command that makes the sweep; paths of inputs as they are in Inputs
	Inputs  []Input  // that runs read
	Way     Way

	// Say is told what goes on, in lines without their ends, from one goroutine.
	Say func(text string)

	// Again is the command that goes on with the sweep when this call has ended before it.
	Again string
}

// Way is where parts are done: *Federation or *Slurm.
type Way interface {
	// reach returns why nothing can be handed over, if that is so.
	reach(ctx context.Context) error

	// hand has parts done. Some may be even if there is an error.
	hand(ctx context.Context, w *work, parts []int) error

	// look tells about the parts that this call and earlier ones have handed over: what it
	// does not name is nowhere.
	look(ctx context.Context, w *work) (map[int]news, error)

	// afterwards says what users can do about parts that go on without this call.
	afterwards(w *work) string
}

// news is what is known of a part that was handed over.
type news struct {
	over   bool
	killed bool   // or it has vanished: it may be done again
	why    string // it has ended
	see    string // how to see what it has printed
}

// tries is how often a part is handed over that is killed again and again.
const tries = 3

// The way is asked about parts every so often: at first while little may be needed, and ever
// less often as long as nothing happens. A cluster's controller has others to answer, too.
const (
	pauseMin = 200 * time.Millisecond
	pauseMax = 15 * time.Second
)

// lostMax is how often in a row the way may fail to say how parts stand.
const lostMax = 8

// settling is how often a part is looked for that is over and has left nothing: file systems
// that machines share may show a file late.
const settling = 3

// Do has the parts done and fills in what the runs' Results point to.
func (s *Sweep) Do(ctx context.Context, runs []sweep.Run, o sweep.Options) error {
	m := manifest{Args: s.Args, Inputs: s.Inputs}
	for i := range runs {
		if runs[i].Result == nil {
			return fmt.Errorf("%s can be done on this machine only", name(runs, i))
		}
		m.Runs = append(m.Runs, runName{runs[i].Name, runs[i].Weight})
	}
	w, err := open(s.Dir, m, s.Program)
	if err != nil {
		return err
	}
	c := call{Sweep: s, w: w, runs: runs, o: o, tried: make([]int, len(runs)), gone: make([]int, len(runs)), failed: make([]string, len(runs))}
	for i := range runs {
		if err := c.take(i); err != nil {
			return err
		}
	}
	if len(c.open) == 0 {
		return nil
	}
	if err := s.Way.reach(ctx); err != nil {
		return err
	}
	err = c.all(ctx)
	open := c.open
	c.open = nil
	for _, run := range open { // something may have come since they were looked for
		err = errors.Join(err, c.take(run))
	}
	if err != nil && len(c.open) > 0 && c.handed {
		s.Say(fmt.Sprintf("%d of %d parts are there; %s; to go on: %s", len(runs)-len(c.open)-c.lost(), len(runs), s.Way.afterwards(w), s.Again))
	}
	return err
}

// call is a sweep under way.
type call struct {
	*Sweep
	w      *work
	runs   []sweep.Run
	o      sweep.Options
	open   []int // runs of which nothing is there yet
	tried  []int // how often each was handed over
	gone   []int // how often it was over and had left nothing
	failed []string
	handed bool // some may go on without this call
}

// take takes what has come of a run; what has come of none is open.
func (c *call) take(run int) error {
	err := c.w.take(run, &c.runs[run])
	if errors.Is(err, fs.ErrNotExist) {
		c.open = append(c.open, run)
		return nil
	}
	return err
}

// all has the open parts done.
func (c *call) all(ctx context.Context) error {
	seen, err := c.Way.look(ctx, c.w)
	if err != nil {
		return err
	}
	var missing []int
	for _, run := range c.open {
		if n, known := seen[run]; !known || n.over {
			missing = append(missing, run)
		}
	}
	c.handed = len(missing) < len(c.open)
	c.Say(fmt.Sprintf("%d runs: %d are there, %d are under way, %d are handed over", len(c.runs), len(c.runs)-len(c.open), len(c.open)-len(missing), len(missing)))
	if err := c.hand(ctx, missing); err != nil {
		return err
	}
	pause, lost := pauseMin, 0
	for c.progress(); len(c.open) > 0; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		seen, err := c.Way.look(ctx, c.w)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && lost == lostMax:
			return err
		case err != nil:
			if lost++; lost == 1 {
				c.Say(fmt.Sprintf("nothing is known of the parts now: %v", err))
			}
		default:
			lost = 0
		}
		before := len(c.open)
		if err == nil {
			if err := c.settle(ctx, seen); err != nil {
				return err
			}
		}
		if pause = min(pause*3/2, pauseMax); len(c.open) < before {
			pause = pauseMin
			c.progress()
		}
	}
	return c.failures()
}

// hand has parts done.
func (c *call) hand(ctx context.Context, parts []int) error {
	if len(parts) == 0 {
		return nil
	}
	for _, run := range parts {
		c.tried[run]++
		c.gone[run] = 0
	}
	// The heaviest first, so that none of them is the last to begin.
	slices.SortStableFunc(parts, func(a, b int) int { return int(min(max(c.runs[b].Weight-c.runs[a].Weight, -1), 1)) })
	err := c.Way.hand(ctx, c.w, parts)
	c.handed = c.handed || err == nil
	return err
}

// settle takes what has come of open parts, and hands those over again that were killed.
func (c *call) settle(ctx context.Context, seen map[int]news) error {
	open := c.open
	c.open = nil
	var again []int
	for i, run := range open {
		before := len(c.open)
		if err := c.take(run); err != nil {
			c.open = append(c.open, open[i:]...)
			return err
		}
		n, known := seen[run]
		if len(c.open) == before || known && !n.over {
			continue
		}
		if c.gone[run]++; c.gone[run] < settling {
			continue
		}
		if !known {
			n = news{killed: true, why: "its job is not known any more"}
		}
		if n.killed && c.tried[run] < tries {
			c.Say(fmt.Sprintf("%s: %s: it is done again", name(c.runs, run), n.why))
			again = append(again, run)
			continue
		}
		c.open = c.open[:before]
		if c.failed[run] = n.why; n.see != "" {
			c.failed[run] += " (" + n.see + ")"
		}
		c.Say(fmt.Sprintf("%s: %s", name(c.runs, run), c.failed[run]))
	}
	return c.hand(ctx, again)
}

// progress tells how much is done.
func (c *call) progress() {
	var done, total int64
	for i := range c.runs {
		weight := max(c.runs[i].Weight, 1)
		if total += weight; !slices.Contains(c.open, i) {
			done += weight
		}
	}
	if c.o.Progress != nil {
		c.o.Progress(done, total)
	}
	c.Say(fmt.Sprintf("%d of %d runs are done", len(c.runs)-len(c.open), len(c.runs)))
}

// lost is how many parts have failed.
func (c *call) lost() (n int) {
	for _, why := range c.failed {
		if why != "" {
			n++
		}
	}
	return n
}

// shown is how many failures an error names.
const shown = 10

// failures returns what has failed, as an error.
func (c *call) failures() error {
	n := c.lost()
	if n == 0 {
		return nil
	}
	var lines []string
	for i, why := range c.failed {
		if why == "" {
			continue
		}
		if len(lines) == shown {
			lines = append(lines, fmt.Sprintf("and %d others", n-shown))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name(c.runs, i), why))
	}
	return fmt.Errorf("%d of %d runs have failed; the others are kept, and the same command has only these done again:\n  %s", n, len(c.runs), strings.Join(lines, "\n  "))
}

// name returns what a run is called.
func name(runs []sweep.Run, at int) string {
	if runs[at].Name == "" {
		return fmt.Sprintf("part %d", at)
	}
	return fmt.Sprintf("part %d, %s", at, runs[at].Name)
}
