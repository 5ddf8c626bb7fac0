// Package slurm reads what is written for Slurm, and writes what reads Slurm's output: the
// options of sbatch, on a command line and in #SBATCH lines, and the columns of squeue,
// sacct and sinfo. It says in gridnode's own terms what they mean; it asks no daemon.
package slurm
