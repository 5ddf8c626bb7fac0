package federation

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// town is a virtual federation with real keys, certificates and seals, of whose members a
// fifth is hostile.
type town struct {
	*Builder
	t       *testing.T
	rng     *rand.Rand
	keys    []crypto.PrivKey
	members []*member.Member
	hostile map[int]string            // what they do, by site
	sealed  map[*directory.Quote]bool // whether a quote's signature is good
	prices  []grid.Price
	changed []grid.Time // when a site's price was set last

	index    map[grid.SiteID]int
	refused  int // pages whose quotes are not signed by their sites: live, such bytes are no message
	expected int // quotes that were to be found
	found    int
	forged   int // quotes in answers that no site has signed, or one that is no member
	stale    int // with a price of long ago
	pending  map[uint64]asked
}

// asked is a question under way.
type asked struct {
	limit int
	site  int
}

func newTown(t *testing.T, sites int, share float64) *town {
	w := &town{
		t: t, rng: rand.New(rand.NewPCG(5, 6)), hostile: map[int]string{}, sealed: map[*directory.Quote]bool{},
		index: map[grid.SiteID]int{}, pending: map[uint64]asked{},
	}
	key := func(n uint64) ed25519.PrivateKey {
		var seed [ed25519.SeedSize]byte
		seed[0], seed[1], seed[2] = byte(n), byte(n>>8), 7
		return ed25519.NewKeyFromSeed(seed[:])
	}
	home, err := member.NewHousehold(rand.NewChaCha8([32]byte{9}), key(60000), "virtual", 0, 1000*grid.Day)
	if err != nil {
		t.Fatal(err)
	}
	w.Builder = &Builder{
		Config: testnet.Config{
			Seed: 3, Inputs: scenario.Inputs(), Link: testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond},
		},
		Name: "virtual", Placement: market.PlacementCoordinated, Foreign: true, Federation: home.Federation,
		Directory: directory.Config{CellMax: 16}, // many cells, so that all kinds of liars hold some
	}
	w.Builder.Members = func(i int) *member.Member { return w.members[i] }
	w.Tell = func(i int, cfg *site.Config) {
		cfg.Directory.Seal = func(payload []byte) ([]byte, error) { return wire.Seal(w.keys[i], directory.Domain, payload) }
	}
	w.Hook = w.hook
	for i := range sites {
		k := key(uint64(i + 1))
		sealing, err := crypto.UnmarshalEd25519PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		id, err := wire.SiteOf(k.Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("site-", i)
		proof, err := home.Admit(k.Public().(ed25519.PublicKey), name, fmt.Sprint("org ", i/3), member.Usual)
		if err != nil {
			t.Fatal(err)
		}
		m, err := home.Federation.Verify(proof, id, grid.Hour)
		if err != nil {
			t.Fatal(err)
		}
		w.keys, w.members, w.IDs = append(w.keys, sealing), append(w.members, m), append(w.IDs, id)
		w.index[id] = i
		w.prices = append(w.prices, grid.Price(1+w.rng.Int64N(1000))*1000)
		w.changed = append(w.changed, 0)
		w.Sites = append(w.Sites, workload.Site{Name: name, Processors: 16, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: w.prices[i]})
	}
	lies := []string{"omits", "is silent", "is stale", "forges"}
	for n, i := range w.rng.Perm(sites)[:int(share*float64(sites))] {
		w.hostile[i] = lies[n%len(lies)]
	}
	return w
}

// hook is what stands around a site: an honest one reads what comes as a node does, a
// hostile one changes what it says.
func (w *town) hook(i int, s *scenario.Enrolled) testnet.Site {
	if lie := w.hostile[i]; lie != "" {
		return &liar{Enrolled: s, w: w, does: lie, first: map[grid.SiteID]*directory.Quote{}}
	}
	return &reader{Enrolled: s, w: w}
}

// reader drops what the decoder of a real node would not take.
type reader struct {
	*scenario.Enrolled
	w *town
}

func (r *reader) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	if d, ok := in.(*grid.Delivery); ok {
		if p, ok := d.Message.(*directory.Page); ok {
			for _, q := range p.Quotes {
				if !r.w.genuine(q) {
					r.w.refused++
					return
				}
			}
		}
	}
	r.Enrolled.Step(now, in, out)
}

// genuine reports whether a quote says what its site has signed.
func (w *town) genuine(q *directory.Quote) bool {
	good, known := w.sealed[q]
	if !known {
		opened, err := directory.OpenQuote(q.Sealed)
		good = err == nil && opened.Site == q.Site && opened.Price == q.Price && opened.Sequence == q.Sequence && opened.Name == q.Name
		w.sealed[q] = good
	}
	return good
}

// liar is a member whose pages are not what it knows.
type liar struct {
	*scenario.Enrolled
	w     *town
	does  string
	first map[grid.SiteID]*directory.Quote // the oldest that it has had of each site
}

