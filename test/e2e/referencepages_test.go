package e2e

// leftOut are the commands that TestReference does not try, by their beginnings, and why, by
// page or folder. A new command of a page is tried, unless it is put here.
var leftOut = map[string][]string{
	"README.md": {
		"make demo", "it takes a minute; a smaller one is tried below",
		"make test", "this is one of them",
		"gridnode init --", "TestReadme does this and what follows it",
		"gridnode start --detach", "TestReadme",
		"gridnode invite --site beta", "TestReadme",
		"gridnode submit --site beta -W", "TestReadme",
		"gridnode submit --policy cheapest --in input.dat -W", "TestReadme",
		"gridnode guests ban alpha", "TestReadme",
		"gridnode testnet run leasing", "the log of jobs is not part of this",
		"gridnode testnet reproduce grid-federation", "the logs are not part of this",
	},
	"docs/cli.md": {
		"gridnode submit --pty", "it needs a terminal; TestLookingIntoJobs has one",
		"gridnode attach", "it needs a terminal; TestLookingIntoJobs has one",
		"gridnode exec -t", "it needs a terminal; TestLookingIntoJobs has one",
		"gridnode web --at", "no site here shows its page to others; TestVisitors has one that does",
		"gridnode testnet run chaos --swarm --seeds 200 --on slurm", "it needs a cluster, and takes long",
		"gridnode testnet scale --to 1000 --oft", "it takes minutes of all processors",
		"gridnode testnet run chaos --replay", "no seed is known to fail; the tests of testnet/scenario/chaos make one",
	},
	"docs/campaign.md": {
		"make campaign", "it takes hours, and a machine of its own",
		"go run ./test/campaign -show", "what it says is what was run before",
	},
	"docs/mutants.md": {
		"make mutants", "it takes hours",
		"make mutation", "it takes an hour",
		"(echo", "it changes the tree",
		"git checkout", "it changes the tree",
	},
	"docs/performance.md":  {"make ", "it takes minutes to hours"},
	"docs/reproduction.md": {"gridnode testnet reproduce", "it takes minutes, and most want logs that are not part of this"},
	"docs/slurm-commands.md": {
		"snakemake", "docs/howto/snakemake.md is tried",
	},
	"docs/traces.md": {"jaeger", "a program of others; TestTraceOfJob of node has a collector"},
	"docs/web.md": {
		"gridnode web --at", "TestVisitors",
		"ssh -L", "it needs another machine",
	},
	"docs/figures/": {"", "it takes minutes to hours; make figures runs it"},
}

// shellsOf are the shells that prompts stand for.
var shellsOf = map[string]string{
	"bank": "physics", "home": "hill", "work": "hill", // docs/bank.md
	"vale":    "physics", // docs/leases.md: hill lends
	"faculty": "physics", // docs/packing.md
}

// wordsOfReference are replaced in all blocks, behind those of a block.
var wordsOfReference = []string{
	" ./simulate", " $HOME/simulate", "12D3KooW…", "$HILL", "7q3k", "$J", "JOB", "$J", "1763640000000000", "$L", "TOKEN", "$TOKEN",
	"delft", "hill", "beta", "hill", "gamma", "hill", "vale", "hill", "alpha", "physics",
	" /data/", " ~/data/", " /backup/", " ~/backup/", " /srv/", " ~/srv/",
	"/etc/gridnode/site", "$HOME/etc/site", "0.0.0.0:7532", "127.0.0.1:7532", "physics.example.org:7532", "127.0.0.1:7532",
}

// beforeReference makes the two sites, the files that commands name, and the programs of others
// that they call.
const beforeReference = `
$ mkdir -p bin data backup srv etc project/plots
$ printf '#!/bin/sh\necho "$0" "$@"\n' >bin/xdg-open; printf '#!/bin/sh\nshift; exec sh -c "$*"\n' >bin/ssh; chmod +x bin/*; cp bin/xdg-open bin/firefox; PATH=$PWD/bin:$PATH
$ printf '#!/bin/sh\ntrue\n' >simulate; chmod +x simulate; cp simulate analyse.py; cp simulate job.sh; cp simulate fit.sh; cp simulate simulate.sh; cp simulate collect.sh
$ echo 1 >input.dat; cp input.dat data.csv; cp input.dat genome.fa; cp input.dat names; printf 'plots:\n\ttouch plots/a.png\n' >project/Makefile
$ for f in climate-2020.nc hg38.2bit hg38.fa model.bin; do echo $f >data/$f; done
$ mkdir -p /opt/. && cp simulate /opt/model && cp simulate solver
$ openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=here -addext subjectAltName=IP:127.0.0.1 -keyout etc/site.key -out etc/site.pem 2>/dev/null; cp etc/site.pem ca.pem
$ gridnode init --site physics --create campus --foreign allow --price 0.5 --processors 64 --listen 127.0.0.1:7531
$ gridnode config set leases.lend allow; gridnode config set bank.offer true; gridnode config set bank.site self
$ gridnode config set api.listen 127.0.0.1:7532; gridnode config set api.certificate ~/etc/site.pem; gridnode config set api.key ~/etc/site.key
$ gridnode start --detach && gridnode invite --site hill >~/invitation && gridnode peers --self -o name | head -1 >~/address
hill$ gridnode init --join $(cat ../home/invitation) --foreign allow --price 0.2 --processors 64 --listen 127.0.0.1:7541 >id
hill$ gridnode config set leases.lend allow; gridnode config set bank.site $(cat ../home/address)
hill$ gridnode start --detach; printf '#!/bin/sh\ntrue\n' >simulate; chmod +x simulate
$ export HILL=$(cat ../hill/id)
$ gridnode bank grant hill 100; gridnode bank grant physics 100
$ gridnode --home third init --join $(gridnode invite --site third) --listen 127.0.0.1:7551
`

