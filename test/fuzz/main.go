// Command fuzz runs the fuzz targets of the tree for a while each, those that were run least first. It counts
// what each has executed in all, and keeps the inputs that reached code which no other had reached, below corpus: the
// target's test runs them from then on (internal/corpus). Most of a turn nothing is traced, and many more inputs are
// executed that lie near those. It prints a table in the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"gridnode/internal/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := fuzz(ctx)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	case failed > 0:
		os.Exit(1)
	}
}

// wanted is how often each target is to be executed in all.
const wanted = 100_000_000

// fuzz does what the command line says, and returns how many targets failed.
func fuzz(ctx context.Context) (failed int, err error) {
	only := flag.String("only", "", "beginnings of packages or of PACKAGE.TARGET, with commas; all if empty")
	turn := flag.Duration("turn", 10*time.Second, "how long a target runs at a time")
	span := flag.Duration("for", 0, "stop after the turn in which this has passed; 0: when each target had a turn")
	abreast := flag.Int("parallel", runtime.GOMAXPROCS(0), "inputs that are executed at a time")
	file := flag.String("results", "test/fuzz/results.jsonl", "file of results, a line each target; the one of the tree is kept with it")
	format := flag.String("o", "table", "table or json")
	show := flag.Bool("show", false, "only print what the file of results has")
	flag.Parse()
	printed, ok := formats[*format]
	if !ok || flag.NArg() > 0 {
		return 0, fmt.Errorf("-o %q %q: want table or json, and flags only", *format, flag.Args())
	}
	targets, err := find(ctx, strings.Split(*only, ","))
	if err != nil {
		return 0, err
	}
	found, err := readResults(*file)
	if err != nil {
		return 0, err
	}
	if !*show {
		if failed, err = runAll(ctx, targets, found, *turn, *span, *abreast); err != nil {
			return failed, err
		}
	}
	return failed, printed(os.Stdout, found.rows(targets))
}

// runAll gives each target its turns, and returns how many failed.
func runAll(ctx context.Context, targets []target, found *results, turn, span time.Duration, abreast int) (failed int, err error) {
	dir, err := os.MkdirTemp("", "gridnode-fuzz")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	commit, err := checkout.Commit(ctx, ".", "HEAD")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for pass := true; pass; pass = span > 0 {
		found.leastFirst(targets)
		for i, t := range targets {
			if ctx.Err() != nil || span > 0 && time.Since(began) > span {
				return failed, nil
			}
			r, err := t.run(ctx, dir, turn, abreast)
			if err != nil {
				if ctx.Err() != nil {
					return failed, nil
				}
				fmt.Fprintf(os.Stderr, "%s: %v\n", t, err)
				failed++
				continue
			}
			r.Commit = commit
			all, err := found.add(r)
			if err != nil {
				return failed, err
			}
			fmt.Fprintf(os.Stderr, "%d of %d: %s: %d executions in %.0f s, %.1f M in all; %d inputs kept anew\n",
				i+1, len(targets), t, r.Executions, r.Seconds, float64(all.Executions)/1e6, r.Kept-r.had)
		}
	}
	return failed, nil
}