func (l *liar) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	before := len(out.Effects)
	l.Enrolled.Step(now, in, out)
	kept := out.Effects[:before]
	for _, e := range out.Effects[before:] {
		if e.Kind == grid.EffectSend {
			if p, ok := out.Sends[e.Index].Message.(*directory.Page); ok {
				if l.does == "is silent" {
					continue
				}
				out.Sends[e.Index].Message = l.lie(p)
			}
		}
		kept = append(kept, e)
	}
	out.Effects = kept
}

func (l *liar) lie(p *directory.Page) *directory.Page {
	lie := *p
	lie.Quotes = nil
	if p.Held {
		lie.Mature = true // whoever believes it asks nobody else
	}
	for _, q := range p.Quotes {
		switch l.does {
		case "omits":
			if l.w.hostile[l.w.index[q.Site]] == "" {
				continue
			}
		case "is stale":
			if l.first[q.Site] == nil {
				l.first[q.Site] = q
			}
			q = l.first[q.Site]
		case "forges":
			cheap := *q
			cheap.Price, cheap.Sequence = 1, q.Sequence+1
			q = &cheap
		}
		lie.Quotes = append(lie.Quotes, q)
	}
	return &lie
}

// ask has an honest site look for the cheapest.
func (w *town) ask(n *testnet.Network, token uint64, limit int) {
	i := w.rng.IntN(len(w.Sites))
	if w.hostile[i] != "" {
		return
	}
	w.pending[token] = asked{limit: limit, site: i}
	n.Inject(n.Now(), i, &site.FindQuotes{Token: token, Query: directory.Query{Attribute: directory.Price, Limit: limit}})
}

// settled is how old a price must be for everybody to have it.
const settled = 30 * grid.Second

// answered compares an answer with what there is.
func (w *town) answered(now grid.Time, _ int, a grid.Answer) {
	q, ok := w.pending[a.Token]
	if !ok {
		return
	}
	delete(w.pending, a.Token)
	got := map[int]bool{}
	edge := grid.Price(0)
	found := a.Value.(*directory.Found)
	for k := range found.Quotes {
		quote := &found.Quotes[k]
		i, known := w.index[quote.Site]
		if opened, err := directory.OpenQuote(quote.Sealed); !known || err != nil || opened.Price != quote.Price {
			w.forged++
			continue
		}
		if quote.Price != w.prices[i] && now-w.changed[i] > settled && w.hostile[i] == "" {
			w.stale++
		}
		got[i] = true
		edge = max(edge, quote.Price)
	}
	for i, price := range w.prices {
		due := q.limit >= len(w.prices) || price < edge // it is among the cheapest
		if w.hostile[i] == "" && now-w.changed[i] > settled && due {
			w.expected++
			if got[i] {
				w.found++
			}
		}
	}
}

// TestHostileMembers: a fifth of all members lie as holders of the directory: they leave
// out what others offer and say that this is all, do not answer, answer with what was,
// or with what nobody has said. Honest members find what there is all the same.
func TestHostileMembers(t *testing.T) {
	sites, end, least := 150, 65*grid.Minute, 20_000
	if testing.Short() {
		sites, end, least = 60, 15*grid.Minute, 1000
	}
	w := newTown(t, sites, 0.2)
	n, err := w.Build()
	if err != nil {
		t.Fatal(err)
	}
	n.Observe(testnet.Observer{Answer: w.answered})
	run := func(until grid.Time) {
		if err := n.Run(context.Background(), until, nil); err != nil {
			t.Fatal(err)
		}
	}
	run(5 * grid.Minute)
	token := uint64(1_000_000)
	for n.Now() < end {
		for range 3 {
			token++
			w.ask(n, token, []int{8, 16, 100}[token%3])
		}
		if i := w.rng.IntN(len(w.Sites)); w.hostile[i] == "" && w.rng.IntN(2) == 0 {
			w.prices[i], w.changed[i] = grid.Price(1+w.rng.Int64N(1000))*1000, n.Now()
			n.Inject(n.Now(), i, &site.SetPrice{Token: token + 1<<40, Price: w.prices[i]})
		}
		run(n.Now() + 10*grid.Second)
	}
	t.Logf("%d of %d live quotes found (%.2f %%), %d stale, %d forged accepted, %d forged pages refused, %d questions open",
		w.found, w.expected, 100*float64(w.found)/float64(w.expected), w.stale, w.forged, w.refused, len(w.pending))
	if w.expected < least || w.found*100 < w.expected*99 {
		t.Errorf("%d of %d live quotes found, want 99 %%", w.found, w.expected)
	}
	if w.forged > 0 {
		t.Errorf("%d forged quotes were accepted", w.forged)
	}
	if w.refused == 0 {
		t.Error("nobody has forged anything")
	}
}
