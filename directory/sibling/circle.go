package sibling

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
)

// SizeDefault is how many sites, this one included, gossip with each other.
const SizeDefault = 8

// KinMax bounds the siblings that a site has whatever lies between them.
const KinMax = 64

// Times and bounds of a Circle.
const (
	yieldPause   = grid.Minute      // between two siblings that make room for newcomers
	greetMax     = 10 * grid.Second // for the answer to a Greet
	lookMin      = grid.Second      // between the first two look-ups of a circle that has room; it doubles
	lookMax      = 30 * grid.Minute // for one that still has room
	lookFull     = 4 * grid.Hour    // for one that is full, and between two samples
	lookSlower   = 8                // times the span before, for those and for one that is not poor
	lookAgain    = 10 * grid.Second // after a sibling was lost for whom none of the sites known can stand in
	sampleMin    = 10 * grid.Second // between the first two samples of a site that has an authority
	roundPause   = grid.Second      // between two rounds of measuring and greeting while there is something to do
	retryPause   = 5 * grid.Minute  // until a site that has not taken this one is greeted again
	greetsMax    = 16               // sites greeted between two look-ups, kin apart
	standIns     = 4                // the same, after a sibling was lost
	kinPause     = 30 * grid.Second // the same, of kin
	measures     = 4                // sites measured in a round
	namesMax     = 64               // sites remembered that are no siblings
	announcedMax = 16               // sites of an authority that announce themselves
	announcers   = 2                // siblings among themselves, the first by ID, that do so for all: newcomers are told of the others
	announceSpan = 80 * grid.Minute // a record lives longer than two of these
	announceLost = grid.Minute      // after a sibling was lost in whose place this site is one of them now, or it came up
	announceSoon = 5 * grid.Second  // after a record that nobody has taken
	samplesMax   = 4                // sites of a Sampled
)

// Config is what a Circle needs to know. A zero field takes the default beside it.
type Config struct {
	Self       grid.SiteID
	Federation string
	Authority  string    // whose site this is, at most AuthorityMax bytes; empty: nobody's
	Size       int       // siblings and this site, at most, kin apart; SizeDefault
	Silence    grid.Time // after which a sibling is none; 3 min
	Heads      bool      // sites that this one heads may be kin although it does not name them
	Samples    bool      // the owner has use for Sampled
}

// Changed is a local input for the owner: Members are others than before.
type Changed struct{}

// Greeted is a local input for the owner: a sibling has greeted this site again, and may
// have forgotten what it was told.
type Greeted struct{ Site grid.SiteID }

// Sampled is a local input for the owner, with Config.Samples: sites drawn from the whole
// federation.
type Sampled struct{ Sites []grid.SiteID }

// Circle is the siblings of one site. It reads no clock and does no I/O. Not safe for
// concurrent use.
type Circle struct {
	// What every message of the site reads, together.
	sieve   uint64    // a bit for the name of each member, so that most others are told apart at once
	members []member  // by site
	missing grid.Time // when the first member is missed; of no use while it is unknown
	next    grid.Time // look-up for siblings, or to announce this one
	mend    grid.Time // when a sibling that was lost must have a successor, or others are looked for; grid.Never
	sample  grid.Time // when random sites are looked for to tell the owner; grid.Never if whoever looks for siblings finds those
	round   grid.Time // next round of measuring and greeting; grid.Never if there is nothing to do
	unknown bool      // missing has to be worked out

	cfg   Config
	rng   *rand.Rand
	names []name // by site: others that there are
	kin   []grid.SiteID

	key       grid.Key // of the look-up of random sites under way
	looking   bool
	budget    int       // sites that may be greeted until the next look-up, kin apart
	rendez    grid.Key  // where the sites of the authority announce themselves
	look      grid.Time // when siblings are looked for again
	last      grid.Time // when they last were
	pace      grid.Time // from the next look-up for siblings to the one after that
	samples   grid.Time // from sample to the next time
	announce  grid.Time // when this site announces itself again, if few others do
	announced grid.Time // when it last did; 0: not that it knows
	yielded   grid.Time // when a sibling last made room; -1: never

	introduced bool // it was told of others of its authority
	few        bool // it announced itself after it saw that few do

	sites    []grid.SiteID // of members, made anew when they change
	watchers []grid.SiteID
	changed  bool
}

