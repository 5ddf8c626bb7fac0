package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gridnode/node"
	"gridnode/node/site"
)

// Metrics is what monitoring is told of one daemon.
type Metrics struct {
	Registry *prometheus.Registry // of the program; libp2p's numbers go there, too
	version  string
	revision string
	host     atomic.Pointer[node.Host]
}

// New returns the metrics of a program that has no host yet.
func New(version, revision string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), version: version, revision: revision}
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Registry.MustRegister(&collector{m: m, described: describedTable()})
	return m
}

// Watch has the numbers be those of host.
func (m *Metrics) Watch(host *node.Host) { m.host.Store(host) }

// collector reads the host when somebody asks.
type collector struct {
	m         *Metrics
	described []*prometheus.Desc // of Table
}

func describedTable() []*prometheus.Desc {
	list := make([]*prometheus.Desc, len(Table))
	for i := range Table {
		list[i] = Table[i].described()
	}
	return list
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.described {
		to <- d
	}
}

// Collect implements prometheus.Collector. A host that does not answer has no numbers.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s, err := c.m.sample()
	if err != nil {
		return
	}
	for i := range Table {
		kind := prometheus.GaugeValue
		if Table[i].Rises {
			kind = prometheus.CounterValue
		}
		Table[i].read(s, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.described[i], kind, value, labels...)
		})
	}
}

// look runs at on the host's loop; it gives up after aliveMax.
func (m *Metrics) look(at func(*node.Host, *site.Site)) error {
	host := m.host.Load()
	if host == nil {
		return errors.New("the daemon is starting")
	}
	done := make(chan error, 1)
	go func() { done <- host.Do(context.Background(), func(s *site.Site) { at(host, s) }) }()
	timer := time.NewTimer(aliveMax)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("the daemon's loop has not answered for %v", aliveMax)
	}
}

// sample reads the host.
func (m *Metrics) sample() (*sample, error) {
	s := &sample{version: m.version, revision: m.revision}
	err := m.look(func(h *node.Host, of *site.Site) {
		read := new(sample) // and not s, which is gone if this takes too long
		read.version, read.revision = s.version, s.revision
		read.site(h, of)
		*s = *read
	})
	if err != nil {
		return nil, err
	}
	h := m.host.Load()
	s.counter, s.network, s.tally, s.steps = h.Counter(), h.Net(), h.Tally(), h.Inputs()
	s.store, s.stored = h.StoreStats()
	s.orders, s.peers, s.users = h.Waiting()
	return s, nil
}

// site reads what only the loop may.
func (s *sample) site(h *node.Host, of *site.Site) {
	s.now = h.Now()
	s.jobs, s.waiting = of.Census()
	totals := of.LeaseTotals()
	s.processor = processors{of.Total(), of.Idle(s.now), totals.Lent, totals.Held, totals.Borrowed}
	s.leases = make(map[[2]string]int)
	for _, l := range of.Leases() {
		direction := "in"
		if l.Lent {
			direction = "out"
		}
		s.leases[[2]string{direction, l.State.String()}]++
	}
	received, given := of.Answers()
	s.received, s.given = make(map[string]int64), make(map[string]int64)
	for code, n := range received.All {
		s.received[code] = n
	}
	for code, n := range given.All {
		s.given[code] = n
	}
	if desk := of.GuestDesk(); desk != nil {
		s.guests = desk.Refused()
	}
	if roll := of.Roll(); roll != nil {
		s.members = len(roll.Members())
	}
	if card := h.Membership(); card != nil {
		if me, err := card.Federation.Verify(card.Proof, h.ID(), s.now); err == nil {
			s.expires = me.Expires
		}
	}
	s.siblings = len(of.Siblings())
	s.draining = of.Draining()
	for _, n := range of.QueryMessages() {
		s.queries += n
	}
	s.lookups = of.QueryLookups()
	s.price = of.Price()
	scheduler := of.Scheduler()
	s.others, s.broken = scheduler.Others, scheduler.Broken
	d := of.Delegations()
	s.brought = delegationSample{d.Asked, d.Refused, d.Brought, d.Passed, d.Served, d.Rejected}
	if desk := of.Desk(); desk != nil {
		stats := desk.Stats()
		s.bank = bankSample{paid: stats.Paid, earned: stats.Earned, unpaid: stats.Unpaid, refused: make(map[string]int64)}
		s.bank.payments, s.bank.bills = desk.Open()
		for reason, n := range stats.Refused {
			s.bank.refused[word(reason)] += n
		}
	}
}

// scrapesMax is how many may read the numbers at a time.
const scrapesMax = 4

// Metrics returns the handler of the numbers.
func (m *Metrics) Metrics() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMax, Timeout: 2 * aliveMax})
}

// Alive answers whether the daemon works: if not, it is to be started anew.
func (m *Metrics) Alive(w http.ResponseWriter, _ *http.Request) {
	say(w, m.look(func(*node.Host, *site.Site) {}))
}

// Ready answers whether the daemon takes work.
func (m *Metrics) Ready(w http.ResponseWriter, _ *http.Request) {
	draining := false
	err := m.look(func(_ *node.Host, s *site.Site) { draining = s.Draining() })
	switch {
	case err != nil:
	case draining:
		err = site.ErrDraining
	default:
		err = m.host.Load().Room()
	}
	say(w, err)
}

func say(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ok")
}
