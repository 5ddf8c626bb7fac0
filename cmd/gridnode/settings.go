package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"gridnode/coalloc"
	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/titan"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
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
	listen     []string // multiaddrs
	join       []string // multiaddrs that end in /p2p/ID

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

	lend         bool
	lendMost     int64
	leaseTerm    grid.Time
	leaseLongest grid.Time
	delegate     lease.MatchConfig
	placement    coalloc.Policy
	radius       grid.Time // of latency groups; 0: none
	invitations  lease.Consent

	pack       site.HeadsConfig
	packHead   string   // ID; empty if none
	muscleJoin []string // addresses of nodes that were named as head or member

	fetchMax int64 // bytes copied here for one job

	logLevel string
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
var settingTable = []setting{
	{key: "site.name", flag: "site", value: auto, usage: "what people call this site: 1 to 63 letters, digits, dots, dashes, underscores; auto: the host's name",
		set: func(s *settings, v string) (err error) { s.name, err = siteName(v); return err }},
	{key: "site.authority", value: "", usage: "authority whose site this is: its sites gossip with each other; empty: nobody's, it gossips with those near it",
		set: func(s *settings, v string) (err error) {
			if v != "" {
				s.authority, err = checkName(v)
			}
			return err
		}},
	{key: "site.processors", flag: "processors", value: auto, usage: "processors offered, 0 to 16777216; auto: the CPUs of this machine",
		set: func(s *settings, v string) (err error) {
			if v == auto {
				v = strconv.Itoa(runtime.NumCPU())
			}
			s.processors, err = intBetween(v, 0, 1<<24)
			return err
		}},
	{key: "site.memory", flag: "memory", value: auto, usage: "memory offered to jobs, K, M, G or T; 0: not checked; auto: the memory of this machine",
		set: func(s *settings, v string) (err error) {
			if v == auto {
				s.memory = machineMemory()
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
	{key: "foreign", flag: "foreign", value: "deny", usage: "jobs of other sites: deny or allow; they run as the daemon's account, without a sandbox",
		set: oneOf(permissions, func(s *settings) *bool { return &s.foreign })},

	{key: "federation", flag: "federation", value: "default", usage: "name of the federation: 1 to 63 of a-z, 0-9, dots, dashes, underscores; nodes of others are strangers",
		set: func(s *settings, v string) (err error) {
			if v != strings.ToLower(v) {
				return fmt.Errorf("%q: want lower-case letters", v)
			}
			s.federation, err = checkName(v)
			return err
		}},
	{key: "network.listen", flag: "listen", value: "/ip4/127.0.0.1/tcp/7531", list: true, usage: "addresses to listen on, as /ip4/ADDRESS/tcp/PORT; port 0 picks a free one",
		set: func(s *settings, v string) (err error) { s.listen, err = addresses(v, false); return err }},
	{key: "network.join", flag: "join", value: "", list: true, usage: "addresses of nodes to join, as printed by their start: /ip4/ADDRESS/tcp/PORT/p2p/ID",
		set: func(s *settings, v string) (err error) { s.join, err = addresses(v, true); return err }},

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

	{key: "leases.lend", value: "deny", usage: "processors to other sites: deny or allow; their jobs run as the daemon's account, without a sandbox",
		set: oneOf(permissions, func(s *settings) *bool { return &s.lend })},
	{key: "leases.most", value: "0", usage: "processors lent at once at most, 0 to 16777216; 0: all",
		set: func(s *settings, v string) (err error) { s.lendMost, err = intBetween(v, 0, 1<<24); return err }},
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
	{key: "muscle.window", value: "10s", usage: "how long jobs are collected before they are shared out, from 0.1s to 1h",
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

	{key: "data.fetch", value: "10G", usage: "most bytes of data sets copied here from other sites for one job that runs here, K, M, G or T; 0: none",
		set: func(s *settings, v string) (err error) { s.fetchMax, err = parseSize(v, 1); return err }},

	{key: "log.level", value: "info", usage: "least severe messages to log: debug, info, warn or error",
		set: func(s *settings, v string) (err error) {
			if !slices.Contains([]string{"debug", "info", "warn", "error"}, v) {
				return fmt.Errorf("%q: want debug, info, warn or error", v)
			}
			s.logLevel = v
			return nil
		}},
	{key: "log.file", value: "", usage: "file to log to, relative to the home directory; empty: stderr (with start --detach: the file log)",
		set: func(s *settings, v string) error { s.logFile = v; return nil }},
}

// permissions are the words by which an owner says what others may do.
var permissions = map[string]bool{"deny": false, "allow": true}

// findSetting returns the setting called key, or an error that names the nearest.
func findSetting(key string) (*setting, error) {
	keys := make([]string, len(settingTable))
	for i := range settingTable {
		if settingTable[i].key == key {
			return &settingTable[i], nil
		}
		keys[i] = settingTable[i].key
	}
	return nil, fmt.Errorf("unknown key %s%s", key, didYouMean("", key, keys))
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

// parsePrice reads a price in credits.
func parsePrice(v string) (grid.Price, error) {
	price, err := grid.ParseCredits(v)
	if err == nil && price == 0 {
		return 0, fmt.Errorf("%q: want more than 0", v)
	}
	return price, err
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

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func checkName(v string) (string, error) {
	if !namePattern.MatchString(v) {
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
			join, err := addresses(text, true)
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

// addresses reads multiaddrs separated by commas: IP and TCP port, and, of nodes
// to join, who is expected there.
func addresses(v string, peer bool) ([]string, error) {
	var list []string
	for _, text := range strings.Split(v, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		want := "/ip4/ADDRESS/tcp/PORT"
		if peer {
			want += "/p2p/ID"
		}
		a, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w: want %s", text, err, want)
		}
		var form strings.Builder
		for _, part := range a {
			form.WriteString("/" + part.Protocol().Name)
		}
		switch form.String() {
		case "/ip4/tcp", "/ip6/tcp":
			if peer {
				return nil, fmt.Errorf("%q does not say which node is expected there: want %s", text, want)
			}
		case "/ip4/tcp/p2p", "/ip6/tcp/p2p":
			if !peer {
				return nil, fmt.Errorf("%q: want %s, without /p2p/", text, want)
			}
		default:
			return nil, fmt.Errorf("%q: want %s (names are not looked up)", text, want)
		}
		list = append(list, text)
	}
	switch {
	case len(list) > addressesMax:
		return nil, fmt.Errorf("%d addresses, at most %d", len(list), addressesMax)
	case len(list) == 0 && !peer:
		return nil, fmt.Errorf("no address to listen on: want /ip4/ADDRESS/tcp/PORT")
	}
	return list, nil
}
