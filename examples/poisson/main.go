// Poisson solves −∇²u = f on the unit square with u = 0 at its border, by red-black
// Gauss–Seidel iteration, with as many tasks as it is started with: the rows are
// dealt out to the tasks, and neighbours exchange the rows between them twice an
// iteration. It is the kind of program that co-allocation is for (Bucur, Sonmez,
// Mohamed and Epema 2008, §5): it communicates all the time, but little.
//
//	go run ./examples/poisson -n 256
//	GRIDNODE_RANK=0 GRIDNODE_PEERS=127.0.0.1:7001,127.0.0.1:7002 go run ./examples/poisson &
//	GRIDNODE_RANK=1 GRIDNODE_PEERS=127.0.0.1:7001,127.0.0.1:7002 go run ./examples/poisson
//
// f is chosen so that u = sin(πx)·sin(πy). The program prints how far it is from
// that, and a checksum of all its values. That one does not depend on how many tasks
// there were, or where: within a colour no value depends on another.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	n := flag.Int("n", 256, "inner points in each direction")
	iterations := flag.Int("iterations", 0, "how many at most; 0: until nothing changes by more than -tolerance")
	tolerance := flag.Float64("tolerance", 1e-7, "largest change of a value in the last iteration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, problem{*n, *iterations, *tolerance}); err != nil {
		fmt.Fprintln(os.Stderr, "poisson:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p problem) error {
	team, err := joinFromEnvironment(ctx)
	if err != nil {
		return err
	}
	defer team.close()
	r, err := solve(team, p)
	if err != nil {
		return fmt.Errorf("task %d of %d: %w", team.rank, team.size, err)
	}
	if team.rank == 0 {
		fmt.Printf("%d×%d points, %d tasks, %d iterations: largest error %.3e, checksum %016x\n",
			p.n, p.n, team.size, r.iterations, r.distance, r.checksum)
	}
	return nil
}
