// Package slurm starts real Slurm clusters on this machine for tests, as the user that
// runs them and on loopback only: controllers and node daemons from the distribution's
// packages, with the processors that a test wants them to say they have.
//
//	c := slurm.Start(t, slurm.Config{Name: "a", Nodes: 2, Processors: 4})
//	out := c.Run(t, "squeue", "-h")
//
// Authentication is Slurm's auth/none, which has no security at all: nobody else must be
// able to reach the machine's loopback. Nothing is left behind: each daemon is in a
// process group of its own and is ended with the test, or with the program that started
// it. Where Slurm is not installed a test is left out, and says so; with GRIDNODE_SLURM=must,
// as in CI, it fails instead.
package slurm
