package main

func federation() subject {
	jobs := []figure{
		share("accepted, %", "total.accepted", "total.submitted", 2),
		share("elsewhere, %", "total.migrated", "total.submitted", 1),
		scaled("utilization, %", "total.utilization", 100, 1),
		value("wait, s", "total.awt", 0),
		value("response, s", "total.responseTime", 0),
		scaled("credits, thousands", "total.budgetSpent", 1e-3, 0),
	}
	messages := []figure{
		value("messages per job", "messages.perJob.mean", 2),
		value("99 %", "messages.perJob.p99", 0),
		value("directory per query", "messages.directoryPerQuery.mean", 2),
		share("accepted, %", "total.accepted", "total.submitted", 2),
		value("response, s", "total.responseTime", 0),
	}
	return subject{
		name: "federation", title: "A federation of the eight sites of Grid-Federation", takes: "20 s",
		intro: "Two days of generated jobs at the eight sites of table 1 of Grid-Federation (2004), in virtual time.",
		parts: []part{
			runs{
				title: "What federating and trading change",
				text: "In the mode independent a site runs its own jobs only. In federated, jobs that their home cannot serve go to others. " +
					"In economy, users choose by cost or time. The second column is the share of users who want the fastest site.",
				heads: list("mode OFT,%"),
				rows: append(product("federation --mode %s --oft %s", list("independent federated"), list("50")),
					product("federation --mode %s --oft %s", list("economy"), list("0 50 100"))...),
				figures: jobs,
			},
			runs{
				title: "The published loop and the coordinated placement",
				text: "Messages per job are the four kinds that Grid-Federation counts. " +
					"The published loop asks one site after the other; the coordinated placement reads a page of quotes and asks few.",
				heads:   list("placement sites"),
				rows:    product("federation --placement %s --sites %s", list("paper coordinated"), list("8 20 50")),
				figures: messages,
			},
			runs{
				title:   "Prices that follow demand",
				text:    "Charged by price × processors × time, with the coordinated placement.",
				heads:   list("pricing OFT,%"),
				rows:    product("federation --cost processor-time --pricing %s --oft %s", list("fixed demand"), list("0 50 100")),
				figures: jobs,
			},
		},
	}
}

func sizes() subject {
	return subject{
		name: "scale", title: "Messages against the number of sites", takes: "5 min",
		intro: "Federations from ten sites to ten thousand in virtual time. " +
			"[performance.md](../performance.md#reading-the-scale-report) says how to read the figures.",
		parts: []part{scale{groups: []group{
			{"Jobs", "What the users got. Compare this first: a placement that refuses everything is cheap.", []figure{
				scaled("hours measured", "spanSeconds", 1.0/3600, 1),
				value("jobs", "jobs", 0),
				scaled("accepted, %", "acceptance", 100, 2),
				share("at another site, %", "migrated", "accepted", 1),
				value("response time, s", "responseTime", 0),
				value("budget spent, credits", "budgetSpent", 0),
			}},
			{"Messages per job", "All that was sent within the span, over the jobs submitted in it.", []figure{
				value("negotiation", "perJob.negotiation", 2),
				value("of users who want the cheapest site", "cheapest.mean", 2),
				value("of users who want the fastest site", "fastest.mean", 2),
				value("receipts and cancellations", "perJob.receipts", 2),
				value("directory queries", "perJob.queries", 2),
				value("look-ups for queries", "perJob.queryLookups", 2),
			}},
			{"Directory messages of one query", "Look-ups are not counted here.", []figure{
				value("mean", "perQuery.mean", 2),
				value("99 % have at most", "perQuery.p99", 0),
				value("most", "perQuery.max", 0),
				value("requests of a look-up", "requestsPerLookup", 2),
			}},
			{"Received by a site in a minute", "What it costs to be a member, whatever one's users do.", []figure{
				value("publishing", "upkeepPerSiteMinute.publishing", 2),
				value("gossip", "upkeepPerSiteMinute.gossip", 2),
				value("look-ups for both", "upkeepPerSiteMinute.lookups", 2),
				value("all of them", "upkeepPerSiteMinute.total", 2),
			}},
			{"Speed of the simulation", "Processor time of a run's own thread; that of the garbage collector is left out.", []figure{
				scaled("events measured, millions", "events", 1e-6, 1),
				scaled("events a second, thousands", "eventsPerSecond", 1e-3, 0),
				value("seconds of processor time", "processorSeconds", 1),
				value("seconds before, until all sites have come up", "setupSeconds", 1),
				scaled("events before, thousands", "setupEvents", 1e-3, 0),
			}},
		}}},
	}
}

