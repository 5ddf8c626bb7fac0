// Command measure runs gridnode in front of real Slurm clusters on loopback, beside Slurm
// itself, and prints figures as Go benchmarks do:
//
//	measure kills -n 20    kill −9 of a site's daemon, its controller, both: what is lost
//	measure burst -n 200   jobs that do nothing, submitted at the smaller of two sites,
//	                       through gridnode, with sbatch -M, and in Slurm's own federation
//	measure latency -n 20  from submission to the end of one such job
//	measure poll -n 5000   what the site's polls cost the controller with so many jobs queued
//
// It touches nothing but loopback, and stops by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want kills, burst, latency or poll")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	program := f.String("gridnode", "bin/gridnode", "the program")
	n := f.Int("n", 0, "how many kills of each, or jobs")
	only := f.String("only", "", "kills: of daemon, controller, both, controller-at-once, both-at-once; all if empty")
	keep := f.Bool("keep", false, "leave the folder of logs behind")
	seed := f.Uint64("seed", 1, "of the pauses")
	pilots := f.Int("pilots", 16, "burst and latency: processors that each site keeps for small jobs, where it does, at most")
	abreast := f.Int("abreast", 1, "kills: how many clusters are there, each of which has its part of the kills")
	span := f.Duration("span", time.Minute, "poll: of each of the two measurements")
	limit := f.Duration("limit", time.Hour, "of everything")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	or := func(usual int) int {
		if *n > 0 {
			return *n
		}
		return usual
	}
	switch args[0] {
	case "kills":
		return kills(ctx, &killing{*program, *only, *keep, or(20), max(*abreast, 1), *seed}, say)
	case "burst":
		return burst(ctx, *program, or(200), *pilots, say)
	case "latency":
		return latency(ctx, *program, or(20), *pilots)
	case "poll":
		return poll(ctx, *program, or(5000), *span, say)
	}
	return fmt.Errorf("%q: want kills, burst, latency or poll", args[0])
}
