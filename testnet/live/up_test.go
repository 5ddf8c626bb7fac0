package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/site"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// overdue is how long, in a bubble's time, a live test may take besides what it waits on purpose.
const overdue = 15 * time.Minute

// watch lets a test that takes longer than it should say where it stands. Nodes that
// run keep a bubble's time going, so that nothing else would end it.
func watch(t *testing.T, most time.Duration) {
	late := time.AfterFunc(most, func() {
		stacks := make([]byte, 64<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		var ours []string
		for g := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(g, "gridnode/testnet/") || strings.Contains(g, ".Close(") || strings.Contains(g, "semacquire") {
				ours = append(ours, g)
			}
		}
		panic(fmt.Sprintf("%s is not over after %v; of its goroutines:\n\n%s", t.Name(), most, strings.Join(ours[:min(len(ours), 40)], "\n\n")))
	})
	t.Cleanup(func() { late.Stop() })
}

func up(t *testing.T, change func(*Config)) *Live {
	t.Helper()
	watch(t, overdue)
	cfg := Default()
	cfg.Nodes, cfg.Count, cfg.Transport = 6, 60, "memory"
	if change != nil {
		change(&cfg)
	}
	l, err := Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLive(t *testing.T, l *Live) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestLiveNodesReplayAWorkload(t *testing.T) {
	for _, placement := range []string{"coordinated", "paper"} {
		t.Run(placement, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := up(t, func(cfg *Config) { cfg.Placement = placement })
				defer closeLive(t, l)
				r, err := l.Replay(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				checkReplay(t, r, 60)
			})
		})
	}
}

// checkReplay checks what must add up whatever happened.
func checkReplay(t *testing.T, r *measure.Result, jobs int64) {
	t.Helper()
	s := &r.Total
	if s.Submitted != jobs || s.Accepted+s.Rejected != jobs || s.Finished != s.Accepted {
		t.Errorf("%d jobs: %d submitted, %d accepted, %d rejected, %d finished", jobs, s.Submitted, s.Accepted, s.Rejected, s.Finished)
	}
	if s.Accepted < jobs*9/10 {
		t.Errorf("%d of %d jobs accepted: what messages take has no business here", s.Accepted, jobs)
	}
	if s.Local+s.Migrated != s.Accepted || s.Migrated != s.Remote || s.Migrated == 0 {
		t.Errorf("%d executions at home, %d away, %d of others, want %d in all", s.Local, s.Migrated, s.Remote, s.Accepted)
	}
	if s.Incentive != s.BudgetSpent || s.Incentive <= 0 {
		t.Errorf("sites earned %d, users paid %d", s.Incentive, s.BudgetSpent)
	}
	by := r.Messages.ByType
	if got := by["market.job-submission"]; got < s.Migrated {
		t.Errorf("%d jobs were submitted elsewhere, %d ran there", got, s.Migrated)
	}
	if by["market.negotiate"] < by["market.job-submission"] || by["directory.publish"] == 0 || by["gossip.load"] == 0 {
		t.Errorf("messages %v", by)
	}
	paper := by["market.negotiate"] + by["market.reply"] + by["market.job-submission"] + by["market.job-completion"]
	if s.MessagesLocal != paper || s.MessagesRemote != paper {
		t.Errorf("%d messages of the paper's kinds, but homes count %d and others %d", paper, s.MessagesLocal, s.MessagesRemote)
	}
}

