package hostile

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// banks is how many there are: the first sites keep them, and are honest.
const banks = 2

// orgSize is how many members in a row are of one organisation.
const orgSize = 3

// town is a federation with real keys, certificates and seals.
type town struct {
	*federation.Builder
	cfg     Config
	n       *testnet.Network
	watch   *testnet.Checker
	keys    []crypto.PrivKey
	members []*member.Member
	index   map[grid.SiteID]int
	liars   map[int]string // hostile members, by what they do as holders
	home    *member.Household
	gone    map[int]grid.Time // hostile members that are revoked, or will be, and when
	forgers map[int]*forger
	seen    overheard            // by hostile members, who tell each other
	forged  map[string]Forgeries // by what was forged
	effects int64                // times that something forged had one
	codec   scenario.Codec
	sealed  map[grid.Message]string // messages under way that are forged, by what
	list    *member.List            // of those that are revoked; nil: nobody is yet
	awards  []award                 // the latest jobs of honest homes at other honest sites
}

func newTown(cfg Config) (*town, error) {
	t := &town{
		cfg: cfg, index: make(map[grid.SiteID]int), liars: make(map[int]string), forgers: make(map[int]*forger),
		forged: make(map[string]Forgeries), sealed: make(map[grid.Message]string),
	}
	root := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("hostile root "), cfg.Seed))
	home, err := member.NewHousehold(rand.NewChaCha8(root), ed25519.NewKeyFromSeed(root[:]), "virtual", 0, 1000*grid.Day)
	if err != nil {
		return nil, err
	}
	t.home, t.gone = home, make(map[int]grid.Time)
	t.codec = scenario.NewCodec(home.Federation)
	t.Builder = &federation.Builder{
		Config: testnet.Config{
			Seed: cfg.Seed, Inputs: scenario.Inputs(), Link: testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond},
		},
		Name: "virtual", Placement: market.PlacementCoordinated, Foreign: true, Retention: grid.Day, Bank: t.bankOf,
		Directory:  directory.Config{CellMax: 16, Lifetime: 30 * grid.Minute}, // many cells, so that all kinds of liars hold some
		Federation: home.Federation, Members: func(i int) *member.Member { return t.members[i] }, Hook: t.hook,
		Tell: func(i int, c *site.Config) {
			c.Market.Lease = keepalive.Default // what a revoked member runs has to come back
			c.Directory.Seal = func(payload []byte) ([]byte, error) { return wire.Seal(t.keys[i], directory.Domain, payload) }
			c.Bank.Seal = func(domain string, payload []byte) ([]byte, error) { return wire.Seal(t.keys[i], domain, payload) }
		},
	}
	for i := range cfg.Sites {
		if err := t.admit(home, i); err != nil {
			return nil, err
		}
	}
	return t, t.turn()
}

// admit makes a site a member. The first ones may keep a bank.
func (t *town) admit(home *member.Household, i int) error {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("hostile member "), t.cfg.Seed), uint64(i)))
	key := ed25519.NewKeyFromSeed(seed[:])
	public := key.Public().(ed25519.PublicKey)
	sealing, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return err
	}
	id, err := wire.SiteOf(public)
	if err != nil {
		return err
	}
	rights := member.Usual
	if i < banks {
		rights |= member.MayBank
	}
	name := fmt.Sprint("site-", i+1)
	proof, err := home.Admit(public, name, fmt.Sprint("org-", i/orgSize+1), rights)
	if err != nil {
		return err
	}
	m, err := home.Federation.Verify(proof, id, grid.Hour)
	if err != nil {
		return err
	}
	t.keys, t.members, t.IDs = append(t.keys, sealing), append(t.members, m), append(t.IDs, id)
	t.index[id] = i
	speed := int64(600 + i*97%400)
	t.Sites = append(t.Sites, workload.Site{
		Name: name, Processors: int64(8 << (i % 4)), Rating: grid.Rating{Speed: speed, Bandwidth: 1000}, Price: grid.Price(speed) * grid.Credit / 100,
	})
	return nil
}

