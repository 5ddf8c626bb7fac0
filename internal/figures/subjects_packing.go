package main

func packing() subject {
	figures := []figure{
		value("MCP, s", "total.mcp", 1),
		value("PB, s", "total.pb", 1),
		value("makespan, s", "total.makespan", 1),
		share("deadlines missed, %", "total.missed", "total.submitted", 1),
		scaled("utilization, %", "total.utilization", 100, 1),
	}
	return subject{
		name: "packing", title: "Packing batches over several clusters", takes: "30 s",
		intro: "Parallel jobs with soft deadlines over the four clusters of table 3 of MUSCLE (2004), in virtual time, one workload. " +
			"The page on the reproduction has five for each point. MCP is the mean comprehensive performance of the clusters, PB how far they are from each other; lower is better.",
		parts: []part{
			runs{
				title: "Jobs that come one by one",
				text: "A head collects jobs until a cluster has work for no more than a minute, and its members do them. " +
					"Load is what the jobs take of the clusters' processor time.",
				heads:   list("policy load"),
				rows:    product("packing --policy %s --collect makespan --load %s --total 4000", list("muscle urgent dll wrand"), list("80 90 100")),
				figures: append([]figure{value("jobs in the queue", "total.queueLength", 1), value("mean wait, s", "total.awt", 1)}, figures...),
			},
			runs{
				title: "Batches",
				text: "Every batch meets empty clusters. Jobs is the mean number in a batch. MUSCLE's batches are done by a head and its members; " +
					"those of DLL and WRAND by clusters that begin in the order of arrival and have TITAN choose processors anew, which comes to the same.",
				heads:   list("policy jobs"),
				rows:    product("packing --policy %s --queue %s --total 4000 --start arrival --settle 100", list("muscle urgent dll wrand"), list("40 100")),
				figures: figures,
			},
			runs{
				title:   "Batches that meet what is left of the ones before",
				text:    "A batch comes every 130 seconds.",
				heads:   list("policy jobs"),
				rows:    product("packing --policy %s --queue %s --window 130 --total 4000 --start arrival --settle 100", list("muscle dll wrand"), list("40 100")),
				figures: figures,
			},
		},
	}
}

func titan() subject {
	return subject{
		name: "titan", title: "Deadlines missed with TITAN and by heads of clusters", takes: "1 min",
		intro: "Jobs with deadlines in one queue, and batches that a head shares out over its members, both in virtual time.",
		parts: []part{
			printed{
				title:   "One queue, EASY and TITAN",
				text:    "A cluster of 20 processors at a load near one.",
				command: "go test ./internal/lrms -run TestTitanMeetsDeadlines -count 1 -v",
			},
			printed{
				title:   "A head with three members",
				text:    "Batches of 40 jobs over members of 20, 16 and 12 processors, by each policy.",
				command: "go test ./testnet/... -run TestHeadMissesFewerDeadlines -count 1 -v",
			},
		},
	}
}

func chaos() subject {
	return subject{
		name: "chaos", title: "Federations under faults", takes: "10 s",
		intro: "Messages are lost, doubled and reordered, clocks drift, daemons and machines crash, the network falls apart. " +
			"The invariants are checked at every event; a run with a violation ends with an error, and this page could not be written.",
		parts: []part{runs{
			title: "Two hours of faults, by seed",
			text:  "Events checked, messages lost, crashes and partitions of each run, and what became of the jobs.",
			heads: list("seed"),
			rows:  product("chaos --sites 20 --hours 2 --seed %s", list("1 2 3 4 5 6 7 8")),
			figures: []figure{
				value("events checked", "config.eventsChecked", 0),
				value("messages lost", "config.lost", 0),
				value("daemons", "config.injected.daemon", 0),
				value("machines", "config.injected.machine", 0),
				value("partitions", "config.injected.partition", 0),
				value("jobs", "total.submitted", 0),
				value("finished", "total.finished", 0),
				value("refused", "total.rejected", 0),
			},
		}},
	}
}
