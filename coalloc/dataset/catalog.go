package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"gridnode/grid"
)

// Bounds of a Catalog.
const (
	SetsMax    = 1024 // data sets that one site holds
	lentMax    = 256  // trees of jobs that one site announces
	HoldersMax = 32   // sites asked about one data set
	looksMax   = 4096 // data sets of others that are remembered
	looksAlive = 32   // look-ups under way; further ones wait
	askersMax  = 64   // users who wait for the same look-up
	putsAlive  = 4    // provider records being put into the DHT
)

// Times of a Catalog.
const (
	// A new holder announces itself soon again, as the nodes of the DHT that keep the
	// record may not have joined yet, then less and less often. Records live longer than
	// two of the longest pauses (p2p).
	announceMin   = 30 * grid.Second
	announceMax   = grid.Hour
	announceAgain = 5 * grid.Second // after a record that nobody has taken

	findMax    = 20 * grid.Second // for the DHT's answer, beyond its own time-out
	askMax     = 3 * grid.Second  // for a holder's
	freshFound = 30 * grid.Second // what is known counts for so long
	freshNone  = 5 * grid.Second  // that nobody holds it, at first; it doubles up to freshFound
	silentMax  = 5 * grid.Minute  // who held it and does not answer still counts: it may be starting again
)

// Config is what a Catalog needs to know.
type Config struct {
	Self       grid.SiteID
	Federation string // data sets of other federations have other keys
}

// Errors of Hold and Drop; the text says more.
var (
	ErrUnknown = errors.New("no such data set at this site")
	ErrRefused = errors.New("refused")
)

// Inputs of a Catalog besides grid's. A Token other than 0 is answered with
// Outbox.Answer; each type says with what.
type (
	// Hold enters a data set that this site holds, or changes what is known of one. The
	// answer is a *Held.
	Hold struct {
		Token uint64
		Set   Set
	}
	// Held answers Hold.
	Held struct{ Err error } // wraps ErrRefused; nothing has changed then
	// Lend announces what this site has of files that jobs bring along, until an instant. It is
	// not answered, and forgotten with a crash: whoever comes for it may not find it any more.
	Lend struct {
		Name  string // as TreeName returns it
		Size  int64
		Until grid.Time
	}
	// Drop takes one out: the site does not hold it any more. The answer is a *Held, whose
	// Err may wrap ErrUnknown.
	Drop struct {
		Token uint64
		Name  string
	}
	// Find asks who holds a data set. The answer is a *Found.
	Find struct {
		Token uint64
		Name  string
	}
)

// Learnt is a local input for the owner: a look-up has ended, see Known.
type Learnt struct{ Name string }

// Found is what is known of a data set's holders.
type Found struct {
	Holders []Holder // by site, this one included, at most HoldersMax + 1
	Named   int      // other sites that provider records named
	Silent  int      // of those, how many have not answered
	Err     error    // it could not be asked about; that of a look-up wraps ErrUnanswered
}

// Size returns the size that most of the holders give, of two the smaller; it is
// SizeUnknown if nobody holds it. Whoever gives another holds something else.
func (a *Found) Size() int64 {
	best, most := int64(grid.SizeUnknown), 0
	for _, h := range a.Holders {
		n := 0
		for _, other := range a.Holders {
			if other.Size == h.Size {
				n++
			}
		}
		if n > most || n == most && h.Size < best {
			best, most = h.Size, n
		}
	}
	return best
}

// Holding returns who holds a data set: all whose size is the given one, or that of the
// most if it is not known.
func (a *Found) Holding(size int64) []Holder {
	if size == grid.SizeUnknown {
		size = a.Size()
	}
	return slices.DeleteFunc(slices.Clone(a.Holders), func(h Holder) bool { return h.Size != size })
}

// Catalog is the core of one site. It reads no clock and does no I/O. Not safe for
// concurrent use.
type Catalog struct {
	cfg  Config
	rng  *rand.Rand
	sets map[string]*own
	keys map[grid.Key]string // of sets and of looks
	puts int                 // under way
	lent int                 // of sets

	looks   map[string]*look
	alive   []*look // under way, in the order in which they began
	backlog []*look // that wait, in order
	due     grid.Time
}

// own is a data set of this site, and when it is announced.
type own struct {
	Set
	key     grid.Key
	next    grid.Time // grid.Never while it is being announced
	until   grid.Time // grid.Never, but what is lent
	pause   grid.Time // until the one after that
	putting bool
}

// New returns a catalog of a site that holds nothing.
func New(cfg Config, rng *rand.Rand) *Catalog {
	return &Catalog{
		cfg: cfg, rng: rng, sets: make(map[string]*own), keys: make(map[grid.Key]string), looks: make(map[string]*look), due: grid.Never,
	}
}

// Key returns where provider records of a data set are.
func (c *Catalog) Key(name string) grid.Key {
	return sha256.Sum256([]byte("gridnode data set\x00" + c.cfg.Federation + "\x00" + name))
}

// treePrefix begins the names of trees of files that jobs bring along. No data set has such a
// name.
const treePrefix = "tree:"

// TreeName returns the name under which sites announce that they have a tree of a digest, 64
// hexadecimal digits.
func TreeName(digest string) string { return treePrefix + digest }

// Recover takes in what was stored; other records are passed over. It is called once,
// before any Step. The error names the record that cannot be read.
func (c *Catalog) Recover(now grid.Time, records iter.Seq2[string, []byte]) error {
	for key, value := range records {
		if !strings.HasPrefix(key, RecordPrefix) {
			continue
		}
		s, err := decodeSet(value)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		c.enter(now, *s)
	}
	return nil
}

