package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"gridnode/testnet"
	"gridnode/testnet/reproduce"
)

func newReproduce() *cobra.Command {
	o, l, out := reproduce.DefaultOptions(), listing{}, ""
	var papers strings.Builder
	var names []string
	for _, p := range reproduce.Papers() {
		fmt.Fprintf(&papers, "  %s\n      %s\n", p.Name, p.Title)
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use:   "reproduce PAPER|all [flags]",
		Short: "Repeat a published evaluation and compare the figures",
		Long: `Repeat the evaluation of a paper in virtual time and print each figure beside the
published one, with the deviation; with --out, as CSV, JSON and a page with the paper's
plots (HTML, one file), too. Papers:

` + papers.String() + `
Without logs a generated workload is used, to which the published figures do not apply.`,
		Example: `  gridnode testnet reproduce grid-federation --traces logs --out report
  gridnode testnet reproduce grid-federation --traces logs --windows 1 --quick
  gridnode testnet reproduce all -o json`,
		ValidArgs: append(names, "all"),
		Args:      exactArgs(1, "the name of a paper, or all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := reproduce.Papers()
			if args[0] != "all" {
				p, err := reproduce.Find(args[0])
				if err != nil {
					return usagef("%w", err)
				}
				chosen = []reproduce.Paper{p}
			}
			for _, p := range chosen {
				if err := reproducePaper(cmd, p, o, l, out); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Traces, "traces", "", "directory with the logs, named as in the Parallel Workloads Archive (default: a generated workload)")
	f.IntVar(&o.Windows, "windows", o.Windows, fmt.Sprintf("workloads for the spread, 1 to %d; the first is compared", reproduce.WindowsMax))
	f.BoolVar(&o.Quick, "quick", false, "leave out other readings and loads than the paper's")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "determines everything random in the runs")
	f.StringVar(&out, "out", "", "directory to write PAPER.html, PAPER.csv and PAPER.json to")
	_ = cmd.MarkFlagDirname("traces")
	_ = cmd.MarkFlagDirname("out")
	addListingFlags(cmd, &l, formatTable, formatJSON)
	_ = f.MarkHidden("no-headers")
	return cmd
}

// reproducePaper repeats one paper, prints what came of it and saves it in out.
func reproducePaper(cmd *cobra.Command, p reproduce.Paper, o reproduce.Options, l listing, out string) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	bar := newRunsBar(cmd.ErrOrStderr(), p.Name)
	o.Progress = bar.set
	report, err := reproduce.Reproduce(ctx, p, o)
	bar.stop()
	switch {
	case errors.Is(err, reproduce.ErrConfig), errors.Is(err, testnet.ErrConfig):
		return usagef("%w", err)
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return err
	}
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
