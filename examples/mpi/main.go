// Mpi launches a program of Open MPI as the tasks of a job that runs at several
// sites at once. Each task of the job is one mpi, and becomes one process of MPI:
//
//	gridnode submit --components 2@site1,2@site2 --env MPI_SECRET=… -- /opt/mpi/mpi /opt/mpi/pi
//
// Task 0 runs mpirun, with "mpi agent" in the place of ssh: it hands each task the
// command line of Open MPI's daemon (orted), which that task runs. Between sites all
// connections, of daemons and of the program's processes, go through the one address
// that GRIDNODE_PEERS has for each task. See README.md for what that leaves out.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const usage = `usage: mpi PROGRAM [ARG...]   as the tasks of a job of gridnode submit --components or --coalloc,
                              with --env MPI_SECRET=WORD, a word that nobody can guess`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() > 0: // it has said why
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "mpi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	t, err := taskOf(os.Getenv)
	if err != nil {
		return err
	}
	if args[0] == "agent" {
		return t.agent(ctx, args[1:])
	}
	return t.launch(ctx, args)
}
