package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/after"
	"gridnode/node/guest"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/tally"
)

// Figure is one metric.
type Figure struct {
	Name   string
	Labels []string
	Help   string
	Rises  bool // it is a counter; else a gauge

	read func(s *sample, add add)
}

// add gives a value of a figure, with one value for each of its labels.
type add func(value float64, labels ...string)

// sample is what is read of a host at once.
type sample struct {
	version, revision string

	counter wire.Counter
	network p2p.Stats
	tally   tally.Counts
	steps   int64
	store   store.Stats
	stored  bool
	orders  int
	peers   int
	users   int

	// Of the site, read on its loop.
	now       grid.Time
	processor processors
	jobs      []site.Count
	waiting   map[after.Reason]int64
	leases    map[[2]string]int
	given     map[string]int64 // answers of this site, by code
	received  map[string]int64 // of others to it
	guests    []int64          // refused by the owner's rules, by cause
	siblings  int
	members   int
	expires   grid.Time // this site's certificate; 0: it has none
	queries   int64
	lookups   int64
	price     grid.Price
	others    int64 // processors that another scheduler's users hold
	broken    int64 // promises that it broke
	bank      bankSample
	brought   delegationSample
	draining  bool
}

type processors struct{ total, idle, lent, held, borrowed int64 }

type bankSample struct {
	paid, earned, unpaid grid.Credits
	payments, bills      int
	refused              map[string]int64
}

type delegationSample struct{ asked, refused, brought, passed, served, rejected int64 }

func seconds(t grid.Time) float64 { return float64(t) / float64(grid.Second) }

// owner says whose jobs they are.
func owner(foreign bool) string {
	if foreign {
		return "other"
	}
	return "own"
}

// word makes a value of a label of words for people.
func word(text string) string {
	text, _, _ = strings.Cut(text, ":")
	return strings.ReplaceAll(strings.ReplaceAll(text, " ", "_"), "-", "_")
}

