package main

func speed() subject {
	return subject{
		name: "speed", title: "Speed of the cores and of virtual time", takes: "6 min",
		intro: "Go benchmarks, medians of three. cpu-ns is processor time, which another load of the machine changes less than time on the wall.",
		parts: []part{
			bench{
				title:   "A log through one site",
				text:    "The log of CTC SP2 through a site with EASY: from the gzip file, and with the jobs in memory.",
				command: "go test ./testnet/... -run '^$' -bench ReplayCTC -benchmem -benchtime 3x -count 3 -timeout 30m",
				logs:    true,
			},
			bench{
				title:   "A federation that trades",
				text:    "Two days of the eight sites of table 1, directory, look-ups and gossip included, by placement.",
				command: "go test ./testnet/... -run '^$' -bench 'Federation$' -benchmem -benchtime 3x -count 3 -timeout 30m",
			},
			bench{
				title:   "The bare engine",
				text:    "One event is one message delivered and sent on; ten per site are under way.",
				command: "go test ./testnet -run '^$' -bench 'Engine$' -benchmem -count 3 -timeout 30m",
			},
			bench{
				title:   "The local scheduler",
				text:    "Replay of a log, single operations on long queues, and generations of TITAN.",
				command: "go test ./internal/lrms/... -run '^$' -bench . -benchmem -count 3 -timeout 30m",
			},
			bench{
				title:   "Protocol cores",
				text:    "Single operations of market, co-allocation and packing, without a network.",
				command: "go test ./market ./coalloc/... -run '^$' -bench . -benchmem -count 3 -timeout 30m",
			},
		},
	}
}

func jobs() subject {
	return subject{
		name: "jobs", title: "Jobs on real nodes", takes: "5 min",
		intro: "Real daemons on loopback with stores on disk and jobs that are real processes. The program is started anew for every submit. Medians of three.",
		parts: []part{
			bench{
				title: "From submission to result",
				text: "SubmitWait is gridnode submit -W of a command that does nothing: at the own site, at a named one, and through the market. " +
					"Version is the cost of starting the program.",
				command: "go test ./test/e2e -run '^$' -bench 'SubmitWait|Version' -benchtime 40x -count 3 -timeout 30m",
			},
			bench{
				title:   "Bursts",
				text:    "Arrays of jobs that do nothing, at one site and over two.",
				command: "go test ./test/e2e -run '^$' -bench 'Burst|TwoSites' -benchtime 1x -count 3 -timeout 30m",
			},
			bench{
				title:   "Store, messages and processes",
				text:    "A durable commit, the start of a node with many jobs, a message between two nodes, and a process under the watcher.",
				command: "go test ./node/store/... ./node/p2p ./node/shim -run '^$' -bench . -count 3 -timeout 30m",
			},
		},
	}
}