// Sets yields the data sets that this site holds, by name.
func (c *Catalog) Sets(yield func(*Set) bool) {
	for _, name := range slices.Sorted(maps.Keys(c.sets)) {
		if o := c.sets[name]; !o.lends() && !yield(&o.Set) {
			return
		}
	}
}

// Get returns a data set that this site holds.
func (c *Catalog) Get(name string) (Set, bool) {
	if o := c.sets[name]; o != nil && !o.lends() {
		return o.Set, true
	}
	return Set{}, false
}

// lends reports whether it is no data set but what a job has brought along.
func (o *own) lends() bool { return o.until != grid.Never }

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (c *Catalog) NextTimer() grid.Time { return c.due }

// Step applies one input at time now and appends to out what the driver must carry out
// in order. now never decreases. What is not its business it leaves alone.
func (c *Catalog) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
	case *grid.Delivery:
		switch m := in.Message.(type) {
		case *Inquire:
			c.inquired(in.From, m, out)
		case *Inform:
			c.informed(now, in.From, m, out)
		}
	case *grid.Undelivered:
		if m, ok := in.Message.(*Inquire); ok {
			c.silent(now, in.To, m.Name, out)
		}
	case *grid.Provided:
		c.provided(now, in)
	case *grid.Providers:
		c.found(now, in, out)
	case *Hold:
		c.hold(now, in, out)
	case *Lend:
		c.lend(now, in)
	case *Drop:
		c.drop(in, out)
	case *Find:
		c.find(now, in, out)
	default:
		panic(fmt.Sprintf("dataset: unknown input %T", in))
	}
	c.settle(now, out)
}

// settle does what is due, and notes when the next thing is.
func (c *Catalog) settle(now grid.Time, out *grid.Outbox) {
	c.due = grid.Never
	c.expire(now, out)
	c.announce(now, out)
}

func (c *Catalog) hold(now grid.Time, in *Hold, out *grid.Outbox) {
	err := in.Set.check()
	_, known := c.sets[in.Set.Name]
	if err == nil && strings.HasPrefix(in.Set.Name, treePrefix) {
		err = fmt.Errorf("names that begin with %s are those of files of jobs", treePrefix)
	}
	if err == nil && !known && len(c.sets)-c.lent >= SetsMax {
		err = fmt.Errorf("this site holds %d data sets, its limit", len(c.sets))
	}
	if err != nil {
		out.Answer(in.Token, &Held{fmt.Errorf("%w: %w", ErrRefused, err)})
		return
	}
	in.Set.Added = now
	out.Save(&c.enter(now, in.Set).Set)
	out.Answer(in.Token, &Held{})
}

// enter puts a data set in, to be announced at once.
func (c *Catalog) enter(now grid.Time, s Set) *own {
	o := c.sets[s.Name]
	if o == nil {
		o = &own{key: c.Key(s.Name), next: now, pause: announceMin, until: grid.Never}
		c.sets[s.Name], c.keys[o.key] = o, s.Name
		c.due = min(c.due, now)
	}
	o.Set = s
	return o
}

// lend announces a tree, or for longer, unless there is no room.
func (c *Catalog) lend(now grid.Time, in *Lend) {
	o := c.sets[in.Name]
	switch {
	case !strings.HasPrefix(in.Name, treePrefix), in.Until <= now, o == nil && c.lent >= lentMax:
		return
	case o == nil:
		o = c.enter(now, Set{DataSet: grid.DataSet{Name: in.Name, Size: in.Size}, Shared: true})
		c.lent++
		o.until = in.Until
	default:
		o.until = max(o.until, in.Until)
	}
}

func (c *Catalog) drop(in *Drop, out *grid.Outbox) {
	o := c.sets[in.Name]
	if o == nil || o.lends() {
		out.Answer(in.Token, &Held{fmt.Errorf("%s: %w", in.Name, ErrUnknown)})
		return
	}
	c.leave(o)
	out.Delete(&o.Set)
	out.Answer(in.Token, &Held{})
}

// leave takes out what this site does not hold any more.
func (c *Catalog) leave(o *own) {
	if o.putting {
		c.puts--
	}
	if o.lends() {
		c.lent--
	}
	delete(c.sets, o.Name)
	c.forgetKey(o.Name)
}

// announce puts provider records into the DHT that are due.
func (c *Catalog) announce(now grid.Time, out *grid.Outbox) {
	if len(c.sets) == 0 {
		return
	}
	var due []*own
	for _, o := range c.sets {
		if o.until <= now {
			c.leave(o) // a provider record goes by itself
			continue
		}
		c.due = min(c.due, o.until)
		switch {
		case o.putting:
		case o.next <= now:
			due = append(due, o)
		default:
			c.due = min(c.due, o.next)
		}
	}
	slices.SortFunc(due, func(a, b *own) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range due {
		if c.puts >= putsAlive {
			return // when one is done the next has its turn
		}
		c.puts++
		o.putting = true
		out.Provide(o.key)
	}
}

// provided notes what became of a provider record.
func (c *Catalog) provided(now grid.Time, in *grid.Provided) {
	o := c.sets[c.keys[in.Key]]
	if o == nil || !o.putting {
		return
	}
	c.puts--
	o.putting = false
	pause := o.pause
	if in.Stored {
		o.pause = min(2*o.pause, announceMax)
	} else {
		pause = announceAgain
	}
	o.next = now + pause + grid.Time(c.rng.Int64N(int64(pause)/4)) // not all sites in step
}

// inquired answers another site.
func (c *Catalog) inquired(from grid.SiteID, in *Inquire, out *grid.Outbox) {
	answer := &Inform{Name: in.Name}
	if o := c.sets[in.Name]; o != nil {
		answer.Held, answer.Size, answer.Shared = true, o.Size, o.Shared
	}
	out.Send(from, answer)
}