func TestLiveNodesOnTCPWithStores(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	home := t.TempDir()
	change := func(cfg *Config) {
		cfg.Nodes, cfg.Count, cfg.Speedup, cfg.Transport, cfg.Home, cfg.Out = 4, 20, SpeedupMax, "tcp", home, t.TempDir()
	}
	l := up(t, change)
	ids := make([]grid.SiteID, len(l.Hosts()))
	for i, h := range l.Hosts() {
		ids[i] = h.ID()
	}
	r, err := l.Replay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Total; s.Submitted != 20 || s.Finished != s.Accepted {
		t.Errorf("%d submitted, %d accepted, %d finished", s.Submitted, s.Accepted, s.Finished)
	}
	closeLive(t, l)

	l = up(t, change) // the same homes: the same sites, which remember their jobs
	defer closeLive(t, l)
	jobs := 0
	for i, h := range l.Hosts() {
		if h.ID() != ids[i] {
			t.Errorf("site %d came back as %s, was %s", i, h.ID(), ids[i])
		}
		if err := h.Do(t.Context(), func(s *site.Site) { s.Jobs(func(v site.View) bool { jobs++; return true }) }); err != nil {
			t.Fatal(err)
		}
	}
	if jobs != 20 {
		t.Errorf("%d jobs are remembered, want 20", jobs)
	}
}

func TestInterruptedReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := up(t, func(cfg *Config) { cfg.Speedup = 100 })
		defer closeLive(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second, cancel)
		began := time.Now()
		if _, err := l.Replay(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if took := time.Since(began); took > 31*time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

func TestUpNamesTheBadFlag(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"nodes":      func(c *Config) { c.Nodes = 0 },
		"jobs":       func(c *Config) { c.Count = -1 },
		"speedup":    func(c *Config) { c.Speedup = SpeedupMax + 1 },
		"load":       func(c *Config) { c.Load = LoadMax + 1 },
		"shrink":     func(c *Config) { c.Shrink = 0 },
		"order":      func(c *Config) { c.Protocols.Delegation, c.Protocols.Order = "dmm", "alphabet" },
		"coalloc":    func(c *Config) { c.Protocols.Coalloc = "everywhere" },
		"heads":      func(c *Config) { c.Protocols.Heads = 8 },
		"packing":    func(c *Config) { c.Protocols.Heads, c.Protocols.Packing = 1, "tetris" },
		"local":      func(c *Config) { c.Protocols.Local = 101 },
		"divided":    func(c *Config) { c.Protocols.Divided = -1 },
		"slack":      func(c *Config) { c.Slack = -1 },
		"oft":        func(c *Config) { c.OFT = 101 },
		"transport":  func(c *Config) { c.Transport = "pigeon" },
		"delegation": func(c *Config) { c.Protocols.Delegation = "always" },
		"placement":  func(c *Config) { c.Placement = "worst" },
		"trace":      func(c *Config) { c.Traces = []string{"/no/such/log.swf"} },
	} {
		cfg := Default()
		change(&cfg)
		l, err := Up(t.Context(), cfg)
		if !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), "--"+flag) {
			t.Errorf("%s: got %v, %v", flag, l, err)
		}
	}
}

// ask asks the directory through a node, page by page.
func ask(t *testing.T, h *node.Host, query directory.Query) []grid.SiteID {
	t.Helper()
	var sites []grid.SiteID
	for {
		answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
		if err != nil {
			t.Fatal(err)
		}
		found := answer.(*directory.Found)
		if found.Err != nil {
			t.Errorf("find %+v: %v", query, found.Err)
		}
		for i := range found.Quotes {
			sites = append(sites, found.Quotes[i].Site)
		}
		if found.End || len(found.Quotes) == 0 {
			return sites
		}
		query.After = directory.Behind(&found.Quotes[len(found.Quotes)-1], query.Attribute)
	}
}

