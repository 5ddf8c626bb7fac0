package main

func hostile() subject {
	return subject{
		name: "hostile", title: "Hostile members", takes: "5 min",
		intro: "Members with good certificates that lie as holders of the directory, and forge messages, cheques and revocations, in virtual time. " +
			"A run in which anything forged has an effect, or money is lost, ends with an error, and this page could not be written.",
		parts: []part{runs{
			title: "By share and seed",
			text: "Live quotes are those of honest sites that an answer had to have, over all questions of honest sites to the directory. " +
				"Refused are forged messages that no decoder takes; the others are heard, and change nothing.",
			heads: list("share seed"),
			rows:  product("hostile --sites 60 --share %s --seed %s", list("0 0.1 0.2"), list("1 2 3 4")),
			figures: []figure{
				value("hostile", "config.hostile", 0),
				value("live quotes", "config.live", 0),
				share("found, %", "config.found", "config.live", 2),
				value("stale", "config.stale", 0),
				value("directory messages a query", "messages.directoryPerQuery.mean", 1),
				value("forged", "config.sent", 0),
				value("refused", "config.refused", 0),
				value("with an effect", "config.accepted", 0),
				value("jobs paid", "config.paidJobs", 0),
				value("times money was lost", "config.losses", 0),
			},
		}},
	}
}
