package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/measure"
)

// ErrConfig is wrapped by every error about a scenario's configuration; the error
// names the flag at fault. The caller shows it and how the scenario is used.
var ErrConfig = errors.New("bad setting")

// ConfigError returns an error about the flag of that name.
func ConfigError(flag, format string, args ...any) error {
	return fmt.Errorf("%w: --%s: %s", ErrConfig, flag, fmt.Sprintf(format, args...))
}

// Common is what every scenario takes.
type Common struct {
	Seed uint64 `json:"-"` // determines everything random in the run

	Out  string `json:"-"` // directory for result.json and sites.csv; empty: none
	Jobs bool   `json:"-"` // jobs.csv there, too

	Progress io.Writer `json:"-"` // where to show how far the run is, if it is a terminal; nil: nowhere

	// Ended is told of every job of a site (its index) that has ended: it is finished
	// or refused. It must not keep the event. nil: nobody wants to know.
	Ended func(site int, e *grid.Event) `json:"-"`
}

// Input says where a site's jobs came from.
type Input struct {
	Site  string `json:"site"`
	Trace string `json:"trace"`           // file, or what was generated
	Start int64  `json:"start,omitempty"` // second of the log at which the run begins
	Span  int64  `json:"span,omitempty"`  // seconds of the log that were used; 0: to its end
	Jobs  int64  `json:"jobs"`            // jobs submitted
	Lines string `json:"lines,omitempty"` // what became of the log's lines
	Note  string `json:"note,omitempty"`

	// Faults says which lines were skipped or repaired; it is part of Lines.
	Faults string `json:"-"`
}

// Run is one run of a scenario.
type Run struct {
	Common
	Scenario string
	Config   any // as it goes into the result
	Network  *testnet.Network
	Sites    []measure.Site
	Begin    grid.Time    // times are counted from here
	Window   grid.Time    // of utilization; grid.Never: until the makespan
	Total    int64        // jobs to come; 0 if unknown
	Read     func() int64 // jobs so far
	Least    grid.Time    // it does not end before
	Most     grid.Time    // every job must have ended by then; 0: no bound
	Quiet    func() bool  // besides, nothing is under way; may be nil
	AtRest   func() error // a last check; may be nil
	Inspect  func(*measure.Result)

	Leased func(x *testnet.Execution, yield func(lender int, processors int64)) // nil: nobody leases
}

// settleSpan is how long a run goes on after the last job has ended, so that what
// is under way arrives and is counted.
const settleSpan = 10 * grid.Second

// Do lets the network run until every job has ended, and works the result out.
func (r *Run) Do(ctx context.Context) (result *measure.Result, err error) {
	begun := time.Now()
	var rows *measure.JobRows
	if r.Out != "" && r.Jobs {
		if rows, err = measure.CreateRows(r.Out); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
	}
	c := measure.Collect(r.Network, r.Begin, r.Window, rows)
	c.Leased = r.Leased
	if r.Ended != nil {
		r.Network.Observe(testnet.Observer{Event: func(_ grid.Time, site int, e *grid.Event) {
			if e.Kind == grid.JobFinished || e.Kind == grid.JobRefused {
				r.Ended(site, e)
			}
		}})
	}
	p := NewProgress(r.Progress, r.Scenario, r.Total, r.Read)
	r.Network.Pulse(p.Pulse)
	err = r.Network.Run(ctx, r.until(), func() bool { return r.Network.Now() >= r.Least && c.Done() && (r.Quiet == nil || r.Quiet()) })
	p.Stop()
	if err == nil && !c.Done() {
		err = fmt.Errorf("at %v %d jobs have neither ended nor been refused, and nothing more happens (or not in time)%s", r.Network.Now(), c.Open, r.first())
	}
	if err == nil && r.Network.Pending() > 0 {
		err = r.Network.Run(ctx, r.Network.Now().Add(settleSpan), nil)
	}
	if err == nil && r.AtRest != nil {
		err = r.AtRest()
	}
	if err = errors.Join(err, c.Err); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", r.Scenario, r.Seed, err)
	}
	result = c.Result(r.Scenario, r.Config, r.Sites, begun)
	if r.Inspect != nil {
		r.Inspect(result)
	}
	if r.Out != "" {
		err = result.Save(r.Out)
	}
	return result, err
}

// first names a job that has not ended, if possible one that does not wait for another, and
// says why.
func (r *Run) first() string {
	var first site.View
	var at grid.SiteID
	waits := func(v *site.View) int {
		if v.State == site.Waiting {
			return 1
		}
		return 0
	}
	for i := range r.Network.Len() {
		s := SiteOf(r.Network.Core(i))
		if s == nil {
			continue
		}
		for v := range s.Jobs {
			open := !v.Foreign && !v.State.Terminal()
			if open && (first.Job == nil || cmp.Or(waits(&v)-waits(&first), v.Job.ID.Compare(first.Job.ID)) < 0) {
				first, at = v, r.Network.ID(i)
			}
		}
	}
	if first.Job == nil {
		return ""
	}
	return fmt.Sprintf(": job %v at %s is %v: %s", first.Job.ID, at, first.State, first.Reason)
}

func (r *Run) until() grid.Time {
	if r.Most == 0 {
		return grid.Never
	}
	return r.Most
}