// Table is every figure of gridnode's own, by subject.
var Table = []Figure{
	{"gridnode_build_info", []string{"version", "revision"}, "always 1; its labels say which program this is", false,
		func(s *sample, add add) { add(1, s.version, s.revision) }},

	{"gridnode_draining", nil, "1 while the site takes no new work", false,
		func(s *sample, add add) {
			if s.draining {
				add(1)
			} else {
				add(0)
			}
		}},

	{"gridnode_jobs", []string{"state", "owner"}, "jobs that the site knows, by state; owner is own or other", false,
		func(s *sample, add add) {
			for _, c := range s.jobs {
				add(float64(c.Jobs), c.State.String(), owner(c.Foreign))
			}
		}},
	{"gridnode_jobs_waiting", []string{"reason"}, "own jobs that may not be placed yet, by what they wait for", false,
		func(s *sample, add add) {
			for _, why := range after.AllReasons {
				add(float64(s.waiting[why]), word(string(why)))
			}
		}},
	{"gridnode_job_events_total", []string{"event"}, "what has happened to jobs", true,
		func(s *sample, add add) {
			for kind, n := range s.tally.Events {
				add(float64(n), word(grid.EventKind(kind).String()))
			}
		}},
	{"gridnode_executions_total", []string{"outcome"}, "executions that ended here, with exit code 0 or another one", true,
		func(s *sample, add add) {
			add(float64(s.tally.Succeeded), "success")
			add(float64(s.tally.Failed), "failure")
		}},
	{"gridnode_processor_seconds_total", []string{"owner"}, "processor time of executions that ended here", true,
		func(s *sample, add add) {
			add(seconds(s.tally.OwnTime), "own")
			add(seconds(s.tally.OthersTime), "other")
		}},
	{"gridnode_processors", []string{"use"}, "processors: total, idle, lent, held for borrowers, borrowed", false,
		func(s *sample, add add) {
			add(float64(s.processor.total), "total")
			add(float64(s.processor.idle), "idle")
			add(float64(s.processor.lent), "lent")
			add(float64(s.processor.held), "held")
			add(float64(s.processor.borrowed), "borrowed")
		}},
	{"gridnode_scheduler_processors", nil, "processors that other users of the site's own scheduler hold", false,
		func(s *sample, add add) { add(float64(s.others)) }},
	{"gridnode_scheduler_promises_broken_total", nil, "promises that the site's own scheduler did not keep", true,
		func(s *sample, add add) { add(float64(s.broken)) }},

	{"gridnode_price_credits", nil, "credits for a processor-hour", false,
		func(s *sample, add add) { add(float64(s.price) / 1e6) }},
	{"gridnode_market_answers_total", []string{"direction", "code"}, "answers to requests for a guarantee", true,
		func(s *sample, add add) {
			for code, n := range s.received {
				add(float64(n), "received", code)
			}
			for code, n := range s.given {
				add(float64(n), "given", code)
			}
		}},
	{"gridnode_guest_refusals_total", []string{"rule"}, "jobs and leases of other sites that the owner's rules refused", true,
		func(s *sample, add add) {
			for cause, n := range s.guests {
				if guest.Cause(cause) != guest.Admitted {
					add(float64(n), word(guest.Cause(cause).String()))
				}
			}
		}},
	{"gridnode_leases", []string{"direction", "state"}, "leases of processors; direction is in (borrowed) or out (lent)", false,
		func(s *sample, add add) {
			for k, n := range s.leases {
				add(float64(n), k[0], k[1])
			}
		}},
	{"gridnode_delegations_total", []string{"outcome"}, "what became of requests for processors of others", true,
		func(s *sample, add add) {
			d := s.brought
			for outcome, n := range map[string]int64{"asked": d.asked, "refused": d.refused, "brought": d.brought, "passed": d.passed, "served": d.served, "rejected": d.rejected} {
				add(float64(n), outcome)
			}
		}},
	{"gridnode_bank_credits_total", []string{"flow"}, "credits of cheques: paid, earned, not honoured (unpaid)", true,
		func(s *sample, add add) {
			add(float64(s.bank.paid)/1e6, "paid")
			add(float64(s.bank.earned)/1e6, "earned")
			add(float64(s.bank.unpaid)/1e6, "unpaid")
		}},
	{"gridnode_bank_open", []string{"what"}, "payments and bills that are under way", false,
		func(s *sample, add add) {
			add(float64(s.bank.payments), "payments")
			add(float64(s.bank.bills), "bills")
		}},
	{"gridnode_bank_refusals_total", []string{"reason"}, "what banks refused to this site", true,
		func(s *sample, add add) {
			for reason, n := range s.bank.refused {
				add(float64(n), reason)
			}
		}},

	{"gridnode_members", nil, "members of the federation that the site has met", false,
		func(s *sample, add add) { add(float64(s.members)) }},
	{"gridnode_certificate_expiry_timestamp_seconds", nil, "when the site's certificate ends", false,
		func(s *sample, add add) {
			if s.expires > 0 {
				add(seconds(s.expires))
			}
		}},
	{"gridnode_siblings", nil, "sites that this one gossips with", false,
		func(s *sample, add add) { add(float64(s.siblings)) }},
	{"gridnode_directory_queries_total", nil, "queries of this site that the directory answered", true,
		func(s *sample, add add) { add(float64(s.queries)) }},
	{"gridnode_directory_lookups_total", nil, "look-ups of the holders of a cell that these queries took", true,
		func(s *sample, add add) { add(float64(s.lookups)) }},

	{"gridnode_messages_total", []string{"kind", "direction"}, "messages between sites, sent and received", true,
		func(s *sample, add add) {
			s.kinds(func(kind, direction string, c wire.Count) { add(float64(c.Messages), kind, direction) })
		}},
	{"gridnode_message_bytes_total", []string{"kind", "direction"}, "their bytes", true,
		func(s *sample, add add) {
			s.kinds(func(kind, direction string, c wire.Count) { add(float64(c.Bytes), kind, direction) })
		}},
	{"gridnode_network_events_total", []string{"event"}, "what went wrong between sites, or was held back", true,
		func(s *sample, add add) {
			for event, n := range map[string]int64{
				"undelivered": s.network.Undelivered, "lost": s.network.Lost, "busy": s.network.Busy, "refused": s.network.Refused,
				"throttled": s.network.Throttled, "banned": s.network.Banned, "stranger": s.network.Strangers,
				"gossip_dropped": s.network.Gossip, "malformed": s.counter.Malformed,
			} {
				add(float64(n), event)
			}
		}},
	{"gridnode_dht_lookups_total", nil, "look-ups in the DHT that have ended", true,
		func(s *sample, add add) { add(float64(s.network.Lookups)) }},
	{"gridnode_dht_requests_total", nil, "requests sent for them", true,
		func(s *sample, add add) { add(float64(s.network.Requests)) }},

	{"gridnode_inputs_total", nil, "inputs that the site's loop has stepped, ticks included", true,
		func(s *sample, add add) { add(float64(s.steps)) }},
	{"gridnode_inputs_waiting", []string{"source"}, "inputs that wait for the loop, by whose they are", false,
		func(s *sample, add add) {
			add(float64(s.orders), "orders")
			add(float64(s.peers), "peers")
			add(float64(s.users), "users")
		}},
	{"gridnode_store_commits_total", nil, "turns of the loop that were made durable", true, ofStore(func(s store.Stats) float64 { return float64(s.Commits) })},
	{"gridnode_store_changes_total", nil, "records written or deleted by them", true, ofStore(func(s store.Stats) float64 { return float64(s.Changes) })},
	{"gridnode_store_bytes_total", nil, "bytes of these", true, ofStore(func(s store.Stats) float64 { return float64(s.Bytes) })},
	{"gridnode_store_free_bytes", nil, "bytes free on the file system of the store", false, ofStore(func(s store.Stats) float64 { return float64(s.Free) })},
}

// ofStore reads a figure of the store, if there is one.
func ofStore(read func(store.Stats) float64) func(*sample, add) {
	return func(s *sample, add add) {
		if s.stored {
			add(read(s.store))
		}
	}
}

// kinds calls yield for every kind of message and direction that was counted.
func (s *sample) kinds(yield func(kind, direction string, c wire.Count)) {
	for k := range grid.Kind(wire.KindMax) {
		if c := s.counter.SentOf(k); c.Messages > 0 {
			yield(wire.KindName(k), "sent", c)
		}
		if c := s.counter.ReceivedOf(k); c.Messages > 0 {
			yield(wire.KindName(k), "received", c)
		}
	}
}

// described returns what Prometheus is told of a figure.
func (f *Figure) described() *prometheus.Desc {
	return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
}

// aliveMax is how long a daemon's loop may take to answer until it counts as hung.
const aliveMax = 5 * time.Second
