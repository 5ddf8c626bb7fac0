package main

func files() subject {
	return subject{
		name: "files", title: "Moving the files of jobs", takes: "4 min",
		intro: "Real nodes on loopback. Both ends share the machine's cores. Medians of three.",
		parts: []part{
			bench{
				title: "Beside a bare stream",
				text: "Files of a job from the store of its home into that of another site: read, encrypted, sent, verified at both ends, and kept in packs. " +
					"Beside it what a stream of libp2p between the same nodes carries, encrypted and not looked at, and a plain TCP connection, as iperf3 uses. " +
					"cpu-ns/B is processor time of both ends together, MiB-both-ends the most that a transfer has on the heap at a time.",
				command: "go test ./node -run '^$' -bench Transfer -benchtime 2x -count 3 -timeout 30m",
			},
			bench{
				title:   "A gibibyte that changes in one place",
				text:    "The chunks that have to be moved again when a byte is another one, and when bytes are inserted or cut out.",
				command: "go test ./node/content -run '^$' -bench OneChange -benchtime 1x -count 1 -timeout 30m",
			},
			printed{
				title:   "When the site that runs a job dies",
				text:    "Daemon and shim of a site die with a job whose lease is 10 s. It runs elsewhere when its lease, the grace and a last call are over.",
				command: "go test ./test/e2e -run 'TestDeadSite$' -count 1 -v",
			},
		},
	}
}
