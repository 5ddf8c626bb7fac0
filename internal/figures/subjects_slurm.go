package main

func slurm() subject {
	const run = "go run ./test/slurm/measure "
	return subject{
		name: "slurm", title: "Slurm clusters as sites", takes: "10 min",
		intro: "Real Slurm clusters on this machine with gridnode in front of them, beside Slurm itself in the same run. " +
			"All share the machine's cores: the clusters say that they have more. Slurm is tuned to begin jobs as soon as it can.",
		parts: []part{
			bench{
				title: "A burst of small jobs",
				text: "200 jobs that do nothing, submitted at a cluster of 2 processors beside one of 16. Through gridnode: as an array, and with its sbatch, " +
					"four at a time, without and with processors that each site keeps for small jobs (pilots). With Slurm's sbatch, four at a time: " +
					"at the larger cluster alone, with -M and both clusters, and in a federation of Slurm's own.",
				command: run + "burst -n 200",
			},
			bench{
				title: "From submission to the end",
				text: "Single jobs that do nothing at an idle cluster: through gridnode until their ends are known there, " +
					"with sbatch until the job has run, and with srun, in turn; and through gridnode with pilots.",
				command: run + "latency -n 20",
			},
			bench{
				title: "Kill −9 with jobs running and queued",
				text: "Ten jobs each, half of them of another site. What the jobs did themselves, what home says and what Slurm's accounting has are compared: " +
					"lost did not end, twice ended more than once, again was begun anew as Slurm had ended it, differ is home's word against the job's, " +
					"sacct-differs is accounting's against home's. Controllers are killed once they have saved the jobs that run. " +
					"s-gap is the longest time without a job done at the other site. Six clusters share the kills.",
				command: run + "kills -n 20 -abreast 6 -only daemon,controller,both",
			},
			bench{
				title:   "What the poll costs the controller",
				text:    "Processor time of slurmctld with 5,000 jobs waiting in its queue, without a site and with one that has a job there.",
				command: run + "poll -n 5000 -span 40s",
			},
		},
	}
}
