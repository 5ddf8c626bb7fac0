package forge

import (
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// Config is what a Forger is told of a run.
type Config struct {
	N      *testnet.Network
	Checks *testnet.Checker
	Used   func(at int, key uint64) int64 // processors in use on a lease
}

// Forger has sites hear what no honest one would say. That changes nothing where it arrives, and
// whoever gets an answer to what it never asked goes on.
type Forger struct {
	Config
	Publications *Publications

	counts  [Kinds][]int64 // of those that there was something for
	greeted *greetings
	renewed map[int][]holding // what each site has asked a home about last

	say    func(at grid.Time, site, other int, which uint64) // has a word be said
	pcg    *rand.PCG
	chance int32     // of a million guarantees, how many are spoken of by others: they last for a moment
	end    grid.Time // of faults
}

// Mark begins the IDs of jobs that there are not.
const Mark = 0x666f7267

// Kind is what a forgery is about.
type Kind int

// Kinds of forgeries.
const (
	Words   Kind = iota // about another epoch, about what is somebody else's, and orders for more than a lease has (J-4, R-1)
	Lies                // about what runs on processors that are lent
	Rumours             // of who was not asked, about siblings, and of homes

	Kinds // how many there are
)

// forgery returns false if there is nothing for it at a site, and else what has changed that must not;
// nil: nothing has.
type forgery func(f *Forger, at int, s *site.Site, other grid.SiteID, which uint64) (could bool, changed error)

// forgeries are those of each kind.
var forgeries = [Kinds][]forgery{
	Words: {
		(*Forger).guarantee, // first, see Aim
		(*Forger).lenderEpoch, (*Forger).borrowerEpoch, (*Forger).completion, (*Forger).revocation, (*Forger).order, (*Forger).lateQuote, (*Forger).withdrawal,
	},
	Lies:    lies,
	Rumours: rumours,
}

// New starts to look for what forged orders have started.
func New(c Config) *Forger {
	f := &Forger{Config: c, Publications: watchPublications(c.N), greeted: watchGreetings(c.N), renewed: make(map[int][]holding)}
	for kind := range Kinds {
		f.counts[kind] = make([]int64, len(forgeries[kind]))
	}
	c.N.Observe(testnet.Observer{Send: f.renews, Start: func(_ grid.Time, x *testnet.Execution) {
		if x.Job.ID.Hi == Mark {
			c.Checks.Violated("%s has started a task on %d processors that nobody may start: it exceeds a lease, or was ended, or has run before", c.N.ID(x.Site), x.Job.Processors)
		}
	}})
	return f
}

// Counts returns how often there was something for each forgery of a kind.
func (f *Forger) Counts(kind Kind) []int64 { return f.counts[kind] }

// Count returns how much was forged.
func (f *Forger) Count() (sum int64) {
	for _, counts := range f.counts {
		for _, count := range counts {
			sum += count
		}
	}
	return sum
}

// Aim has others speak of guarantees, by chance, as soon as there are any: say is to have a word be
// said, of a share of them that is times, a hundredth of what sites get an hour.
func (f *Forger) Aim(seed uint64, times float64, end grid.Time, say func(at grid.Time, site, other int, which uint64)) {
	const million = 1_000_000
	f.pcg, f.chance, f.end, f.say = draw.PCG(seed, "forged guarantees", draw.ForFaults), int32(min(times/100, 1)*million), end, say
	f.N.Observe(testnet.Observer{Turn: f.turn})
}

func (f *Forger) turn(now grid.Time, at int) {
	s, up := scenario.SiteAt(f.N, at)
	if !up || now < federation.Warmup || now >= f.end {
		return
	}
	for range site.CoresOf(s).Market.Guarantees {
		if draw.Chance(f.pcg, f.chance) {
			other, which := int(draw.Uniform(f.pcg, uint64(f.N.Len()))), f.pcg.Uint64()
			f.say(now+1, at, other, which-which%uint64(len(forgeries[Words]))) // the first one
		}
		return
	}
}

// Say forges the word of a kind that which says, or the next one for which there is something.
func (f *Forger) Say(kind Kind, at, by int, which uint64) {
	if _, up := scenario.SiteAt(f.N, at); !up {
		return
	}
	f.N.Step(at, grid.Tick{}) // what is due anyway is no effect of it
	other := f.N.ID(by)
	list := forgeries[kind]
	for i := range list {
		s, up := scenario.SiteAt(f.N, at)
		if !up {
			return
		}
		one := (int(which%uint64(len(list))) + i) % len(list)
		could, changed := list[one](f, at, s, other, which>>8)
		if changed != nil {
			f.Checks.Violated("%s believes what is forged: %w", f.N.ID(at), changed)
		}
		if could {
			f.counts[kind][one]++
			return
		}
	}
}

// Chosen returns one of a list.
func Chosen[T any](list []T, which uint64) (one T, there bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[which%uint64(len(list))], true
}

// hear has a site hear a message, and reports whether it is up still.
func (f *Forger) hear(at int, from grid.SiteID, m grid.Message) bool {
	f.N.Step(at, &grid.Delivery{From: from, Message: m})
	_, up := scenario.SiteAt(f.N, at)
	return up
}
