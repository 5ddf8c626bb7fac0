# gridnode: build, try, test. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
BIN      := bin/gridnode
WHOLE    := bin/gridnoded
SOURCES  := $(shell find cmd directory grid internal lease market coalloc node testnet \( -name '*.go' -not -name '*_test.go' -o -name '*.html' -o -path '*/web/dist/*' \) 2>/dev/null) go.mod go.sum
# Packages with goroutines. The cores have none (a test in grid sees to
# that), so the race detector has nothing to find in them alone; it sees them under
# both drivers in these. With -short what has one goroutine is left out or made shorter;
# all of it runs in `make test`.
# Two threads that fire timers of one synctest bubble share a context of the race detector, which
# crashes it (seen with Go 1.26). One thread per test binary interleaves as many goroutines.
RACECPU  := 1
# Programs with the race detector wait a second before they exit, for races of what runs still; most here are shims,
# of which tests start hundreds, and wait for their end.
GORACE   ?= atexit_sleep_ms=100
RACE     := ./node ./testnet/scenario/chaos ./node/... ./testnet/... ./cmd/...
# All, the longest ones first, so that none of them runs alone in the end. Those wait for daemons, for Slurm or for
# a browser more than they compute: one more runs at a time than there are processors. Of those tests of a package
# that say that they may run together (t.Parallel), most of which wait for processes, four do, as test/e2e has it itself.
TESTS    := ./test/e2e ./node ./node/run/slurm ./testnet/live ./test/page ./test/flood ./...
ATATIME  ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))
TOGETHER ?= 4
COUNT    ?= 5
# A guard against tests that hang, wide enough for a busy machine.
TIMEOUT  ?= 30m

.PHONY: help build docs dist dist-twice demo test check lint race mixed flood mutants mutation campaign campaign-night errorpaths bench figures census fuzz proto deps walls cleanroot nat web browser shots workflows slurm slurmdeps clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

build: $(BIN) ## build bin/gridnode, and bin/gridnoded, which it starts

# What users call is the client, which starts cheaply and leaves to the whole program beside it
# what it does not have. `go build ./cmd/gridnode` makes the whole one, which needs no client.
$(BIN): $(WHOLE)
	CGO_ENABLED=0 $(GO) build -trimpath -tags client -o $@ ./cmd/gridnode

$(WHOLE): $(SOURCES)
	$(GO) build -trimpath -o $@ ./cmd/gridnode

docs: ## make a site of the manual, bin/docs/index.html, to be read and searched without a network
	$(GO) run ./internal/manual -out bin/docs

dist: ## build what is handed out into dist/: static binaries, .deb, .rpm and .apk for amd64 and arm64, parts lists, licences; VERSION=1.2.3
	$(GO) build -C tools/dist -o $(CURDIR)/bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	$(GO) run ./internal/dist -nfpm bin/nfpm -out dist -version '$(VERSION)'
	deploy/package/check.sh dist

dist-twice: ## build all that is handed out twice, in other folders with other caches, clocks and habits, and compare
	deploy/package/twice.sh

demo: $(BIN) ## run twelve real nodes on loopback and watch a federation work (about a minute)
	$(BIN) testnet up -n 12 --jobs 240

# What vet says is lint's.
test: ## run all tests, and the policies of examples/policy
	$(GO) test -vet=off -p $(ATATIME) -parallel $(TOGETHER) -timeout $(TIMEOUT) $(TESTS)
	cd examples/policy && $(GO) vet . && $(GO) run .

lint: ## gofmt, vet, staticcheck, generated code up to date
	@out=$$(gofmt -l $$(git ls-files '*.go' ':!:*.pb.go')); test -z "$$out" || { echo "not gofmt'd (run gofmt -w):"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags manpages ./cmd/gridnode
	CGO_ENABLED=0 $(GO) build -trimpath -tags client -o /dev/null ./cmd/gridnode
	$(GO) mod verify >/dev/null
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) tool -modfile=tools/go.mod validate node/api/openapi/openapi.json

race: ## run the tests that can race under the race detector
	GORACE='$(GORACE)' $(GO) test -race -vet=off -short -cpu $(RACECPU) -p $(ATATIME) -parallel $(TOGETHER) -timeout $(TIMEOUT) $(RACE)

check: lint test race ## exactly what CI runs

mixed: $(BIN) ## run sites of this tree and of the release before (test/e2e/previous) in one federation; the first time builds that, too
	test/e2e/mixed.sh

flood: $(BIN) ## flood real daemons on loopback in many ways, by one peer or user and by twenty (seven minutes); ONLY="lease,gossip"
	$(GO) run ./test/flood -gridnode $(BIN) -only '$(ONLY)'

mutants: ## plant bugs in the tree, one at a time, and say which tests see them (hours); ONLY="lease,market/bank" SEEDS=20 BY="unit,chaos"
	$(GO) run ./test/mutants -only '$(ONLY)' $(if $(SEEDS),-seeds $(SEEDS)) $(if $(BY),-by '$(BY)') $(MUTANTS)

