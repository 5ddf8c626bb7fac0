package notify

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"gridnode/grid"
	"gridnode/node/mailbox"
	"gridnode/node/run"
	"gridnode/node/site"
)

// Bounds of the commands of a host.
const (
	SpanMax  = time.Minute     // for one command
	homeMax  = 2 * time.Minute // for the files of a job to come home before
	callsMax = 8               // at the same time
	again    = 2 * time.Second // pause after a command could not be started, doubled up to
	againMax = 5 * time.Minute // this
	giveUp   = time.Hour       // since the first time
	doneMark = ".notified"     // suffix of the file that notes what has run
	partMark = run.PartSuffix  // while it is written
)

// Config is what a caller needs of its host.
type Config struct {
	Self    grid.SiteID
	Files   run.Files                                            // where is noted what has run
	Account func(*grid.Job) (*run.Account, error)                // whom a command runs as; nil: the daemon's own account
	View    func(context.Context, grid.JobID) (site.View, error) // wraps site.ErrUnknownJob for one that is not kept
	Over    func(context.Context) []grid.JobID                   // jobs of this site that are over and have a command
	Name    func(context.Context, grid.SiteID) string            // of a site
	Home    func(context.Context, grid.JobID)                    // returns once the files of a job are home
	Log     *slog.Logger
	Span    time.Duration // for one command; 0: SpanMax
}

// Caller runs commands.
type Caller struct {
	Config
	calls *mailbox.Box[call]
}

// call is a command that is to run.
type call struct {
	job   grid.JobID
	since time.Time
	pause time.Duration
}

// New returns a caller; Run has it work.
func New(cfg Config) *Caller {
	if cfg.Span == 0 {
		cfg.Span = SpanMax
	}
	return &Caller{Config: cfg, calls: mailbox.New[call]()}
}

// Note adds the jobs among events that are over. It does not block.
func (c *Caller) Note(events []grid.Event) {
	for i := range events {
		e := &events[i]
		over := e.Kind == grid.JobFinished || e.Kind == grid.JobCancelled || e.Kind == grid.JobRefused
		if over && e.Job.Home == c.Self && Wanted(e.Job) {
			c.calls.Put(call{job: e.Job.ID, since: time.Now()})
		}
	}
}

// Wanted reports whether a job has a command.
func Wanted(j *grid.Job) bool { return j.Terms != nil && j.Terms.Notify != "" }

// Run runs commands until ctx ends, first those of jobs that ended while nobody was there. It
// returns when none runs any more.
func (c *Caller) Run(ctx context.Context) {
	for _, job := range c.Over(ctx) {
		c.calls.Put(call{job: job, since: time.Now()})
	}
	c.calls.Work(ctx, callsMax, func(one call) { c.try(ctx, one) })
}

// try runs one command, unless it has run, and has it tried again if it could not be started.
func (c *Caller) try(ctx context.Context, one call) {
	mark := c.Files.Fetched(one.job) + doneMark
	if _, err := os.Lstat(mark); err == nil {
		return
	}
	v, err := c.View(ctx, one.job)
	if errors.Is(err, site.ErrUnknownJob) {
		return // it is kept no longer
	}
	if err == nil && (v.Foreign || !Wanted(v.Job)) {
		return // no other site has anything run here
	}
	if err == nil {
		err = c.run(ctx, &v)
	}
	var failed *failure
	switch {
	case ctx.Err() != nil:
		return // after the restart
	case err == nil:
	case !errors.As(err, &failed) && time.Since(one.since) < giveUp:
		one.pause = min(max(2*one.pause, again), againMax)
		time.AfterFunc(one.pause, func() { c.calls.Put(one) })
		return
	default:
		c.Log.Warn("the command at the end of a job has failed", "job", one.job, "error", err)
	}
	if err := os.WriteFile(mark+partMark, nil, 0o600); err != nil {
		c.Log.Warn("cannot note that the command at the end of a job has run: it runs again after a restart", "job", one.job, "error", err)
	} else if err := os.Rename(mark+partMark, mark); err != nil {
		c.Log.Warn("cannot note that the command at the end of a job has run: it runs again after a restart", "job", one.job, "error", err)
	}
}
