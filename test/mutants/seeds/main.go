// Command seeds runs one seed of chaos as 'gridnode testnet run chaos' does, and exits with 1
// if it is violated. It links nothing else, so that it is built within seconds with each bug.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"gridnode/testnet/scenario/chaos"
)

func main() {
	debug.SetGCPercent(400) // a run needs little memory, and most of its time is short-lived values
	cfg := chaos.Default()
	flag.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "determines everything random in the run")
	flag.IntVar(&cfg.Sites, "sites", cfg.Sites, "number of sites")
	flag.Float64Var(&cfg.Hours, "hours", cfg.Hours, "virtual hours of submissions and faults")
	flag.StringVar(&cfg.Faults, "faults", cfg.Faults, "none, or a list of NAME or NAME=INTENSITY")
	flag.StringVar(&cfg.Features, "features", cfg.Features, "none, or a list of NAME or NAME=INTENSITY")
	flag.BoolVar(&cfg.Lend, "lend", cfg.Lend, "sites lend processors to each other")
	swarm := flag.Bool("swarm", false, "draw the mixture of faults and features from the seed")
	flag.Parse()
	if *swarm {
		cfg = cfg.Swarmed()
	}
	if _, err := chaos.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
