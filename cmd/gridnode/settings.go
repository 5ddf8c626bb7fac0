//go:build !client

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/coalloc"
	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/titan"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/guest"
	"gridnode/node/logging"
	"gridnode/node/quota"
	"gridnode/node/reach"
	engine "gridnode/node/run" // run is what this program does
	"gridnode/node/run/slurm"
	"gridnode/node/sandbox"
	"gridnode/node/site"
	"gridnode/node/store/rotated"
)

// settings are the effective values of every key, checked.
type settings struct {
	name       string
	authority  string // whose site it is; empty: nobody says
	processors int64
	memory     int64 // of the whole site, bytes
	rating     grid.Rating
	latency    grid.Time // within the site
	price      grid.Price
	cost       grid.CostModel
	discipline lrms.Discipline
	weights    titan.Weights
	foreign    bool

	federation string
	listen     []string     // as reach.Listen reads them
	join       []string     // as reach.Peer reads them
	reach      reach.Config // but for Probe

	bankOffer  bool
	bankSite   string   // ID, or "self"; empty if none
	bankAccept []string // IDs, or "self"
	bankJoin   []string // addresses of nodes that were named as banks

	marketPlacement market.Placement
	pricing         market.Pricing
	demand          market.Demand
	goal            grid.Goal // of a job that says nothing
	estimate        grid.Time // of a job that says nothing

	jobs, perUser, finished int64
	retention               grid.Time
	history                 rotated.Options

	lend         bool
	lendMost     int64
	leasePrice   grid.Price // 0: nothing; site.OwnPrice: as jobs
	leasePay     grid.Price // 0: what this site charges
	leaseTerm    grid.Time
	leaseLongest grid.Time
	delegate     lease.MatchConfig
	placement    coalloc.Policy
	radius       grid.Time        // of latency groups; 0: none
	penalty      *coalloc.Penalty // nil: learned
	invitations  lease.Consent

	pack       site.HeadsConfig
	packHead   string   // ID; empty if none
	muscleJoin []string // addresses of nodes that were named as head or member

	sandbox sandbox.Config
	modules node.ModulesConfig
	gpus    gpus

	gpuWeight int64

	onSlurm                    bool // and not on this machine
	slurm                      slurm.Config
	processorsAuto, memoryAuto bool

	doors  doors
	people access.People // without the daemon's own account

	quotas       quota.Config // of its users
	guests       guest.Config
	ruleOrigins  map[ruleValue]string // where its rules stand
	guestAccount *engine.Account      // nil: none was named

	fetchMax int64 // bytes copied here for one job
	files    node.FilesConfig

	traceEndpoint string // empty: nothing is traced
	traceShare    int64  // thousandths

	logLevel slog.Level
	logOwn   map[string]slog.Level // of subsystems
	logJSON  bool
	logFile  string // relative to the home; empty for stderr
}

// auto is the value that takes a setting from the machine.
const auto = "auto"

// setting is one key of config.yaml.
type setting struct {
	key   string // dotted; GRIDNODE_KEY with underscores in the environment
	flag  string // its flag at init and start; empty if it has none
	value string // default
	list  bool   // a YAML list; elsewhere separated by commas
	usage string // one line: meaning, unit, range
	set   func(s *settings, value string) error
}

// settingTable lists every key in the order of the file.
var settingTable = slices.Concat(siteSettings, sandboxSettings, wasmSettings, fileSettings, engineSettings, traceSettings, userSettings, guestSettings)

