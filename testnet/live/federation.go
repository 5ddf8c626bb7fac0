package live

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/node"
	"gridnode/node/member"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/kademlia"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/workload"
)

// Federation is what a federation of live nodes is called.
const Federation = "testnet"

// What a message takes from one site to another, in virtual networks and in memory: about
// what it takes between processes of one machine.
var (
	fleetLatencyMin = grid.Millisecond / 2
	fleetLatencyMax = 5 * grid.Millisecond
)

// describe returns the description of the federation: each live node is told what it says
// of the site, and virtual networks are made of it. A network needs one of its own.
func (l *Live) describe(seed uint64) *federation.Builder {
	f := &federation.Builder{
		Config: testnet.Config{
			Seed: seed, Inputs: scenario.Inputs(),
			Link: testnet.Link{LatencyMin: fleetLatencyMin, LatencyMax: fleetLatencyMax},
		},
		Name: Federation, Placement: l.placement, Foreign: true, Sites: append([]workload.Site{}, l.work.Sites...), IDs: l.ids,
		Authority: l.authority, Allowance: l.cfg.Slack / 4, Directory: directory.Config{Lifetime: l.cfg.lifetime},
		Retention: site.DefaultLimits.Retention, Tell: l.protocols.tell,
		Router: fleetRouter(), Place: func(site int) grid.Key { return l.places[site] }, // who holds a cell decides how many holders there are
		Through: func(site int) []int { return l.ups[site].through },
	}
	for i := range f.Sites { // jobs cost what they would have
		f.Sites[i].Price *= grid.Price(l.cfg.Speedup)
	}
	return f
}

// fleetRouter looks up as nodes of p2p.ProfileFleet do.
func fleetRouter() kademlia.Config {
	k, alpha := p2p.ProfileFleet.Kademlia()
	return kademlia.Config{K: k, Alpha: alpha, Hash: true}
}

// authority returns whose a site is.
func (l *Live) authority(site int) string {
	if l.cfg.free {
		return ""
	}
	return federation.Authorities(scale.SiblingsMax)(site)
}

// identify draws the nodes' identities, which follow from seed and name: a network that
// is started again in the same homes is the same one. places is where kad-dht puts them.
func (l *Live) identify() error {
	for i := range l.work.Sites {
		name := l.work.Sites[i].Name
		seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("testnet node "+name+" "), l.cfg.Seed))
		key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8(seed))
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		l.keys, l.ids, l.places = append(l.keys, key), append(l.ids, grid.SiteID(id.String())), append(l.places, sha256.Sum256([]byte(id)))
	}
	return nil
}

// Invite returns a token with which another site becomes a member for a day.
func (l *Live) Invite(ctx context.Context) (string, error) {
	t, err := l.hosts[0].Invite(ctx, node.Invitation{Rights: member.Usual, Expires: grid.Day, Valid: grid.Day})
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// id returns the ID of a site.
func (l *Live) id(site int) grid.SiteID { return l.ids[site] }

// network returns a virtual network of the same sites, all of which have come up as the
// live ones did, and what made it.
func (l *Live) network(ctx context.Context, seed uint64) (*testnet.Network, *federation.Builder, error) {
	e, err := l.enrol(0)
	if err != nil {
		return nil, nil, err
	}
	f := l.describe(seed)
	f.Federation, f.Members = e.home.Federation, func(site int) *member.Member { return e.members[site] }
	n, err := f.Network()
	if err != nil {
		return nil, nil, err
	}
	for i := range f.Sites {
		if err := n.Run(ctx, grid.FromDuration(l.ups[i].at), nil); err != nil {
			return nil, nil, err
		}
		if err := f.Add(n, i); err != nil {
			return nil, nil, err
		}
	}
	for _, grant := range l.protocols.grants() {
		n.Inject(n.Now(), 0, grant)
	}
	return n, f, nil
}

// feed returns the jobs of the workload in the order of their submission: each instant is
// a span since the first one could come, each deadline a span since the submission.
func (l *Live) jobs() *scenario.Feed {
	return &scenario.Feed{
		Source: &workload.First{Source: l.work.Source(0), Left: l.total()},
		QoS:    workload.PaperQoS, Homes: l.homes(), Goal: l.goal(),
		Adjust: func(j *grid.Job) {
			l.protocols.dress(l.cfg.Seed, j)
			l.compress(j)
		},
	}
}

// compress divides a job's spans by the speed-up, and the gap before it by the pace.
func (l *Live) compress(j *grid.Job) {
	by := l.cfg.Speedup
	if j.Deadline != grid.Never {
		j.Deadline = (j.Deadline-j.Submit)/grid.Time(by) + l.cfg.Slack
	}
	j.Submit /= grid.Time(l.pace)
	j.Estimate = max(j.Estimate/grid.Time(by), 1)
	j.RunTime = max(j.RunTime/grid.Time(by), 1)
	j.Work.Instructions /= by
	j.Work.Traffic /= by
	if j.Budget >= 0 {
		j.Budget++ // rounded up to what the site charges for the compressed run time, at least
	}
}

// homes returns what the workload needs to know of the sites, by their nodes' IDs.
func (l *Live) homes() []workload.Home {
	homes := make([]workload.Home, len(l.work.Sites))
	for i := range homes {
		s := &l.work.Sites[i]
		homes[i] = workload.Home{ID: l.ids[i], Rating: s.Rating, Price: s.Price, Cost: grid.CostPaper}
	}
	return homes
}

// goal is what users want, as in the scenario federation.
func (l *Live) goal() func(int, *workload.Job) grid.Goal {
	f := federation.Config{Common: l.cfg.Common, Mode: "economy", OFT: l.cfg.OFT}
	return f.Goal
}

// placementOf reads Config.Placement.
func (cfg *Config) placementOf() (market.Placement, error) {
	placement, err := market.ParsePlacement(cfg.Placement)
	if err != nil {
		return 0, scenario.ConfigError("placement", "%v", err)
	}
	return placement, nil
}
