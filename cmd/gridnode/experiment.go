//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario"
	"gridnode/testnet/sweep/away"
)

// savedReport is what comes of an experiment.
type savedReport interface {
	Write(w io.Writer, format string) error
	Save(dir string) (path string, err error)
}

// experiment does long work under a bar of its progress, prints the report that
// comes of it, and saves it in the directory out unless that is empty. Work that fails
// may leave a report of what it got done.
func experiment(cmd *cobra.Command, title string, l listing, out string, work func(ctx context.Context, progress func(done, total int64)) (savedReport, error)) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	bar := newRunsBar(cmd.ErrOrStderr(), title)
	report, err := work(ctx, bar.set)
	bar.stop()
	if errors.Is(err, away.ErrPart) {
		return nil
	}
	switch {
	case errors.Is(err, reproduce.ErrConfig), errors.Is(err, scenario.ErrConfig):
		err = usagef("%w", err)
	case err != nil && ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	if report == nil {
		return err
	}
	return errors.Join(err, publish(cmd, l, out, report))
}

// publish prints a report, and saves it in the directory out unless that is empty.
func publish(cmd *cobra.Command, l listing, out string, report savedReport) error {
	if err := report.Write(cmd.OutOrStdout(), string(l.format)); err != nil || out == "" {
		return err
	}
	path, err := report.Save(out)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "report: %s\n", path)
	}
	return err
}

// runsBar shows how much of the work is done, on a terminal; elsewhere nothing.
type runsBar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

func newRunsBar(w io.Writer, title string) *runsBar {
	f, ok := w.(*os.File)
	if !ok {
		return &runsBar{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &runsBar{}
	}
	b := &runsBar{container: mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(200*time.Millisecond))}
	b.bar = b.container.AddBar(0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(title+" "), decor.NewPercentage("%d")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Name(", left "), decor.AverageETA(decor.ET_STYLE_GO)))
	return b
}

// set shows that done of total is done.
func (b *runsBar) set(done, total int64) {
	if b.bar != nil {
		b.bar.SetTotal(total, false)
		b.bar.SetCurrent(done)
	}
}

// stop takes the bar away.
func (b *runsBar) stop() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.container.Wait()
	}
}