var siteSettings = []setting{
	{key: "site.name", flag: "site", value: auto, usage: "what people call this site: 1 to 63 letters, digits, dots, dashes, underscores; auto: the host's name",
		set: func(s *settings, v string) (err error) { s.name, err = siteName(v); return err }},
	{key: "site.authority", value: "", usage: "authority whose site this is: its sites gossip with each other; empty: nobody's, it gossips with those near it",
		set: func(s *settings, v string) (err error) {
			if v != "" {
				s.authority, err = checkName(v)
			}
			return err
		}},
	{key: "site.processors", flag: "processors", value: auto, usage: "processors offered, 0 to 16777216; auto: the CPUs of this machine, or of the cluster",
		set: func(s *settings, v string) (err error) {
			if v == auto {
				v, s.processorsAuto = strconv.Itoa(runtime.NumCPU()), true
			}
			s.processors, err = intBetween(v, 0, 1<<24)
			return err
		}},
	{key: "site.gpus", value: auto, usage: "GPUs of this machine: none, types and numbers such as a100=4,v100=2 in the order of their driver, or auto: as the drivers of NVIDIA and AMD say",
		set: func(s *settings, v string) (err error) { s.gpus, err = parseGPUs(v, "/"); return err }},
	{key: "site.gpu-weight", value: "0", usage: fmt.Sprintf("processors that a GPU counts for in what a job costs, 0 to %d; 0: GPUs cost nothing", grid.GPUWeightMax),
		set: func(s *settings, v string) (err error) {
			s.gpuWeight, err = intBetween(v, 0, grid.GPUWeightMax)
			return err
		}},
	{key: "site.memory", flag: "memory", value: auto, usage: "memory offered to jobs, K, M, G or T; 0: not checked; auto: the memory of this machine",
		set: func(s *settings, v string) (err error) {
			if v == auto {
				s.memory, s.memoryAuto = machineMemory(), true
				return nil
			}
			s.memory, err = parseSize(v, 1)
			return err
		}},
	{key: "site.speed", flag: "speed", value: "1000", usage: "speed of one processor as a MIPS rating, 1 to 1000000000; init measures it",
		set: func(s *settings, v string) (err error) { s.rating.Speed, err = intBetween(v, 1, 1e9); return err }},
	{key: "site.bandwidth", flag: "bandwidth", value: "1000", usage: "bandwidth of the site's interconnect in Mb/s, 1 to 1000000000",
		set: func(s *settings, v string) (err error) { s.rating.Bandwidth, err = intBetween(v, 1, 1e9); return err }},
	{key: "site.latency", value: "50us", usage: "latency between processors within the site, 1us to 10s",
		set: func(s *settings, v string) (err error) {
			s.latency, err = latencyFrom(v, 1, "a span from 1us to %v, such as 50us")
			return err
		}},
	{key: "site.price", flag: "price", value: "1", usage: "credits per processor-hour, more than 0, at most six decimals",
		set: func(s *settings, v string) (err error) { s.price, err = parsePrice(v); return err }},
	{key: "site.cost", value: "processor-time", usage: "what the price is multiplied with: processor-time, or paper (time whatever the width)",
		set: func(s *settings, v string) (err error) { s.cost, err = grid.ParseCostModel(v); return err }},
	{key: "site.queue", flag: "queue", value: "easy", usage: "discipline of the local queue: easy (EASY backfilling), fcfs, or titan (EASY in an order that weighs deadlines)",
		set: func(s *settings, v string) (err error) { s.discipline, err = lrms.ParseDiscipline(v); return err }},
	{key: "site.weights", value: "4,3,1", usage: "what titan weighs, each 0 to 1000: time beyond deadlines, makespan, idle time of processors",
		set: func(s *settings, v string) (err error) { s.weights, err = titan.ParseWeights(v); return err }},
	{key: "foreign", flag: "foreign", value: "deny", usage: "jobs of other sites: deny or allow; they run in the sandbox, or not at all",
		set: oneOf(permissions, func(s *settings) *bool { return &s.foreign })},

	{key: "federation", flag: "federation", value: "default", usage: "name of the federation: 1 to 63 of a-z, 0-9, dots, dashes, underscores; nodes of others are strangers",
		set: func(s *settings, v string) (err error) {
			if v != strings.ToLower(v) {
				return fmt.Errorf("%q: want lower-case letters", v)
			}
			s.federation, err = checkName(v)
			return err
		}},
	{key: "network.listen", flag: "listen", value: "127.0.0.1:7531", list: true, usage: "addresses to listen on: ADDRESS:PORT (QUIC and TCP), /ip4/ADDRESS/tcp/PORT or /ip4/ADDRESS/udp/PORT/quic-v1; port 0 picks a free one",
		set: func(s *settings, v string) (err error) { s.listen, err = listenOn(v); return err }},
	{key: "network.join", flag: "join", value: "", list: true, usage: "addresses of nodes to join, as printed by their start: /ip4/ADDRESS/tcp/PORT/p2p/ID, HOST:PORT/p2p/ID or the like",
		set: func(s *settings, v string) (err error) { s.join, err = addresses(v, readPeer); return err }},
	{key: "network.announce", flag: "announce", value: "", list: true, usage: "addresses at which others reach this node, besides those that it listens on: HOST:PORT, /dns4/NAME/tcp/PORT or the like",
		set: func(s *settings, v string) (err error) {
			s.reach.Announce, err = addresses(v, readAnnounced)
			if err == nil {
				_, err = s.reach.Check()
			}
			return err
		}},
	{key: "network.relay", value: "use", usage: "relays between members that cannot connect to each other: use (when this node needs one), offer (use, and be one for others if they can connect to this node) or off",
		set: func(s *settings, v string) (err error) { s.reach.Relay, err = reach.ParseRelay(v); return err }},
	{key: "network.bandwidth", value: "10M", usage: "most bytes a second relayed for other members, K, M or G; 0: no bound",
		set: func(s *settings, v string) (err error) { s.reach.Rate, err = parseSize(v, 1); return err }},
	{key: "network.portmap", value: "false", usage: "ask the router by UPnP or NAT-PMP to let others in: true or false",
		set: oneOf(map[string]bool{"false": false, "true": true}, func(s *settings) *bool { return &s.reach.PortMap })},

	{key: "market.placement", value: "coordinated", usage: "how sites are found: coordinated, or paper (one site after the other, as Grid-Federation 2004)",
		set: func(s *settings, v string) (err error) { s.marketPlacement, err = market.ParsePlacement(v); return err }},
	{key: "market.policy", value: "local", usage: "for jobs without policy, deadline or budget: local, cheapest, fastest or spill",
		set: func(s *settings, v string) (err error) { s.goal, err = grid.ParseGoal(v); return err }},
	{key: "market.pricing", value: "fixed", usage: "how the price comes about: fixed, or demand (it starts from site.price and follows utilisation and queue)",
		set: func(s *settings, v string) (err error) { s.pricing, err = market.ParsePricing(v); return err }},
	{key: "market.price-floor", value: auto, usage: "lowest price under demand, credits per processor-hour; auto: half of site.price",
		set: func(s *settings, v string) (err error) { s.demand.Floor, err = autoPrice(v); return err }},
	{key: "market.price-ceiling", value: auto, usage: "highest price under demand, credits per processor-hour; auto: twice site.price",
		set: func(s *settings, v string) (err error) { s.demand.Ceiling, err = autoPrice(v); return err }},
	{key: "market.price-step", value: "5", usage: "most that one change takes of the price, percent, 1 to 50",
		set: func(s *settings, v string) (err error) {
			s.demand.Step, err = intBetween(v, 1, 50)
			s.demand.Step *= 10 // thousandths
			return err
		}},
	{key: "market.price-interval", value: "10m", usage: "from one change of the price to the next, 1m to 1d",
		set: func(s *settings, v string) (err error) { s.demand.Interval, err = parseSpan(v); return err }},
	{key: "market.price-target", value: "70", usage: "pressure at which the price stays, percent of the processors busy, work in the queue added, 1 to 99",
		set: func(s *settings, v string) (err error) {
			s.demand.Target, err = intBetween(v, 1, 99)
			s.demand.Target *= 10 // thousandths
			return err
		}},
	{key: "bank.offer", value: "false", usage: "keep a bank here, where other sites may have accounts: true or false",
		set: oneOf(map[string]bool{"false": false, "true": true}, func(s *settings) *bool { return &s.bankOffer })},
	{key: "bank.site", value: "", usage: "site whose bank pays for this site's jobs elsewhere: self, an ID, or an address that ends in /p2p/ID; empty: nobody pays",
		set: func(s *settings, v string) error {
			ids, err := bankSites(s, v)
			switch {
			case err != nil:
				return err
			case len(ids) > 1:
				return fmt.Errorf("%q: want one site", v)
			case len(ids) == 1:
				s.bankSite = ids[0]
			}
			return nil
		}},
	{key: "bank.accept", value: "", list: true, usage: "banks one of whose cheques a job of another site must bring, written as in bank.site; empty: jobs may come without",
		set: func(s *settings, v string) (err error) { s.bankAccept, err = bankSites(s, v); return err }},
	{key: "job.time", value: "10m", usage: "run-time bound of jobs submitted without --time, from more than 0 to ten years",
		set: func(s *settings, v string) (err error) { s.estimate, err = parseSpan(v); return err }},

	{key: "limits.jobs", value: "100000", usage: "jobs this site holds before they end, its own and other sites', 1 to 10000000",
		set: func(s *settings, v string) (err error) { s.jobs, err = intBetween(v, 1, 1e7); return err }},
	{key: "limits.user", value: "20000", usage: "jobs one user of this site may have before they end, 1 to 10000000",
		set: func(s *settings, v string) (err error) { s.perUser, err = intBetween(v, 1, 1e7); return err }},
	{key: "limits.finished", value: "100000", usage: "ended jobs kept for status, why and logs, 1 to 10000000",
		set: func(s *settings, v string) (err error) { s.finished, err = intBetween(v, 1, 1e7); return err }},
	{key: "limits.retention", value: "7d", usage: "how long an ended job is kept, from more than 0 to ten years",
		set: func(s *settings, v string) (err error) { s.retention, err = parseSpan(v); return err }},

	{key: "history.size", value: "16M", usage: "size at which a file of the job log ends and another begins, 64K to 1T",
		set: func(s *settings, v string) (err error) {
			if s.history.Size, err = parseSize(v, 1); err == nil && (s.history.Size < 64<<10 || s.history.Size > 1<<40) {
				return fmt.Errorf("%q: want 64K to 1T", v)
			}
			return err
		}},
	{key: "history.files", value: "16", usage: "files of the job log that are kept, 2 to 100000; 0: no job log",
		set: func(s *settings, v string) error {
			n, err := intBetween(v, 0, 100_000)
			if s.history.Files = int(n); err == nil && n == 1 {
				return fmt.Errorf("%q: want 2 to 100000, or 0 for no job log", v)
			}
			return err
		}},

	{key: "leases.lend", value: "deny", usage: "processors to other sites: deny or allow; their jobs run in the sandbox, or not at all",
		set: oneOf(permissions, func(s *settings) *bool { return &s.lend })},
	{key: "leases.most", value: "0", usage: "processors lent at once at most, 0 to 16777216; 0: all",
		set: func(s *settings, v string) (err error) { s.lendMost, err = intBetween(v, 0, 1<<24); return err }},
	{key: "leases.price", value: "0", usage: "credits per processor-hour of a lease, from borrowers that pay from a bank; auto: what jobs cost here; 0: nothing",
		set: func(s *settings, v string) (err error) {
			if s.leasePrice = site.OwnPrice; v != auto {
				s.leasePrice, err = grid.ParseCredits(v)
			}
			return err
		}},
	{key: "leases.pay", value: auto, usage: "highest price of a lease that this site borrows by, credits per processor-hour; auto: what jobs cost here",
		set: func(s *settings, v string) (err error) { s.leasePay, err = autoPrice(v); return err }},
	{key: "leases.term", value: "5m", usage: "how long a lease outlives the last word of its borrower, from 1s to one day",
		set: func(s *settings, v string) (err error) {
			s.leaseTerm, err = spanBetween(v, grid.Second, lease.TermMax)
			return err
		}},
	{key: "leases.longest", value: "30d", usage: "longest lease that is granted, renewals included, from 1s to 366d",
		set: func(s *settings, v string) (err error) {
			s.leaseLongest, err = spanBetween(v, grid.Second, lease.SpanLimit)
			return err
		}},

	{key: "delegation.threshold", value: "0", usage: "load beyond which waiting jobs are given processors of other sites: used and waited for, over own; 1 in the paper; 0: never",
		set: func(s *settings, v string) (err error) { s.delegate.Threshold, err = thousandths(v); return err }},
	{key: "delegation.policy", value: "dmm", usage: "when this site borrows: dmm (load above the threshold), s-strd (what a submitted job lacks) or x-strd (what each queued job lacks)",
		set: func(s *settings, v string) (err error) { s.delegate.Policy, err = lease.ParsePolicy(v); return err }},
	{key: "delegation.links", value: "", list: true, usage: "sites to borrow from, as sibling:ID, child:ID or parent:ID; near ones are asked first",
		set: func(s *settings, v string) (err error) { s.delegate.Links, err = links(v); return err }},
	{key: "delegation.invitations", value: "ask", usage: "invitations to be another site's child: ask (until 'gridnode link accept'), allow (if there is no parent) or deny",
		set: func(s *settings, v string) (err error) { s.invitations, err = lease.ParseConsent(v); return err }},
	{key: "delegation.cycle", value: "1m", usage: "time between two looks at the load, from 1s to one day",
		set: func(s *settings, v string) (err error) {
			s.delegate.DelegationCycle, err = spanBetween(v, grid.Second, grid.Day)
			return err
		}},
	{key: "delegation.order", value: "most-free", usage: "who is asked first among the links: neighbours (at random), most-free, best-fit or gossip (only who is known to have room)",
		set: func(s *settings, v string) (err error) { s.delegate.Ordering, err = lease.ParseOrdering(v); return err }},
	{key: "delegation.hops", value: "6", usage: "how often a request may be passed on, 1 to 16",
		set: func(s *settings, v string) (err error) {
			hops, err := intBetween(v, 1, lease.TTLMax)
			s.delegate.TTL = int32(hops)
			return err
		}},

	{key: "muscle.members", value: "", list: true, usage: "sites that this one heads: IDs, addresses that end in /p2p/ID, or names; jobs without policy are shared out over them",
		set: func(s *settings, v string) (err error) { return s.setMembers(v) }},
	{key: "muscle.head", value: "", usage: "site that may head this one, whose jobs are taken whatever foreign says: an ID, or an address that ends in /p2p/ID; empty: none",
		set: func(s *settings, v string) (err error) { return s.setHead(v) }},
	{key: "muscle.collect", value: "window", usage: "until when jobs are collected: window (for muscle.window from the first one on) or makespan (until a cluster has work for no more than muscle.threshold)",
		set: func(s *settings, v string) (err error) { s.pack.Collect, err = muscle.ParseCollect(v); return err }},
	{key: "muscle.threshold", value: "1m", usage: "with muscle.collect makespan: jobs are shared out as soon as a cluster is expected to be done within this time, up to 24h",
		set: func(s *settings, v string) (err error) {
			s.pack.Threshold, err = spanBetween(v, 0, muscle.ThresholdMax)
			return err
		}},
	{key: "muscle.window", value: "10s", usage: "with muscle.collect window: how long jobs are collected before they are shared out, from 0.1s to 1h",
		set: func(s *settings, v string) (err error) {
			s.pack.Window, err = spanBetween(v, 100*grid.Millisecond, muscle.WindowMax)
			return err
		}},
	{key: "muscle.batch", value: "500", usage: "most jobs shared out at once; the window closes early when as many have come, 1 to 1000",
		set: func(s *settings, v string) error {
			n, err := intBetween(v, 1, muscle.BatchMax)
			s.pack.Batch = int(n)
			return err
		}},
	{key: "muscle.policy", value: "urgent", usage: "how jobs are shared out: urgent (muscle with the most pressed jobs first), muscle (as published), dll (least load) or wrand (at random)",
		set: func(s *settings, v string) (err error) { s.pack.Policy, err = muscle.ParsePolicy(v); return err }},

	{key: "coallocation.policy", value: "adaptive", usage: "how components are placed if a job does not say and names no inputs: wf, cf, fcm, ca or adaptive",
		set: func(s *settings, v string) (err error) { s.placement, err = coalloc.ParsePolicy(v); return err }},
	{key: "coallocation.radius", value: "0s", usage: "jobs placed by ca are kept among sites within this latency of one another's widest, up to 10s; 0s: all sites",
		set: func(s *settings, v string) (err error) {
			s.radius, err = latencyFrom(v, 0, "a span up to %v, such as 5ms, or 0s")
			return err
		}},

	{key: "coallocation.slowdown", value: "learned", usage: "by how many times communication takes longer between two sites a millisecond apart than within one, 0 to 1000, such as 1.5, which adaptive goes by; learned: as this site's own jobs show",
		set: func(s *settings, v string) (err error) { s.penalty, err = penaltyFrom(v); return err }},

	{key: "data.fetch", value: "10G", usage: "most bytes of data sets copied here from other sites for one job that runs here, K, M, G or T; 0: none",
		set: func(s *settings, v string) (err error) { s.fetchMax, err = parseSize(v, 1); return err }},

	{key: "log.level", value: "info", usage: "least severe messages to log: debug, info, warn or error",
		set: func(s *settings, v string) (err error) {
			s.logLevel, err = logging.ParseLevel(v)
			return err
		}},
	{key: "log.levels", value: "", list: true, usage: "the same for single subsystems, as SUBSYSTEM=LEVEL: api, forward, node, p2p, run, slurm, store, trace or witness",
		set: func(s *settings, v string) (err error) {
			s.logOwn, err = logging.ParseLevels(strings.FieldsFunc(v, func(r rune) bool { return r == ',' }))
			return err
		}},
	{key: "log.format", value: "text", usage: "text (key=value), or json (an object a line)",
		set: oneOf(map[string]bool{"text": false, "json": true}, func(s *settings) *bool { return &s.logJSON })},
	{key: "log.file", value: "", usage: "file to log to, relative to the home directory; empty: stderr (with start --detach: the file log)",
		set: func(s *settings, v string) error { s.logFile = v; return nil }},
}