// afterReference ends the jobs that commands have left, which would outlive their daemons.
const afterReference = `
$ gridnode status -t running,queued,waiting,awarded -o name | xargs -r gridnode cancel; gridnode status -t cancelling -o name | xargs -r gridnode wait || true
hill$ gridnode status -t running,queued,waiting,awarded -o name | xargs -r gridnode cancel; gridnode status -t cancelling -o name | xargs -r gridnode wait || true
`

// running leaves a job that runs in J.
const running = `$ J=$(gridnode submit --parsable -- sleep 1000)`

// third has the commands that follow be about another site, whose daemon does not run yet.
const third = "$ export GRIDNODE_HOME=$HOME/third\n"

const noThird = "$ gridnode stop || true\n$ unset GRIDNODE_HOME\n"

// trials are the blocks that want something before, by their page and the beginning of their
// first line.
var trials = map[string]trial{
	"README.md: gridnode sites": {before: running, words: []string{"logs -f JOB;  gridnode cancel JOB", "cancel $J; gridnode logs -f $J"}},
	"README.md: gridnode lease request": {
		words: []string{"/data/hg38.fa", "~/data/hg38.fa"}, after: "$ gridnode dataset remove genome:hg38; gridnode link drop hill",
	},
	"README.md: gridnode testnet run federation": {
		words: []string{"--sites 20 --hours 24", "--sites 4 --hours 1", "up -n 50", "up -n 3 --jobs 3"},
	},
	"docs/api.md: curl": {before: "$ TOKEN=$(gridnode token create root)"},
	"docs/api.md: import gridnode": {
		before: "$ export PYTHONPATH=$GRIDNODE_SOURCES/clients/python", words: []string{`"./simulate"`, `"true"`},
	},
	"docs/bank.md: bank$": {words: []string{
		"; gridnode start", "; gridnode stop; gridnode start --detach", "/ip4/192.0.2.1/tcp/7531/p2p/12D3KooW…", "$(cat ../home/address)",
		"gridnode config set bank.accept", "HILL=$(cat id); gridnode --home third init; gridnode --home third config set bank.accept", "grant home", "grant hill",
		" ./simulate", " true",
	}},
	"docs/cli.md: gridnode init": {before: "$ T=$(gridnode invite --site ada)", words: []string{
		"init --site physics", "--home a init --site physics", "--site hill --join gridnode-invitation-1.eyJpIjoi...", "--home b --join $T",
	}},
	"docs/cli.md: gridnode start": {before: third, after: noThird, words: []string{
		"gridnode start\n", "gridnode start --detach; gridnode stop\n",
		"gridnode start --detach", "gridnode start --detach; gridnode stop",
		"gridnode start --price 0.25 --foreign allow", "gridnode start --price 0.25 --foreign allow --detach",
	}},
	"docs/cli.md: gridnode token": {words: []string{
		" ann", " root", "5f02c1d9a3be", `$(gridnode token list --no-headers | awk '{print $1; exit}')`,
	}},
	"docs/cli.md: gridnode drain": {before: third + "$ gridnode start --detach", after: noThird, words: []string{
		"--stop", "--stop; gridnode start --detach",
	}},
	"docs/cli.md: gridnode --home /srv/physics restore": {words: []string{"restore --this", "--home ~/srv/physics restore --this"}},
	"docs/cli.md: gridnode bank":                        {words: []string{"transfer physics", "transfer hill"}},
	"docs/cli.md: gridnode federation": {
		before: `$ for h in 1 2 3 4; do gridnode --home fed$h init --site fed$h; done
$ gridnode --home fed3 federation create three --roots 3 --quorum 2 && cp fed3/root-*.key .
$ TOKEN=$(gridnode invite --site fed4)
`,
		words: []string{
			"gridnode federation create", "gridnode --home fed1 federation create", "federation join", "--home fed4 federation join",
			"federation show", "--home fed1 federation show", "federation request", "--home fed2 federation request",
			"federation sign", "--home fed1 federation sign", "root.key", "fed1/root.key", "federation install", "--home fed2 federation install",
			"federation rotate", "--home fed3 federation rotate",
		},
	},
	"docs/cli.md: gridnode invite": {words: []string{"--site hill", "--site next"}},
	"docs/cli.md: gridnode link":   {after: "$ gridnode link drop hill || true", words: []string{"link invite vale", "--home ../hill/.gridnode link invite physics"}},
	"docs/cli.md: gridnode guests": {
		before: "hill$ gridnode submit --parsable --site physics -- sleep 1000 >job\n$ J=$(cat ../hill/job)", after: "$ gridnode guests unban hill",
	},
	"docs/cli.md: gridnode testnet run chaos --features": {words: []string{
		"run chaos --features", "run chaos --sites 4 --hours 1 --features", "--hours 2 --seeds 100", "--hours 1 --seeds 2",
	}},
	"docs/cli.md: gridnode testnet run chaos --seed 4": {words: []string{"--seed 4", "--seed 4 --sites 4 --hours 1"}},
	"docs/cli.md: gridnode testnet run hostile":        {words: []string{"run hostile ", "run hostile --sites 10 --hours 0.2 ", "seq 20", "seq 1", "--sites 60", ""}},
	"docs/cli.md: gridnode status":                     {before: running, words: []string{"gridnode status --watch", "timeout 1 gridnode status --watch"}, codes: []string{"gridnode status --watch", "124"}},
	"docs/cli.md: gridnode top":                        {words: []string{"gridnode top\n", "timeout 1 gridnode top\n", "gridnode top -d", "timeout 1 gridnode top -d"}, codes: []string{"gridnode top", "124"}},
	"docs/cli.md: gridnode exec":                       {before: running + "\n$ until gridnode exec $J -- true; do sleep 0.1; done"},
	"docs/coallocation.md: go build":                   {words: []string{"go build", "go build -C $GRIDNODE_SOURCES"}},
	"docs/leases.md: gridnode lease request": {words: []string{
		"gridnode lease request hill -n 16 -t 2:00:00 ", "L=$(gridnode lease request hill -n 16 -t 2:00:00 2>&1 | grep -o '[0-9]\\{16\\}') ",
		"gridnode lease revoke 1763640000000000", "gridnode lease request hill -n 1 -t 1:00:00 && gridnode --home ../hill/.gridnode lease revoke " +
			"$(gridnode leases --no-headers | awk '$6 == \"active\" {print $1}' | tail -1)",
	}},
	"docs/leases.md: hill$ ":               {words: []string{"; gridnode start", "; gridnode stop; gridnode start --detach"}, soon: true},
	"docs/leases.md: gridnode link invite": {words: []string{"link invite vale", "--home ../hill/.gridnode link invite physics"}, after: "$ gridnode link drop hill"},
	"docs/packing.md: physics$": {words: []string{
		"12D3KooW…faculty", "$HILL", "12D3KooW…physics,12D3KooW…chemistry", "$HILL", "gridnode config", "gridnode --home third config",
	}},
	"docs/traces.md: gridnode config set": {before: third, after: noThird, words: []string{"gridnode stop &&", "gridnode start --detach; gridnode stop &&"}},
	"docs/trust.md: gridnode federation": {
		before: "$ gridnode --home fed5 init --site fed5; gridnode --home fed5 federation create five && mv fed5/root.key . && rm -f root-new.key",
		after:  "$ rm root.key root-new.key", words: []string{"gridnode federation", "gridnode --home fed5 federation"},
	},
	"docs/users.md: gridnode config set api.socket": {words: []string{"gridnode config", "gridnode --home third config", "cluster", "root"}},
	"docs/users.md: gridnode config set api.listen": {words: []string{
		" ann --expires 7d", " root --expires 7d >token", "GRIDNODE_TOKEN=gridnode_…", "SSL_CERT_FILE=ca.pem GRIDNODE_TOKEN=$(cat token)",
	}},
	"docs/wasm.md: gridnode submit": {before: "$ printf '\\0asm\\1\\0\\0\\0' >simulate.wasm"},
	"docs/cli.md: gridnode manual":  {codes: []string{"gridnode manual", "4"}}, // there is one beside packages, and where "make docs" was
	"docs/install.md: install": {words: []string{
		"bin/gridnode bin/gridnoded /usr/local/bin", "$(command -v gridnode) $(command -v gridnode)d bin",
	}},
	"docs/campaign.md: make campaign": {words: []string{"go run", "cd $GRIDNODE_SOURCES; go run"}, after: "$ cd"},
	"docs/mutants.md: make mutants":   {words: []string{"go run", "cd $GRIDNODE_SOURCES; go run"}, after: "$ cd"},
	"docs/mutants.md: make mutation":  {words: []string{"go run", "cd $GRIDNODE_SOURCES; go run"}, after: "$ cd"},
}