func live() subject {
	return subject{
		name: "live-vs-virtual", title: "Live messages beside those of virtual time", takes: "20 min",
		intro: "Real nodes in one process and five virtual networks get the same jobs at the same instants: nodes that trade, lend by " +
			"delegated matchmaking, run jobs at several sites at once, head clusters and pay by cheque. Every size has as many jobs a site " +
			"and minute. The test keeps the nodes' clocks apart from how busy the machine is; `gridnode testnet scale --live " +
			"--all-protocols` measures by the clock of the machine.",
		parts: []part{scale{
			test: "go test ./testnet/scale -run TestLiveBesideVirtual -live-sizes 10,50,100,200 -live-report -count 1 -timeout 60m -v",
			live: true,
		}},
	}
}

func lookups() subject {
	return subject{
		name: "lookups", title: "Look-ups of the DHT model beside those of kad-dht", takes: "2 min",
		intro: "Real nodes and the model's join through the same peers and answer the same questions, first when all live, then when every fifth has died.",
		parts: []part{printed{
			title: "Requests of a look-up",
			text: "k is how many nodes a look-up is to name, α how many are asked at once. The last two numbers are the shares of the k " +
				"nearest living nodes that the answer names: an answer may name dead ones, as kad-dht's does.",
			command: "go test ./testnet/kademlia -run TestModelLooksUpAsLiveNodesDo -count 1 -v -live-nodes 50",
		}},
	}
}

func directory() subject {
	return subject{
		name: "directory", title: "Queries, publishing and churn of the directory", takes: "30 s",
		intro: "The directory alone, in virtual time, with a router that knows every site. The page scale has it within whole federations.",
		parts: []part{
			printed{
				title: "Messages of a query",
				text: "Sixteen quotes of the sites of table 1, again and again. A warm query comes from a site that has asked already, a cold one " +
					"from a site that has to look the holders up.",
				command: "go test ./directory/... -run TestMessagesPerQuery -count 1 -v",
			},
			printed{
				title:   "Publishing of a site whose load changes all the time",
				text:    "The load changes twice a second for half an hour. A change goes to each holder, twelve at most, so the number is bounded.",
				command: "go test ./directory/... -run TestPublishingIsBoundedWhateverTheSize -count 1 -v",
			},
			printed{
				title: "Completeness under churn",
				text: "Sites stay an hour in the mean; half of them crash, half withdraw. Counted are quotes that live sites had published more " +
					"than a second ago.",
				command: "go test ./directory/... -run TestCompletenessUnderChurn -count 1 -v",
			},
			bench{
				title:   "Operations",
				text:    "One warm query and one changed quote, of a site in a federation.",
				command: "go test ./directory/... -run '^$' -bench . -benchmem -count 3 -timeout 30m",
			},
		},
	}
}

func bank() subject {
	return subject{
		name: "bank", title: "The books of a bank, and money under faults", takes: "1 min",
		intro: "Operations of the ledger without network and store, and federations that pay each other while everything fails.",
		parts: []part{
			bench{
				title:   "Operations",
				text:    "A transfer, the books of a whole paid job, and opening a signed cheque. Records are built and not written.",
				command: "go test ./market/bank -run '^$' -bench . -benchmem -count 3 -timeout 30m",
			},
			printed{
				title: "Under faults",
				text: "Seeded federations. After every turn of a bank its books are compared with a second set; at rest nothing may be committed, " +
					"and each pair of sites has to agree. A violation would be an error.",
				command: "go test ./testnet/... -run TestMoneyUnderFaults -count 1 -v",
			},
		},
	}
}