// penaltyFrom reads by how many times communication takes longer between two sites a
// millisecond apart: nil if that is to be learned.
func penaltyFrom(text string) (*coalloc.Penalty, error) {
	if text == "learned" {
		return nil, nil
	}
	times, err := strconv.ParseFloat(text, 64)
	if err != nil || !(times >= 0 && times <= coalloc.PenaltyMax/1e6) {
		return nil, fmt.Errorf("%q: want learned, or a number from 0 to %d, such as 1.5", text, coalloc.PenaltyMax/1_000_000)
	}
	return &coalloc.Penalty{Extra: int64(times*1e6 + 0.5), Latency: grid.Millisecond, Sites: 2}, nil
}

// permissions are the words by which an owner says what others may do.
var permissions = map[string]bool{"deny": false, "allow": true}

// findSetting returns the setting called key, or an error that names the nearest.
func findSetting(key string) (*setting, error) {
	if s := settingOf(key); s != nil {
		return s, nil
	}
	keys := make([]string, len(settingTable))
	for i := range settingTable {
		keys[i] = settingTable[i].key
	}
	return nil, fmt.Errorf("unknown key %s%s", key, didYouMean("", key, keys))
}

// settingOf returns the setting of a key, nil if there is none: a section is none.
func settingOf(key string) *setting {
	for i := range settingTable {
		if settingTable[i].key == key {
			return &settingTable[i]
		}
	}
	return nil
}

