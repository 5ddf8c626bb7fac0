// Package slurm is the engine of a site whose processors are a Slurm cluster's. Tasks are
// jobs of that cluster, submitted, watched and cancelled by its ordinary commands: no
// service beside them and no rights beyond a user's are needed.
//
// A task becomes an order (shim.Order) in the work directory, which compute nodes see, too,
// and a batch job that carries it out with a copy of this program put there. The job has a
// name that is made of the task and never used again. An order is carried out once at most,
// whoever submits it twice and whatever Slurm requeues, so
//
//   - a submission whose answer is lost, as the daemon or the controller died, is looked for
//     by its name and repeated otherwise;
//   - what an earlier daemon began is taken up from the work directory alone, also while the
//     controller is down;
//   - a task is ended by taking its order back, or by scancel once it runs.
//
// One squeue and one sinfo tell of all jobs, ours and others'; a job that is not listed any
// more is asked for once, with scontrol, or sacct when the controller has forgotten it. The
// pause between polls grows with what a poll costs.
//
// Processors belong to Slurm (run.Theirs). What others hold, and when Slurm expects to have
// processors for a new job (sbatch --test-only), is told to the site as its room.
//
// Only what is stable from Slurm 22.05 to 24.11 is parsed: formats asked for by squeue -o,
// sinfo -o and sacct -P, Key=Value of scontrol -o, and the names of states.
package slurm
