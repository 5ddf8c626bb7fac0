// Command mutants plants bugs in the tree, one at a time, and says which of the project's
// tests see them: the unit tests of the package, transcripts, chaos, daemons end to end. A
// bug that none sees is a test that is missing. The bugs are the patches below patches/.
//
// The tree stays as it is: Go builds each bug from an overlay. What was found is kept in a
// file of results after each step, and the next run goes on where the last one stopped.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gridnode/internal/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := plantAll(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case missed > 0:
		os.Exit(1)
	}
}

// plantAll does what the command line says. It returns how many of the chosen bugs nothing
// saw. It has printed the table even when it returns an error, with what was found until then.
func plantAll(ctx context.Context) (missed int, err error) {
	only := flag.String("only", "", "rooms or patches, with commas: lease,market/bank/refund-lost; all if empty")
	by := flag.String("by", "unit,transcript,chaos,end-to-end", "what looks for the bugs, in this order")
	seeds := flag.Int("seeds", 200, "how many seeds of chaos a bug has to get through, from 1")
	run := flag.String("chaos", "--swarm --sites 6 --hours 2", "flags of the run, as 'gridnode testnet run chaos' has them: sites, hours, faults, features, swarm, lend")
	thorough := flag.Bool("thorough", false, "end-to-end also for bugs that something else saw")
	again := flag.Bool("again", false, "forget what the file of results has of the chosen bugs")
	file := flag.String("results", "out/mutants.jsonl", "file of results, a line each; seen from the root of the tree")
	patience := flag.Duration("patience", 10*time.Minute, "after which one step is ended, as seen")
	sample := flag.Int("sample", 0, "instead of the patches, so many small changes of each package of the cores, and of what else -only names; the exit code does not count what nothing sees")
	seed := flag.Uint64("seed", 1, "of the sample")
	list := flag.Bool("list", false, "only list the bugs")
	format := flag.String("o", "table", "table or json")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), `Usage: go run ./test/mutants [FLAGS]

Plants bugs in the tree, one at a time, and says which tests see them. It exits with 0 if each
was seen, with 1 if one was not, with 2 if it could not find out.

  go run ./test/mutants -list
  go run ./test/mutants -only lease,market/bank -seeds 20
  go run ./test/mutants -sample 60 -by package,chaos -seeds 20
  go run ./test/mutants -by chaos -chaos '--sites 12 --hours 6' -o json

`)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 1 || *sample < 0 {
		flag.Usage()
		return 0, fmt.Errorf("want flags only, -seeds from 1 and -sample from 0")
	}
	show, ok := formats[*format]
	if !ok {
		return 0, fmt.Errorf("-o %q: want table or json", *format)
	}
	root, err := moduleRoot()
	if err != nil {
		return 0, err
	}
	g := &garden{root: root, chaos: strings.Fields(*run), seeds: *seeds, patience: *patience, clean: map[string]bool{}, rapid: map[string]bool{}}
	if g.commit, err = checkout.Commit(ctx, root, "HEAD"); err != nil {
		g.commit = "unknown" // an unpacked archive
	}
	var all []*mutant
	if *sample > 0 {
		all, err = g.draw(ctx, g.folders(*only), *seed, *sample)
	} else {
		all, err = readMutants(filepath.Join(root, patches))
	}
	if err != nil {
		return 0, err
	}
	chosen, err := choose(all, *only)
	if err != nil {
		return 0, err
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-44s %s\n", m.Name, m.Title)
		}
		return 0, nil
	}
	if g.ways, err = waysOf(*by); err != nil {
		return 0, err
	}
	if g.dir, err = os.MkdirTemp("", "gridnode-mutants"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(g.dir)
	if !filepath.IsAbs(*file) {
		*file = filepath.Join(root, *file)
	}
	found, err := openResults(*file)
	if err != nil {
		return 0, err
	}
	defer found.close()
	if *again {
		if err = found.forget(chosen); err != nil {
			return 0, err
		}
	}
	if len(chosen) > 1 {
		if g.bed, err = g.layBed(ctx, chosen); err != nil {
			return 0, cmp.Or(ctx.Err(), err)
		}
	}
	if err = g.plantEach(ctx, chosen, found, *thorough); ctx.Err() != nil {
		err = ctx.Err()
	}
	rows := tabulate(chosen, found, g.ways)
	for _, r := range rows {
		if r.Seen == "no" && *sample == 0 {
			missed++
		}
	}
	return missed, cmp.Or(err, show(os.Stdout, rows, g))
}

// plantEach plants bugs, a few at a time. What goes wrong with one is told at the end, and the
// others are tried all the same.
func (g *garden) plantEach(ctx context.Context, chosen []*mutant, found *results, thorough bool) error {
	var next atomic.Int64
	failed := make([]error, len(chosen))
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(chosen) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				m := chosen[i]
				fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", i+1, len(chosen), m.Name, m.Title)
				if err := g.plant(ctx, m, found, thorough); err != nil && ctx.Err() == nil {
					failed[i] = fmt.Errorf("%s: %w", m.Name, err)
					fmt.Fprintln(os.Stderr, " ", failed[i])
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// moduleRoot returns the folder of go.mod, at or above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod here or above: run this in the tree")
		}
	}
	return "", err
}

// choose returns the mutants that only names: by name, or by a folder above it.
func choose(all []*mutant, only string) ([]*mutant, error) {
	if only == "" {
		return all, nil
	}
	var chosen []*mutant
	for _, word := range strings.Split(only, ",") {
		found := false
		for _, m := range all {
			if m.Name == word || m.Room == word || strings.HasPrefix(m.Name, strings.TrimSuffix(word, "/")+"/") {
				found = true
				if !slices.Contains(chosen, m) { // rooms lie in rooms
					chosen = append(chosen, m)
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("-only %q: no such room or patch; -list lists them", word)
		}
	}
	return chosen, nil
}