func (s *setting) environment() string {
	return "GRIDNODE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
}

// oneOf returns the set function of a key that takes one of a few words.
func oneOf[T any](words map[string]T, field func(*settings) *T) func(*settings, string) error {
	return func(s *settings, v string) error {
		value, ok := words[v]
		if !ok {
			known := make([]string, 0, len(words))
			for w := range words {
				known = append(known, w)
			}
			slices.Sort(known)
			return fmt.Errorf("%q: want %s", v, strings.Join(known, " or "))
		}
		*field(s) = value
		return nil
	}
}

// autoPrice is parsePrice, and 0 for auto.
func autoPrice(v string) (grid.Price, error) {
	if v == auto {
		return 0, nil
	}
	return parsePrice(v)
}

// checkPricing returns an error if the bounds of the price do not fit each other.
func (s *settings) checkPricing() error {
	if s.pricing != market.PricingDemand {
		return nil
	}
	if err := s.demand.Check(s.price); err != nil {
		return fmt.Errorf("market.pricing demand: %w", err)
	}
	return nil
}

func intBetween(v string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q: want a whole number from %d to %d", v, low, high)
	}
	return n, nil
}

// spanBetween reads a span within bounds.
func spanBetween(v string, low, high grid.Time) (grid.Time, error) {
	span, err := parseSpan(v)
	if err != nil {
		return 0, err
	}
	if span < low || span > high {
		return 0, fmt.Errorf("%q: want %v to %v", v, low, high)
	}
	return span, nil
}

