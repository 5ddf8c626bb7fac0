// Command seeds runs seeds of chaos as 'gridnode testnet run chaos' does, in the order in which they
// are given, as many at a time as there are processors. It prints a line for each as it is over:
// its number, and behind that what it violated, if it did. It links nothing else, so that it is
// built within seconds with each bug.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gridnode/testnet/scenario/chaos"
)

func main() {
	debug.SetGCPercent(400) // a run needs little memory, and most of its time is short-lived values
	cfg := chaos.Default()
	flag.IntVar(&cfg.Sites, "sites", cfg.Sites, "number of sites")
	flag.Float64Var(&cfg.Hours, "hours", cfg.Hours, "virtual hours of submissions and faults")
	flag.StringVar(&cfg.Faults, "faults", cfg.Faults, "none, or a list of NAME or NAME=INTENSITY")
	flag.StringVar(&cfg.Features, "features", cfg.Features, "none, or a list of NAME or NAME=INTENSITY")
	flag.BoolVar(&cfg.Lend, "lend", cfg.Lend, "sites lend processors to each other")
	swarm := flag.Bool("swarm", false, "draw the mixture of faults and features from the seed")
	flag.Parse()
	seeds := make([]uint64, flag.NArg())
	for i := range seeds {
		var err error
		if seeds[i], err = strconv.ParseUint(flag.Arg(i), 10, 64); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(seeds)); i = next.Add(1) - 1 {
				said := run(cfg, seeds[i], *swarm)
				os.Stdout.WriteString(strings.TrimSpace(fmt.Sprintf("%d %s", seeds[i], said)) + "\n")
			}
		})
	}
	workers.Wait()
}

// run runs a seed, and returns the first line of what it violated; empty: all was well.
func run(cfg chaos.Config, seed uint64, swarm bool) string {
	if cfg.Seed = seed; swarm {
		cfg = cfg.Swarmed()
	}
	_, err := chaos.Run(context.Background(), cfg)
	if err == nil {
		return ""
	}
	said, _, _ := strings.Cut(err.Error(), "\n")
	return said
}