mutation: ## change operators, conditions, results of the cores, SAMPLE=60 times a package, and say what its tests see (an hour); ONLY, SEEDS, BY as above
	$(GO) run ./test/mutants -sample $(or $(SAMPLE),60) -only '$(ONLY)' $(if $(SEEDS),-seeds $(SEEDS)) -by '$(or $(BY),package)' $(MUTANTS)

campaign: $(BIN) ## damage real sites time and again, and say whether a promise was broken (hours, as root); ONLY="kills,cuts" N=100 SEED=1 RESULTS=FILE
	$(GO) run ./test/campaign -gridnode $(BIN) -only '$(ONLY)' $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED)) $(if $(RESULTS),-results '$(RESULTS)') $(CAMPAIGN)

campaign-night: ## the same for eight hours on all processors, beyond what a whole campaign has
	$(MAKE) campaign N=1000000 CAMPAIGN="-for 8h -abreast $$(nproc) $(CAMPAIGN)"

errorpaths: ## list the error paths of cores, store and network that no test executes; TESTS="./node/store/..."
	$(GO) run ./test/errorpaths $(if $(TESTS),-tests '$(TESTS)')

bench: ## benchmarks with allocations (COUNT=5 runs each); compare two outputs with benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) -timeout 60m ./...

figures: $(BIN) ## write docs/figures, all (half an hour and more) or SUBJECT="packing chaos"; TRACES=DIR has the logs
	$(GO) run ./internal/figures -gridnode $(BIN) -traces '$(TRACES)' -out docs/figures $(SUBJECT)

census: $(BIN) ## count how often what chaos can strike comes, in SEEDS=1000 seeds (minutes): strikes go by it
	$(BIN) testnet run chaos --swarm --sites 6 --hours 2 --seeds $(or $(SEEDS),1000) -o csv | \
	  sed -nE 's/^"(before|between) (.*),[0-9]+$$/"\2/p' | grep -v ',0$$' | LC_ALL=C sort > bin/census.csv
	cp bin/census.csv testnet/scenario/chaos/point/census.csv

fuzz: ## run every fuzz target for FUZZTIME (default 10s), those run least first, count and keep what they find; ONLY="lease,market/bank.FuzzLoad"
	$(GO) run ./test/fuzz -only '$(ONLY)' -turn $(or $(FUZZTIME),10s) $(FUZZ)

proto: ## regenerate the protobuf code (needs protoc, see deps)
	$(GO) build -modfile=tools/go.mod -o bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
	cd internal/wire && PATH="$(CURDIR)/bin:$$PATH" protoc --go_out=. --go_opt=module=gridnode/internal/wire wirepb/*.proto

deps: ## what working on gridnode needs beyond Go, git, make and gcc: protoc
	@command -v protoc >/dev/null || { apt-get update -q && apt-get install -yq protobuf-compiler; }
	@protoc --version

walls: ## what the tests of the sandbox try besides the kernel: bubblewrap (without it they leave it out, and say so)
	@command -v bwrap >/dev/null || { apt-get update -q && apt-get install -yq bubblewrap; }
	@bwrap --version

cleanroot: ## what the test of the package wants: a Debian with systemd in bin/cleanroot, booted by systemd-nspawn; as root
	$(GO) build -C tools/dist -o $(CURDIR)/bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	deploy/package/cleanroot.sh bin/cleanroot

nat: ## what the tests of NATs need: iproute2 and nftables (without them they are left out, and say so)
	@command -v ip >/dev/null && command -v nft >/dev/null || { apt-get update -q && apt-get install -yq iproute2 nftables; }
	@nft --version

slurmdeps: ## what the tests of the Slurm engine try: Slurm's daemons, MariaDB (without them they are left out, and say so)
	@test/slurm/packages.sh

web: ## make the page for browsers (node/web/dist) of its sources; needs Node.js
	cd node/web/page && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

browser: ## what the tests of the page drive it with: Chromium (without it they are left out, and say so)
	@command -v chromium >/dev/null || { apt-get update -q && apt-get install -yq chromium; }
	@chromium --version 2>/dev/null

shots: browser ## take the pictures of docs/img anew, in a browser with real daemons behind it
	@to=$$(mktemp -d) && $(GO) test ./test/page -count=1 -run 'TestPage$$|TestPageOfNetwork$$' -shots $$to && cp $$to/page-*.png docs/img/; rm -rf $$to

workflows: ## what the test of a workflow needs: Snakemake (without it that is left out, and says so)
	@command -v snakemake >/dev/null || { apt-get update -q && apt-get install -yq --no-install-recommends snakemake; }
	@snakemake --version

slurm: slurmdeps ## start two real Slurm clusters on loopback, until Ctrl-C; one keeps accounts
	$(GO) run ./test/slurm/up

clean: ## remove what was built
	rm -rf bin out dist