// latencyFrom reads a latency of at least low. want says what is wanted, with a place for
// the greatest that is.
func latencyFrom(v string, low grid.Time, want string) (grid.Time, error) {
	d, err := time.ParseDuration(v)
	if latency := grid.FromDuration(d); err == nil && latency >= low && latency <= coalloc.LatencyMax {
		return latency, nil
	}
	return 0, fmt.Errorf("%q: want "+want, v, coalloc.LatencyMax)
}

// thousandths reads a number from 0 to 1000 with at most three decimals.
func thousandths(v string) (int64, error) {
	micros, err := grid.ParseCredits(v)
	if err != nil || micros < 0 || micros > 1000*grid.Credit || micros%1000 != 0 {
		return 0, fmt.Errorf("%q: want a number from 0 to 1000 with at most three decimals", v)
	}
	return int64(micros / 1000), nil
}

// links reads neighbours as RELATION:ID, separated by commas.
func links(v string) (list []lease.Link, err error) {
	for _, text := range strings.Split(v, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		word, id, found := strings.Cut(text, ":")
		relation, err := lease.ParseRelation(word)
		if !found || err != nil {
			return nil, fmt.Errorf("%q: want sibling:ID, child:ID or parent:ID", text)
		}
		if _, err := peer.Decode(id); err != nil {
			return nil, fmt.Errorf("%q: %q is not the ID of a site: %w", text, id, err)
		}
		list = append(list, lease.Link{Site: grid.SiteID(id), Relation: relation})
	}
	return list, lease.CheckLinks("", list)
}

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