// member is a sibling.
type member struct {
	site     grid.SiteID
	distance grid.Time // shortest round trip measured; grid.Never if none
	kin      bool
	watch
}

// name is a site that is no sibling.
type name struct {
	site     grid.SiteID
	distance grid.Time // as of member
	asked    grid.Time // when it was last measured; -1: never
	greeted  grid.Time // -1: never
	pending  bool      // its answer is awaited
	kin      bool
}

// New returns a circle without siblings. The error says which field of cfg is out of
// range.
func New(cfg Config, rng *rand.Rand) (*Circle, error) {
	cfg.Size, cfg.Silence = cmp.Or(cfg.Size, SizeDefault), cmp.Or(cfg.Silence, 3*grid.Minute)
	switch {
	case cfg.Size < 2 || cfg.Size > othersMax:
		return nil, fmt.Errorf("groups of %d siblings, want 2 to %d", cfg.Size, othersMax)
	case len(cfg.Authority) > AuthorityMax:
		return nil, fmt.Errorf("authority of %d bytes, want at most %d", len(cfg.Authority), AuthorityMax)
	case cfg.Silence < grid.Second || cfg.Silence > grid.Day:
		return nil, fmt.Errorf("siblings silent for %v, want 1s to %v", cfg.Silence, grid.Day)
	}
	c := &Circle{
		cfg: cfg, rng: rng, rendez: sha256.Sum256([]byte("gridnode authority\x00" + cfg.Federation + "\x00" + cfg.Authority)),
		pace: lookMin, samples: sampleMin, mend: grid.Never, sample: grid.Never, round: grid.Never, missing: grid.Never, yielded: -1,
	}
	if cfg.Authority != "" && cfg.Samples {
		c.sample = 0
	}
	return c, nil
}

// Members returns the siblings in the order of their IDs. The slice is not changed later.
func (c *Circle) Members() []grid.SiteID { return c.sites }

// Asked reports whether the circle waits for the sites nearest to a key.
func (c *Circle) Asked(key grid.Key) bool { return c.looking && key == c.key }

// Named reports whether the circle's provider records are under a key.
func (c *Circle) Named(key grid.Key) bool { return c.cfg.Authority != "" && key == c.rendez }

// NextTimer returns when Step next needs a Tick.
func (c *Circle) NextTimer() grid.Time {
	if c.unknown {
		c.missing, c.unknown = grid.Never, false
		for i := range c.members {
			c.missing = min(c.missing, c.members[i].due)
		}
	}
	return min(c.next, c.mend, c.sample, c.round, c.missing)
}

// moved notes that a member that was to be missed at an instant is to be at another one.
// Every message moves one: to look at all members then would cost more than the message.
func (c *Circle) moved(before grid.Time, m *member) {
	c.unknown = c.unknown || before == c.missing && m.due > before
	c.missing = min(c.missing, m.due)
}

// Step applies one input at time now and appends to out what the driver must carry out.
// now never decreases.
func (c *Circle) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	c.unknown = true
	switch in := in.(type) {
	case grid.Tick:
		c.tick(now, out)
	case *grid.Delivery:
		c.Alive(now, in.From)
		switch m := in.Message.(type) {
		case *Greet:
			c.greeted(now, in.From, m, out)
		case *Reply:
			c.replied(now, in.From, m, out)
		}
	case *grid.Undelivered:
		c.Lost(now, in.To, out)
	case *grid.Closest:
		c.looked(now, in, out)
	case *grid.Providers:
		c.found(now, in, out)
	case *grid.Provided:
		if c.announced = now; !in.Stored {
			c.announced = 0
			c.announce = now + announceSoon
			c.next = min(c.next, c.announce)
		}
	case *grid.Probed:
		c.probed(now, in)
	case *grid.Parted:
		c.parted(now, in.Site, out)
	default:
		panic(fmt.Sprintf("sibling: unknown input %T", in))
	}
	c.tell(out)
}

