package main

func delegation() subject {
	figures := []figure{
		scaled("finished, %", "config.finished", 100, 2),
		scaled("goodput, CPU days", "total.goodput", 1.0/86400, 1),
		value("wait, s", "total.awt", 0),
		value("slowdown", "total.asd", 2),
		value("delegations per job", "total.delegationsPerJob", 3),
	}
	return subject{
		name: "delegation", title: "Delegated matchmaking and what it is compared with", takes: "30 s",
		intro: "One day of generated jobs on the clusters of DAS and Grid'5000 (Delegated MatchMaking, 2007), in virtual time, one set of jobs. " +
			"The page on the reproduction has ten sets for each point.",
		parts: []part{
			runs{
				title: "Architectures",
				text: "Load is the processor time of the jobs over that of the processors. Finished is the share of the jobs that ended within " +
					"the day; slowdown is bounded at ten seconds.",
				heads:   list("architecture load"),
				rows:    product("delegation --architecture %s --load %s", list("dmm fcondor condor cern central sep-c"), list("70 90")),
				figures: figures,
			},
			runs{
				title:   "Whom to ask first",
				text:    "Neighbours in random order, as published; the most free or the best fitting neighbour; or any site that has gossiped room.",
				heads:   list("ordering load"),
				rows:    product("delegation --ordering %s --load %s", list("neighbours most-free best-fit gossip"), list("70 90")),
				figures: figures,
			},
			runs{
				title:   "Thresholds",
				text:    "A site looks for processors elsewhere when its load is above the threshold.",
				heads:   list("threshold load"),
				rows:    product("delegation --threshold %s --load %s", list("60 80 100 110 125"), list("70")),
				figures: figures,
			},
		},
	}
}

func leasing() subject {
	var rows []oneRun
	for _, policy := range list("local s-strd x-strd") {
		rows = append(rows, oneRun{[]string{policy}, "leasing --policy " + policy + " --trace logs/KTH-SP2-1996-2.1-cln.swf.gz" +
			" --trace logs/CTC-SP2-1996-3.1-cln.swf.gz --processors 100,430"})
	}
	return subject{
		name: "leases", title: "Sites that lease processors from each other", takes: "1 min",
		intro: "KTH with 100 processors and CTC with 430 replay their logs, alone and with leases (The gain of resource delegation, 2009), in virtual time.",
		parts: []part{printed{
			title: "Days of seven sites under faults",
			text: "Leases in a hierarchy, by load and by hand, while messages are lost, doubled and reordered, clocks drift and sites crash. " +
				"A violation would be an error.",
			command: "go test ./testnet/... -run TestLeasesUnderFaults -count 1 -v",
		}, runs{
			title: "Policies",
			text:  "S-STRD leases what a job lacks when it is submitted, X-STRD what every queued job lacks. AWRT is weighted with processors × run time.",
			heads: list("policy"),
			rows:  rows,
			figures: []figure{
				value("jobs", "total.finished", 0),
				value("AWRT, s", "total.awrt", 0),
				value("wait, s", "total.awt", 0),
				scaled("utilization, %", "total.utilization", 100, 2),
				scaled("leased, millions of processor-s", "total.leasedArea", 1e-6, 1),
			},
		}},
	}
}

func coallocation() subject {
	figures := []figure{
		value("response, s", "total.responseTime", 0),
		value("wait, s", "total.awt", 0),
		share("split, %", "total.coallocated", "total.submitted", 1),
		value("tries per job", "config.triesPerJob", 2),
		scaled("gross utilization, %", "total.utilization", 100, 1),
	}
	return subject{
		name: "coallocation", title: "Co-allocation on the clusters of DAS-3", takes: "5 s",
		intro: "A day of jobs of one application on the clusters of DAS-3 (KOALA, 2008), in virtual time, one workload. " +
			"The page on the reproduction has twenty for each point.",
		parts: []part{
			runs{
				title: "Policies, narrow jobs",
				text: "Net utilization is the load if no job were split; gross is what was used. Prime hardly communicates, Wave much. " +
					"wf never splits a job that fits somewhere whole.",
				heads:   list("policy application net,%"),
				rows:    product("coallocation --policy %s --application %s --utilization %s", list("wf fcm adaptive"), list("prime wave"), list("60 75")),
				figures: figures,
			},
			runs{
				title:   "Wide jobs",
				text:    "Jobs of 32, 48 and 64 nodes of Wave, without the cluster of Delft. With groups, ca keeps a job within clusters near each other.",
				heads:   list("policy groups net,%"),
				rows:    wide(),
				figures: figures,
			},
		},
	}
}

// wide returns the rows of wide jobs: ca with and without latency groups.
func wide() (rows []oneRun) {
	for _, p := range []struct{ policy, groups, flags string }{
		{"fcm", "no", "--policy fcm"}, {"ca", "no", "--policy ca"}, {"ca", "500 µs", "--policy ca --latency-group 500us"},
	} {
		for _, u := range list("30 50") {
			rows = append(rows, oneRun{[]string{p.policy, p.groups, u},
				"coallocation " + p.flags + " --application wave --sizes 32,48,64 --without delft --utilization " + u})
		}
	}
	return rows
}

func starts() subject {
	return subject{
		name: "starts", title: "Starts of parallel jobs, and recoveries, on real nodes", takes: "3 min",
		intro: "Real daemons on loopback and jobs that are real processes.",
		parts: []part{
			printed{
				title:   "Between the first and the last task",
				text:    "Each job has four tasks at three other sites, and each task prints when it starts. All start as one.",
				command: "go test ./test/e2e -run 'TestCoallocation$' -count 1 -v -starts 50",
			},
			printed{
				title:   "When a site dies",
				text:    "One site of a job at several dies: none of its tasks may be left. A lender dies: what ran there runs again at home.",
				command: "go test ./test/e2e -run 'TestComponentsSiteDies|TestDelegation|TestPartition' -count 1 -v",
			},
		},
	}
}
