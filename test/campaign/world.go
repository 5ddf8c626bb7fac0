package main

import (
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
	"gridnode/test/realsite"
)

// world is three sites on this machine that run each other's jobs, lend to each other and pay by
// the first one's bank, and the jobs that they were given in a round.
type world struct {
	plan   *plan
	home   *member.Household
	sites  []*site
	sets   []dataSet // that the first one holds
	ledger ledger
	random *rand.Rand
	out    *outcome
	mend   func() // has the sites be as they should be again, before they are judged; nil: they are

	mu     sync.Mutex
	jobs   []*record
	struck map[string]bool // jobs whose processes were killed
}

// processors of each site.
var processors = []int64{2, 3, 4}

// newWorld makes the sites without starting them. place moves a site somewhere before it has a
// home there, and may be nil.
func newWorld(ctx context.Context, p *plan, place func(*site) error) (*world, error) {
	_, key, err := ed25519.GenerateKey(crand.Reader)
	if err != nil {
		return nil, err
	}
	w := &world{plan: p, ledger: ledger(filepath.Join(p.dir, "ledger")), random: rand.New(rand.NewPCG(p.seed, 0)), out: new(outcome), struck: map[string]bool{}}
	if w.home, err = member.NewHousehold(crand.Reader, key, "campaign", grid.Time(time.Now().Add(-24*time.Hour).UnixMicro()), 30*grid.Day); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Mkdir(string(w.ledger), 0o700), os.Chmod(string(w.ledger), 0o777)); err != nil {
		return nil, err
	}
	for i, n := range processors {
		s := &site{w: w, name: string(rune('a' + i)), processors: n, address: "127.0.0.1"}
		s.home = filepath.Join(p.dir, s.name)
		if place != nil {
			if err := place(s); err != nil {
				return nil, err
			}
		}
		if err := s.init(ctx); err != nil {
			return nil, err
		}
		w.sites = append(w.sites, s)
	}
	return w, nil
}

// start starts all sites, and returns once each has what it needs.
func (w *world) start(ctx context.Context) error {
	bank := w.sites[0]
	for i, s := range w.sites {
		settings := []string{"leases.lend", "allow", "leases.term", "20s", "bank.site", "self", "bank.offer", "true"}
		if i > 0 {
			settings = []string{"leases.lend", "allow", "leases.term", "20s", "bank.site", bank.listen(), "network.join", bank.listen(),
				"delegation.threshold", "1", "delegation.cycle", "2s", "delegation.links", "sibling:" + w.sites[3-i].id}
		}
		for j := 0; j < len(settings); j += 2 {
			if err := s.ok(ctx, "config", "set", settings[j], settings[j+1]); err != nil {
				return err
			}
		}
		if err := s.start(); err != nil {
			return err
		}
	}
	for _, s := range w.sites {
		if err := s.sees(ctx, len(w.sites)); err != nil {
			return err
		}
	}
	for _, s := range w.sites[1:] {
		if err := bank.ok(ctx, "bank", "grant", s.id, "1000"); err != nil {
			return err
		}
	}
	return w.share(ctx, bank)
}

// close ends all that runs here.
func (w *world) close() {
	for range 10 {
		left := w.processes("")
		for _, s := range w.sites {
			s.kill()
		}
		for _, p := range left {
			p.kill()
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// again starts daemons that are down, as a service manager does.
func (w *world) again() error {
	for _, s := range w.sites {
		if !s.alive() {
			if err := s.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// patience is how long jobs may take to end once all sites run and see each other: as long as
// an execution that is lost may take to be given up and be run again, a few times.
const patience = 4 * time.Minute

// settle waits until every job is over and nothing is under way, as far as that comes within
// patience, and judges what came of all.
func (w *world) settle(ctx context.Context) error {
	if err := w.again(); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, s := range w.sites {
		if err := s.sees(wait, len(w.sites)); err != nil {
			w.out.breaks("leak: site %s does not see %d sites any more: %v", s.name, len(w.sites), err)
		}
	}
	for _, r := range w.jobs {
		if err := w.await(wait, r); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, r := range w.jobs {
		if err := w.look(ctx, r); err != nil {
			return err
		}
	}
	written, err := w.ledger.read()
	if err != nil {
		return err
	}
	w.out.Jobs = len(w.jobs)
	list := make([]record, 0, len(w.jobs))
	for _, r := range w.jobs {
		r.Struck = w.struck[r.ID]
		list = append(list, *r)
		w.out.note(r.State)
	}
	w.out.Broken = append(w.out.Broken, judge(list, written)...)
	return w.leaks(ctx)
}

// siteOf returns the site of a name.
func (w *world) siteOf(name string) *site {
	for _, s := range w.sites {
		if s.name == name {
			return s
		}
	}
	return nil
}

// await returns once a job is over.
func (w *world) await(ctx context.Context, r *record) error {
	s := w.siteOf(r.Home)
	return realsite.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		reply, err := s.client.Wait(ctx, api.IDsRequest{IDs: []string{r.ID}, Timeout: api.Seconds(10 * grid.Second)})
		if e := new(api.Error); errors.As(err, &e) {
			return true, nil // look says what is wrong
		}
		return err == nil && !reply.TimedOut, err
	})
}