// tell tells the owner of other siblings than before.
func (c *Circle) tell(out *grid.Outbox) {
	if !c.changed {
		return
	}
	c.changed = false
	c.sites = make([]grid.SiteID, len(c.members))
	for i := range c.members {
		c.sites[i] = c.members[i].site
	}
	c.watchers = c.watched()
	out.Attend(c.sites)
	out.Local(&Changed{})
}

// SetKin says with which sites this one gossips whatever lies between them, the first
// KinMax of them.
func (c *Circle) SetKin(now grid.Time, kin []grid.SiteID, out *grid.Outbox) {
	kin = kin[:min(len(kin), KinMax)]
	c.unknown = true
	if slices.Equal(kin, c.kin) {
		return
	}
	before := c.kin
	c.kin = slices.Clone(kin)
	for _, site := range before {
		if slices.Contains(kin, site) {
			continue
		}
		if c.member(site) != nil {
			c.drop(now, site, out)
		}
		if n := c.name(site); n != nil {
			n.kin = false
		}
	}
	for _, site := range kin {
		if m := c.member(site); m != nil {
			c.relate(m)
		} else {
			c.learn(now, site, true)
		}
	}
	c.tell(out)
}

// greeted answers a site that wants to be a sibling.
func (c *Circle) greeted(now grid.Time, from grid.SiteID, m *Greet, out *grid.Outbox) {
	if from == c.cfg.Self {
		return
	}
	kin := slices.Contains(c.kin, from)
	if m.Kin && c.cfg.Heads && !kin {
		kin = c.count(true) < KinMax
	}
	taken := c.member(from) != nil || kin
	if !taken && m.Authority == c.cfg.Authority {
		taken = c.room() > 0
		if far := c.farthest(); !taken && far != nil && (c.nearer(from) || m.Poor && (c.yielded < 0 || now-c.yielded >= yieldPause)) {
			if !c.nearer(from) {
				c.yielded = now
			}
			site := far.site
			c.remove(now, site)
			out.Send(site, &Reply{Others: []grid.SiteID{from}})
			taken = true
		}
		if !taken {
			c.learn(now, from, false)
		}
	}
	reply := &Reply{Taken: taken}
	if m.Authority == c.cfg.Authority { // else none of them would take it, kin as it may be
		reply.Others = c.others(from)
	}
	if taken {
		if c.member(from) != nil {
			out.Local(&Greeted{from})
		}
		c.add(now, from, kin)
	}
	out.Send(from, reply)
}

// others returns siblings to tell a site of.
func (c *Circle) others(but grid.SiteID) (list []grid.SiteID) {
	for i := range c.members {
		if m := &c.members[i]; m.site != but && !m.kin && len(list) < othersMax {
			list = append(list, m.site)
		}
	}
	return list
}

// replied takes the answer of a site that was greeted, or the word that it is no sibling.
func (c *Circle) replied(now grid.Time, from grid.SiteID, m *Reply, out *grid.Outbox) {
	if m.Missed != "" {
		c.warned(now, from, m, out)
		return
	}
	n := c.name(from)
	pending := n != nil && n.pending
	if n != nil {
		n.pending = false
	}
	switch {
	case m.Taken && pending:
		c.add(now, from, n.kin) // if there is no room any more, trim makes it
	case !m.Taken && c.member(from) != nil:
		c.remove(now, from)
	}
	for _, site := range m.Others {
		c.learn(now, site, false)
	}
	if len(m.Others) > 0 {
		c.round = min(c.round, now)
	}
}