func checkName(v string) (string, error) {
	if !namePattern().MatchString(v) {
		return "", fmt.Errorf("%q: want 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit", v)
	}
	return v, nil
}

// siteName returns v, or a name made from the host's.
func siteName(v string) (string, error) {
	if v != auto {
		return checkName(v)
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("%s: the host's name: %w", auto, err)
	}
	host = regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(host, "-")
	return checkName(strings.TrimLeft(host[:min(len(host), 63)], "._-"))
}

// machineMemory returns the memory of this machine in bytes, or 0 (not checked)
// where it cannot be told.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

// bankSites reads sites separated by commas: self, IDs, or addresses with /p2p/ID,
// which the node then joins.
func bankSites(s *settings, v string) (ids []string, err error) {
	for _, text := range strings.Split(v, ",") {
		text = strings.TrimSpace(text)
		if i := strings.LastIndex(text, "/p2p/"); i >= 0 {
			join, err := addresses(text, readPeer)
			if err != nil {
				return nil, err
			}
			s.bankJoin = append(s.bankJoin, join...)
			text = text[i+len("/p2p/"):]
		}
		if text == "" {
			continue
		}
		if _, err := peer.Decode(text); err != nil && text != bankSelf {
			return nil, fmt.Errorf("%q: want self, the ID of a site, or an address that ends in /p2p/ID", text)
		}
		ids = append(ids, text)
	}
	if len(ids) > addressesMax {
		return nil, fmt.Errorf("%d sites, at most %d", len(ids), addressesMax)
	}
	return ids, nil
}

// bankSelf names this very site among banks.
const bankSelf = "self"

// addressesMax bounds the addresses of one key.
const addressesMax = 64

// addresses reads addresses separated by commas.
func addresses(v string, read func(string) error) ([]string, error) {
	var list []string
	for _, text := range strings.Split(v, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := read(text); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		list = append(list, text)
	}
	if len(list) > addressesMax {
		return nil, fmt.Errorf("%d addresses, at most %d", len(list), addressesMax)
	}
	return list, nil
}

// listenOn reads the addresses to listen on.
func listenOn(v string) ([]string, error) {
	list, err := addresses(v, readListen)
	if err == nil && len(list) == 0 {
		return nil, errors.New("no address to listen on: want ADDRESS:PORT")
	}
	return list, err
}

func readListen(text string) error    { _, err := reach.Listen(text); return err }
func readAnnounced(text string) error { _, err := reach.Announce(text); return err }
func readPeer(text string) error      { _, err := reach.Peer(text); return err }
