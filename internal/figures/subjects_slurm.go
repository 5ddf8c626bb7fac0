package main

func slurm() subject {
	const run = "go run ./test/slurm/measure "
	return subject{
		name: "slurm", title: "Slurm clusters as sites", takes: "50 min",
		intro: "Real Slurm clusters on this machine with gridnode in front of them, beside Slurm itself in the same run. " +
			"All share the machine's cores: the clusters say that they have more.",
		parts: []part{
			bench{
				title: "A burst of small jobs",
				text: "200 jobs that do nothing, submitted at a site of 2 processors beside one of 16; " +
					"and with sbatch at the cluster of 16 alone, four at a time.",
				command: run + "burst -n 200",
			},
			bench{
				title:   "The same with pilots",
				text:    "As above, with processors that each site keeps for small jobs.",
				command: run + "burst -n 200 -pilots 16",
			},
			bench{
				title: "From submission to the end",
				text: "Single jobs that do nothing at an idle cluster: through gridnode until its end is known there, " +
					"with sbatch until the job has run, and with srun.",
				command: run + "latency -n 20",
			},
			bench{
				title:   "The same with pilots",
				text:    "As above, with processors that the site keeps for small jobs.",
				command: run + "latency -n 20 -pilots 4",
			},
			bench{
				title: "Kill −9 with jobs running and queued",
				text: "Ten jobs each, half of them of another site. What the jobs did themselves, what home says and what Slurm's accounting has are compared: " +
					"lost did not end, twice ended more than once, again was begun anew as Slurm had ended it, differ is home's word against the job's, " +
					"sacct-differs is accounting's against home's. A controller writes what it knows every five seconds: at-once kills it before that, " +
					"so that its own accounting has lost jobs, and it takes nodes out of service (resumed). " +
					"s-gap is the longest time without a job done at the other site.",
				command: run + "kills -n 20",
			},
			bench{
				title:   "What the poll costs the controller",
				text:    "Processor time of slurmctld with 5,000 jobs waiting in its queue, without a site and with one that has a job there.",
				command: run + "poll -n 5000",
			},
		},
	}
}