// add makes a site a sibling.
func (c *Circle) add(now grid.Time, site grid.SiteID, kin bool) {
	if m := c.member(site); m != nil {
		if kin {
			c.relate(m)
		}
		m.alive(now, c.cfg.Silence)
		return
	}
	m := member{site: site, distance: grid.Never, kin: kin}
	m.alive(now, c.cfg.Silence)
	if i, known := c.find(site); known {
		m.distance = c.names[i].distance
		c.names = slices.Delete(c.names, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(c.members, site, func(m member, s grid.SiteID) int { return cmp.Compare(m.site, s) })
	c.members = slices.Insert(c.members, i, m)
	c.sieve |= sieveOf(site)
	c.changed = true
	c.round = min(c.round, now)
}

// relate makes a sibling kin, which is one that this site is to be missed by.
func (c *Circle) relate(m *member) {
	if !m.kin {
		m.kin = true
		c.watchers = c.watched()
	}
}

// remove takes a sibling out; it stays known.
func (c *Circle) remove(now grid.Time, site grid.SiteID) {
	i := slices.IndexFunc(c.members, func(m member) bool { return m.site == site })
	m, announced := c.members[i], c.announces()
	c.members = slices.Delete(c.members, i, i+1)
	c.sieve = 0
	for i := range c.members {
		c.sieve |= sieveOf(c.members[i].site)
	}
	c.changed = true
	c.learn(now, site, slices.Contains(c.kin, site))
	if n := c.name(site); n != nil {
		n.distance, n.greeted = m.distance, now
	}
	c.budget = max(c.budget, standIns) // for those who are known already, or whom it gives instead
	c.mend = min(c.mend, now+min(c.pace, lookAgain))
	if c.cfg.Authority != "" && c.announce > now && !announced && c.announces() {
		c.announce = min(c.announce, now+announceLost)
		c.next = min(c.next, c.announce)
	}
}

// drop takes a sibling out and tells it.
func (c *Circle) drop(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	c.remove(now, site)
	out.Send(site, &Reply{})
}

func (c *Circle) member(site grid.SiteID) *member {
	if c.sieve&sieveOf(site) == 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.members, site, func(m member, s grid.SiteID) int { return cmp.Compare(m.site, s) })
	if !found {
		return nil
	}
	return &c.members[i]
}

// sieveOf returns the bit of a site in a sieve. It is of the last bytes, which differ most
// in names that are numbered and in those that are hashes.
func sieveOf(site grid.SiteID) uint64 {
	var h uint
	for i := max(len(site)-3, 0); i < len(site); i++ {
		h = 11*h + uint(site[i])
	}
	return 1 << (h % 64)
}

// count returns how many siblings are kin, or are not.
func (c *Circle) count(kin bool) (n int) {
	for i := range c.members {
		if c.members[i].kin == kin {
			n++
		}
	}
	return n
}

// room returns how many more siblings there may be, below 0 if there are too many.
func (c *Circle) room() int { return c.cfg.Size - 1 - c.count(false) }

// poor reports whether the site has less than half of the siblings that it may have.
func (c *Circle) poor() bool { return c.count(false) < (c.cfg.Size-1)/2 }

// farthest returns the sibling that is farthest away, of several the last by ID, nil if
// all are kin.
func (c *Circle) farthest() (far *member) {
	for i := range c.members {
		if m := &c.members[i]; !m.kin && (far == nil || m.distance >= far.distance) {
			far = m
		}
	}
	return far
}

// nearer reports whether a site was measured to be nearer by half than the farthest
// sibling.
func (c *Circle) nearer(site grid.SiteID) bool {
	n, far := c.name(site), c.farthest()
	return n != nil && far != nil && n.distance < far.distance/2 && far.distance != grid.Never
}
