package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
)

// Config is what a Registry needs to know. A zero field takes the default beside it.
type Config struct {
	Self       grid.SiteID
	Federation string // records of other federations have other keys

	Lifetime grid.Time // of records, at most a day; 2 h. They are renewed three times as often
	Replicas int       // sites that hold a record under each of its keys, at most 16; 4
	Timeout  grid.Time // of one question to a site; 3 s

	// Seal signs a record's payload: wire.Seal with Domain. It is nil in virtual time,
	// where messages are never encoded. An error of it is fatal.
	Seal func(payload []byte) ([]byte, error)
}

// LifetimeDefault is how long a record counts unless it is renewed.
const LifetimeDefault = 2 * grid.Hour

// replicasMax bounds Config.Replicas.
const replicasMax = 16

// Counts are numbers of a Registry for whoever watches it. They only rise.
type Counts struct {
	// Rejected counts records that others sent and should not have: those that have
	// expired or come from the future, are older than one of the same site, or are not
	// what was asked for.
	Rejected int64
}

// Registry is one site's part in the directory of names. It reads no clock and does no
// I/O. Not safe for concurrent use.
type Registry struct {
	cfg Config
	Counts
	holder    holder
	publisher publisher
	seeker    seeker
}

// New returns a registry that publishes nothing yet. The error says which field of cfg is
// out of range.
func New(cfg Config, rng *rand.Rand) (*Registry, error) {
	cfg.Lifetime, cfg.Replicas, cfg.Timeout = cmp.Or(cfg.Lifetime, LifetimeDefault), cmp.Or(cfg.Replicas, 4), cmp.Or(cfg.Timeout, 3*grid.Second)
	switch {
	case cfg.Lifetime < 10*grid.Minute || cfg.Lifetime > lifetimeMax:
		return nil, fmt.Errorf("records of sites count for %v, want 10m to %v", cfg.Lifetime, lifetimeMax)
	case cfg.Replicas < 1 || cfg.Replicas > replicasMax:
		return nil, fmt.Errorf("%d copies of a site's record, want 1 to %d", cfg.Replicas, replicasMax)
	case cfg.Timeout < 1 || cfg.Timeout > grid.Minute:
		return nil, fmt.Errorf("%v for an answer about a site's record, want at most %v", cfg.Timeout, grid.Minute)
	}
	g := &Registry{cfg: cfg}
	g.holder = holder{cfg: &g.cfg, counts: &g.Counts, held: make(map[grid.SiteID]*Record), claims: make(map[string][]grid.SiteID), sweep: grid.Never, swept: -1}
	g.publisher = publisher{cfg: &g.cfg, rng: rng, holder: &g.holder, renew: grid.Never}
	g.seeker = seeker{cfg: &g.cfg, counts: &g.Counts, holder: &g.holder, publisher: &g.publisher, seen: make(map[grid.SiteID]*Record), bound: make(map[string]binding)}
	return g, nil
}

// Set says what the site says of itself from now on. It panics if that is out of bounds.
func (g *Registry) Set(now grid.Time, offer Offer, out *grid.Outbox) {
	g.publisher.set(now, offer, out)
}

// Rivals returns who else claims this site's name, by ID, as far as holders have said. The
// slice must not be changed.
func (g *Registry) Rivals() []grid.SiteID { return g.publisher.rivals }

// Asked reports whether the registry waits for the sites nearest to a key.
func (g *Registry) Asked(k grid.Key) bool { return g.publisher.asked(k) || g.seeker.asked(k) }

// NextTimer returns when Step next needs a Tick.
func (g *Registry) NextTimer() grid.Time {
	return min(g.holder.sweep, g.publisher.next(), g.seeker.next())
}

// Step applies one input at time now and appends to out what the driver must carry out.
// now never decreases.
func (g *Registry) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		if g.holder.sweep <= now {
			g.holder.drop(now)
		}
		if g.publisher.next() <= now {
			g.publisher.tick(now, out)
		}
		g.seeker.tick(now, out)
	case *Find:
		g.seeker.search(now, in.Text, asker{in.Token, false}, out)
	case *Meant:
		g.seeker.meant(now, in, out)
	case *grid.Closest:
		g.publisher.closest(now, in, out)
		g.seeker.closest(now, in, out)
	case *grid.Delivery:
		g.message(now, in, out)
	case *grid.Undelivered:
		switch m := in.Message.(type) {
		case *Enter:
			g.publisher.lose(now, in.To)
		case *Inquire:
			g.seeker.informed(now, in.To, m.Token, nil, out)
		}
	default:
		panic(fmt.Sprintf("record: unknown input %T", in))
	}
}

func (g *Registry) message(now grid.Time, in *grid.Delivery, out *grid.Outbox) {
	switch m := in.Message.(type) {
	case *Enter:
		if m.Record.Site != in.From { // live, no such message is decoded
			g.Rejected++
			return
		}
		answer := &Entered{}
		if answer.Sequence, answer.Refusal = g.holder.enter(now, m.Record); answer.Refusal == Taken {
			answer.Claims = g.holder.rivals(now, m.Record)
		}
		out.Send(in.From, answer)
	case *Entered:
		g.publisher.entered(now, in.From, m)
	case *Inquire:
		list := g.holder.about(now, m.Text)
		if own := g.publisher.own; own != nil && own.about(m.Text) && g.holder.held[own.Site] == nil && len(list) < informMax {
			list = append(list, own)
			sortRecords(list)
		}
		out.Send(in.From, &Inform{m.Token, list})
	case *Inform:
		g.seeker.informed(now, in.From, m.Token, m, out)
	}
}