// offers returns the sites whose own offer a filter lets through.
func offers(t *testing.T, hosts []*node.Host, ok func(*directory.Quote) bool) []grid.SiteID {
	t.Helper()
	var sites []grid.SiteID
	for _, h := range hosts {
		if err := h.Do(t.Context(), func(s *site.Site) {
			if q := s.Offer(); ok(&q) {
				sites = append(sites, h.ID())
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(sites)
	return sites
}

// byDistance returns the hosts, the nearest to a key first.
func byDistance(hosts []*node.Host, key grid.Key) []*node.Host {
	id := func(h *node.Host) peer.ID {
		p, err := peer.Decode(string(h.ID()))
		if err != nil {
			panic(err)
		}
		return p
	}
	return slices.SortedFunc(slices.Values(hosts), func(a, b *node.Host) int {
		if kbucket.Closer(id(a), id(b), string(key[:])) {
			return -1
		}
		return 1
	})
}

// checkPriceChange checks that another node finds a changed price within a second.
func checkPriceChange(t *testing.T, h, other *node.Host) {
	t.Helper()
	const price = 123 * grid.Credit
	if _, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.SetPrice{Token: token, Price: price} }); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	answer, err := other.Ask(t.Context(), func(token uint64) grid.Input {
		return &site.FindQuotes{Token: token, Query: directory.Query{Attribute: directory.Speed, Limit: 1000}}
	})
	if err != nil {
		t.Fatal(err)
	}
	quotes := answer.(*directory.Found).Quotes
	i := slices.IndexFunc(quotes, func(q directory.Quote) bool { return q.Site == h.ID() })
	if i < 0 || quotes[i].Price != price {
		t.Errorf("a second after the change, quote %d of %d, %+v, has another price", i, len(quotes), quotes)
	}
}

func TestFiftyLiveNodesFindWhatThereIs(t *testing.T) {
	if testing.Short() {
		t.Skip("fifty nodes")
	}
	synctest.Test(t, func(t *testing.T) {
		const lifetime = time.Minute
		l := up(t, func(cfg *Config) { cfg.Nodes, cfg.lifetime = 50, grid.FromDuration(lifetime) })
		defer closeLive(t, l)
		hosts := l.Hosts()
		var price grid.Price
		hosts[1].Do(t.Context(), func(s *site.Site) { price = s.Offer().Price })
		check := func(when string, hosts []*node.Host) {
			t.Helper()
			for _, tt := range []struct {
				name   string
				filter directory.Filter
				ok     func(*directory.Quote) bool
			}{
				{"all", directory.Filter{}, func(*directory.Quote) bool { return true }},
				{"highest price", directory.Filter{PriceMax: price}, func(q *directory.Quote) bool { return q.Price <= price }},
				{"least speed", directory.Filter{SpeedMin: 900}, func(q *directory.Quote) bool { return q.Speed >= 900 }},
				{"processors", directory.Filter{ProcessorsMin: 500}, func(q *directory.Quote) bool { return q.Processors >= 500 }},
			} {
				want := offers(t, hosts, tt.ok)
				for i := 0; i < len(hosts); i += 7 {
					for _, query := range []directory.Query{
						{Attribute: directory.Price, Limit: 16, Filter: tt.filter},
						{Attribute: directory.Speed, Descending: true, Limit: 1000, Filter: tt.filter},
					} {
						got := ask(t, hosts[i], query)
						slices.Sort(got)
						if !slices.Equal(got, want) {
							t.Errorf("%s: %s, asked at node %d: %d sites, want %d", when, tt.name, i, len(got), len(want))
						}
					}
				}
			}
		}
		time.Sleep(lifetime / 2) // as after any change of who holds a cell
		check("all are up", hosts)
		checkPriceChange(t, hosts[4], hosts[40])

		// Three of the four holders of a cell that has all quotes leave without a word,
		// and the rest stays complete.
		hosts = byDistance(hosts, directory.RootKey("testnet", directory.Price))
		for _, h := range hosts[:3] {
			h.Kill()
		}
		hosts = hosts[3:]
		time.Sleep(lifetime / 2)
		for i, want := 0, offers(t, hosts, func(*directory.Quote) bool { return true }); i < len(hosts); i += 7 {
			got := ask(t, hosts[i], directory.Query{Attribute: directory.Price, Limit: 16})
			for _, site := range want {
				if !slices.Contains(got, site) {
					t.Errorf("half a lifetime after three died, node %d does not see %s", i, site)
				}
			}
		}
		time.Sleep(lifetime / 2) // their quotes have expired
		check("three died", hosts)
	})
}
