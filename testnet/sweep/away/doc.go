// Package away has the runs of a sweep done beyond this machine: as jobs of a federation
// (Federation) or of a cluster's Slurm (Slurm). A part is one run. It is the command that
// makes the sweep, with two flags on top: which run it is (Part), and the file that what
// comes of it is written to. It prints nothing.
//
// A Sweep keeps what has come of parts in a directory, so that a second call has only those
// done that are missing, and then goes on as if all had been done here: what is printed is
// the same. The directory has
//
//	sweep.json   what sweep this is: the command, the program, the files that runs read
//	in/          the program and those files; what a job brings along
//	parts/       a file for each part that is done
//	jobs/        which jobs parts were handed to
//	logs/        what the jobs of a cluster print
//
// The call goes on with jobs that an earlier one has left. A part whose job was killed, or has
// vanished, is handed over again, a few times. One that fails is named at the end, when the
// others are done.
package away
