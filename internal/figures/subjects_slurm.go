package main

func slurm() subject {
	const run = "go run ./test/slurm/measure "
	return subject{
		name: "slurm", title: "Slurm clusters as sites", takes: "10 min",
		intro: "Real Slurm clusters on this machine with gridnode in front of them, beside Slurm itself in the same run. " +
			"All share the machine's cores: the clusters say that they have more. Slurm is tuned to begin jobs as soon as it can.",
		parts: []part{goals{
			title: "What is to be reached",
			text:  "Each figure beside Slurm's of the same run. What the tables below say in full is here in a line.",
			rows: []goal{
				{"200 jobs, sbatch each, pilots", "10 × Slurm's federation", of("%s jobs/s", "Burst/gridnode-sbatch-pilots jobs/s"), of("%s jobs/s", "Burst/slurm-federation jobs/s")},
				{"200 jobs, one array, pilots", "10 × Slurm's federation", of("%s jobs/s", "Burst/gridnode-pilots jobs/s"), of("%s jobs/s", "Burst/slurm-federation jobs/s")},
				{"200 jobs, sbatch each, pilots", "3 × sbatch -M", of("%s jobs/s", "Burst/gridnode-sbatch-pilots jobs/s"), of("%s jobs/s", "Burst/slurm-M jobs/s")},
				{"submit to end, pilot", "100 ms", of("%s ms", "Latency/gridnode-pilots ms-median"), of("srun %s ms", "Latency/srun ms-median")},
				{"submit to end, Slurm's queue", "Slurm's own + 50 ms", of("%s ms", "Latency/gridnode ms-median"), of("sbatch %s ms", "Latency/sbatch ms-median")},
				killed("daemon"), killed("controller"), killed("both"),
				{"poll with 5,000 jobs queued", "1 % of a core", of("%s %%", "Poll/5000-queued %-of-a-core"), nil},
			},
			parts: []bench{
				{
					title: "A burst of small jobs",
					text: "200 jobs that do nothing, submitted at a cluster of 2 processors beside one of 16. Through gridnode: as an array, and with its sbatch, " +
						"four at a time, without and with processors that each site keeps for small jobs (pilots). With Slurm's sbatch, four at a time: " +
						"at the larger cluster alone, with -M and both clusters, and in a federation of Slurm's own.",
					command: run + "burst -n 200",
				},
				{
					title: "From submission to the end",
					text: "Single jobs that do nothing at an idle cluster: through gridnode until their ends are known there, " +
						"with sbatch until the job has run, and with srun, in turn; and through gridnode with pilots.",
					command: run + "latency -n 20",
				},
				{
					title: "Kill −9 with jobs running and queued",
					text: "Ten jobs each, half of them of another site. What the jobs did themselves, what home says and what Slurm's accounting has are compared: " +
						"lost did not end, twice ended more than once, again was begun anew as Slurm had ended it, differ is home's word against the job's, " +
						"sacct-differs is accounting's against home's. Controllers are killed once they have saved the jobs that run. " +
						"s-gap is the longest time without a job done at the other site. Seven clusters share the kills.",
					command: run + "kills -n 20 -abreast 7 -only daemon,controller,both",
				},
				{
					title:   "What the poll costs the controller",
					text:    "Processor time of slurmctld with 5,000 jobs waiting in its queue, without a site and with one that has a job there.",
					command: run + "poll -n 5000 -span 40s",
				},
			},
		}},
	}
}

// killed is the row of one victim.
func killed(name string) goal {
	at := "Kills/" + name + " "
	return goal{"kill −9 of " + name + ", 20 times", "0 lost, 0 twice, 0 differ", of("of %s jobs %s lost, %s twice, %s differ, %s in accounts", at+"jobs", at+"lost", at+"twice", at+"differ", at+"sacct-differs"), nil}
}
