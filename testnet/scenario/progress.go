package scenario

import (
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how many jobs a run has got through, how fast, and when it will
// be over. On anything but a terminal it shows nothing.
type progress struct {
	container *mpb.Progress
	bar       *mpb.Bar
	total     int64
	done      func() int64
}

// NewProgress begins to show done out of total jobs; total 0 means that nobody knows.
func NewProgress(w io.Writer, title string, total int64, done func() int64) *progress {
	if !terminal(w) {
		return &progress{}
	}
	p := &progress{container: mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(200*time.Millisecond)), total: total, done: done}
	p.bar = p.container.AddBar(total,
		mpb.PrependDecorators(decor.Name(title+" "), decor.CountersNoUnit("%d/%d jobs")),
		mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s "), decor.AverageETA(decor.ET_STYLE_GO)),
	)
	return p
}

// Pulse shows how far the run is now.
func (p *progress) Pulse() {
	if p.bar == nil {
		return
	}
	done := p.done()
	if p.total > 0 {
		done = min(done, p.total-1) // the last job submitted is not the end of the run: stop is
	}
	p.bar.SetCurrent(done)
}

// Stop takes the bar away.
func (p *progress) Stop() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.container.Wait()
	}
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