// turn draws who is hostile, and what each does.
func (t *town) turn() error {
	rng := rand.New(draw.PCG(t.cfg.Seed, "hostile", draw.ForFaults))
	for k, i := range rng.Perm(t.cfg.Sites - banks)[:min(int(t.cfg.Share*float64(t.cfg.Sites)+0.5), t.cfg.Sites-banks)] {
		t.liars[i+banks] = lies[k%len(lies)]
		f, err := newForger(t, i+banks)
		if err != nil {
			return err
		}
		t.forgers[i+banks] = f
		t.Sites[i+banks].Price /= 2 // so that others have their jobs run there
		if k < t.cfg.Revoke {
			t.gone[i+banks] = federation.Warmup + (t.end()-federation.Warmup)/2 + grid.Time(k)*grid.Minute
		}
	}
	return nil
}

// revoke has certificates taken back when their time comes, by the first site's owner, who has
// the root.
func (t *town) revoke() {
	for i := range t.Sites {
		t.n.Subscribe(member.Topic, i)
	}
	for _, at := range slices.Sorted(maps.Keys(t.gone)) {
		t.n.Call(t.gone[at], 0, func() {
			list, err := t.home.Revoke(t.list, t.n.Now(), t.members[at].Serial)
			if err != nil {
				panic(fmt.Sprintf("hostile: revoke %s: %v", t.Sites[at].Name, err)) // keys of our own
			}
			t.list = list
			t.n.Step(0, &member.Learn{Token: tokens - 1, List: list})
		})
	}
}

// revoked reports whether a member was revoked so long ago that everybody has to know.
func (t *town) revoked(at int) bool {
	when, ever := t.gone[at]
	return ever && t.n.Now() > when+grid.Minute
}

// honest reports whether a site is no hostile member.
func (t *town) honest(at int) bool { return t.liars[at] == "" }

// is reports whether an ID is an honest site's.
func (t *town) is(id grid.SiteID) bool {
	at, known := t.index[id]
	return known && t.honest(at)
}

// siteAt returns the core of a site. None dies here.
func (t *town) siteAt(at int) *site.Site { return scenario.SiteOf(t.n.Core(at)) }

// end is when nobody lies or submits any more.
func (t *town) end() grid.Time { return federation.Warmup + grid.Time(t.cfg.Hours*float64(grid.Hour)) }

// bankOf has the sites pay with the banks in turn. None runs what nobody pays for.
func (t *town) bankOf(i int) bank.Config {
	c := bank.Config{Offer: i < banks, Bank: t.IDs[i%banks]}
	for b := range banks {
		c.Accept = append(c.Accept, t.IDs[b])
	}
	return c
}

// feed generates the jobs of all sites, of which most go where they are cheaper or sooner.
func (t *town) feed() (*scenario.Feed, error) {
	var sources []workload.Source
	for i := range t.Sites {
		m := workload.Lublin(t.Sites[i].Processors)
		m.Shape = workload.Shape{Load: 0.66, MeanRunTime: 4 * grid.Minute}
		g, err := workload.NewGenerator(m, rand.New(draw.PCG(t.cfg.Seed, t.IDs[i], draw.ForJobs)))
		if err != nil {
			return nil, err
		}
		if t.gone[i] != 0 {
			continue // who is revoked has nobody who would write a cheque for it
		}
		sources = append(sources, &workload.Later{Source: &workload.Window{Source: g, Span: t.end() - federation.Warmup}, By: federation.Warmup})
	}
	goals := [...]grid.Goal{grid.GoalCost, grid.GoalTime, grid.GoalSpill, grid.GoalCost}
	return &scenario.Feed{
		Source: workload.NewMerge(sources...),
		QoS:    workload.QoS{Deadline: 10_000, Budget: 4000, Traffic: 100, Length: workload.LengthEstimate},
		Homes:  t.Homes(),
		Goal: func(site int, job *workload.Job) grid.Goal {
			return goals[draw.Mix(draw.Mix(t.cfg.Seed, uint64(site)), uint64(job.Number))%4]
		},
		Adjust: func(j *grid.Job) {
			if j.ID.Lo%2 == 0 {
				j.Deadline, j.Budget = grid.Never, grid.NoBudget
			}
		},
	}, nil
}
