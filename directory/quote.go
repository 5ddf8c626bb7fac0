package directory

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Bounds of a quote, whoever it comes from.
const (
	siteMax       = 128      // bytes of a site ID
	nameMax       = 64       // bytes of a site's name
	processorsMax = 1 << 24  // of one site
	memoryMax     = 1 << 50  // bytes per processor
	quoteBytesMax = 2 << 10  // of the signed form
	lifetimeMax   = grid.Day // a site that dies is forgotten within it
)

// skewMax is how far another site's clock may be ahead of ours: a quote issued
// further in the future is rejected.
const skewMax = grid.Minute

// Quote is what a site publishes about itself: price, speed, and what is startable
// now (Grid-Federation §2: "Each quote consists of a resource descriptor R_i … and
// the access price c_i"). It is soft state and no commitment: whoever relies on it
// asks the site itself.
type Quote struct {
	Site           grid.SiteID // 1 to 128 bytes
	Name           string      // what people call the site; printable UTF-8, at most 64 bytes, may be empty
	grid.Resources             // of the whole site: 0 to 2^24 processors, memory per processor
	grid.Rating                // speed and bandwidth, each 1 to grid.RatingMax
	Price          grid.Price  // 0 to grid.CreditsMax
	Cost           grid.CostModel

	// Startable now.
	Free   int64     // idle processors, 0 to Processors
	Widest int64     // processors of the widest job that could start now, 0 to Processors
	Wait   grid.Time // estimated wait of a job as wide as the site, 0 to grid.SpanMax

	Foreign bool // runs jobs of other sites
	Modules bool // runs modules of other sites, whatever it does with their other jobs

	GPUs grid.GPUStock // of the site; nobody changes it who did not make it

	GPUWeight int64 // processors that a GPU counts for in what a job costs (grid.GPUs.Price), 0 to grid.GPUWeightMax

	// Set by Directory.SetQuote and Directory.Withdraw.
	Sequence  uint64    // rises with every quote a site issues, across restarts too; at least 1
	Issued    grid.Time // instant on the site's clock
	Lifetime  grid.Time // span from Issued after which it is void; more than 0, at most a day
	Withdrawn bool      // the site takes its offer back; never in an answer to a query
	Sealed    []byte    // signed form, at most 2 KiB; nil in virtual time

	spread uint64 // of Site; 0 if not computed yet
}

// ErrQuote is wrapped by every error of Quote.Check.
var ErrQuote = errors.New("bad quote")

// Check returns an error wrapping ErrQuote that names the first field that is out
// of bounds. Quotes that came out of a Directory or of a decoder have passed it.
func (q *Quote) Check() error {
	if err := q.checkOffer(); err != nil {
		return err
	}
	switch {
	case q.Sequence == 0:
		return badQuote("sequence 0, want 1 or more")
	case q.Issued < 0 || q.Issued > grid.SpanMax:
		return badQuote("issued at %d µs", int64(q.Issued))
	case q.Lifetime <= 0 || q.Lifetime > lifetimeMax:
		return badQuote("lifetime of %v, want more than 0, at most %v", q.Lifetime, lifetimeMax)
	case len(q.Sealed) > quoteBytesMax:
		return badQuote("signed form of %d bytes, at most %d", len(q.Sealed), quoteBytesMax)
	}
	return nil
}

// checkOffer checks what the site decides, not what the directory adds.
func (q *Quote) checkOffer() error {
	switch {
	case len(q.Site) == 0 || len(q.Site) > siteMax:
		return badQuote("site of %d bytes, want 1 to %d", len(q.Site), siteMax)
	case len(q.Name) > nameMax:
		return badQuote("name of %d bytes, at most %d", len(q.Name), nameMax)
	case !printable(q.Name):
		return badQuote("name %q, want printable UTF-8", q.Name)
	case q.Processors < 0 || q.Processors > processorsMax:
		return badQuote("%d processors, want 0 to %d", q.Processors, int64(processorsMax))
	case q.Memory < 0 || q.Memory > memoryMax:
		return badQuote("%d bytes of memory per processor, want 0 to %d", q.Memory, int64(memoryMax))
	case q.Speed < 1 || q.Speed > grid.RatingMax:
		return badQuote("speed %d, want 1 to %d", q.Speed, int64(grid.RatingMax))
	case q.Bandwidth < 1 || q.Bandwidth > grid.RatingMax:
		return badQuote("bandwidth %d, want 1 to %d", q.Bandwidth, int64(grid.RatingMax))
	case q.Price < 0 || q.Price > grid.CreditsMax:
		return badQuote("price of %d micro-credits, want 0 to %d", int64(q.Price), int64(grid.CreditsMax))
	case q.Cost > grid.CostPaper:
		return badQuote("cost model %d", q.Cost)
	case q.Free < 0 || q.Free > q.Processors:
		return badQuote("%d of %d processors free", q.Free, q.Processors)
	case q.Widest < 0 || q.Widest > q.Processors:
		return badQuote("widest startable job of %d on %d processors", q.Widest, q.Processors)
	case q.Wait < 0 || q.Wait > grid.SpanMax:
		return badQuote("wait of %d µs", int64(q.Wait))
	}
	if q.GPUWeight < 0 || q.GPUWeight > grid.GPUWeightMax {
		return badQuote("GPUs that count for %d processors, want 0 to %d", q.GPUWeight, grid.GPUWeightMax)
	}
	if err := q.GPUs.Check(); err != nil {
		return badQuote("%v", err)
	}
	return nil
}

func badQuote(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrQuote, fmt.Sprintf(format, args...))
}

// printable reports whether s can be shown on a terminal as it is.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Expires returns the instant from which the quote is void.
func (q *Quote) Expires() grid.Time { return q.Issued.Add(q.Lifetime) }

// impossible reports whether no honest holder can have the quote now, whatever its
// clock: it has long expired, or comes from the future.
func (q *Quote) impossible(now grid.Time) bool {
	return q.Issued > now+2*skewMax || now-2*skewMax >= q.Expires()
}

// value returns what the quote is indexed by under an attribute.
func (q *Quote) value(a Attribute) int64 {
	if a == Price {
		return int64(q.Price)
	}
	return q.Speed
}

// at returns the quote's position in the order of an attribute.
func (q *Quote) at(a Attribute) trie.Position {
	if q.spread == 0 {
		return trie.PositionOf(q.value(a), spreadOf(q.Site))
	}
	return trie.PositionOf(q.value(a), q.spread)
}

// spreadOf returns 64 bits that order sites of equal value: a hash of the ID, so
// that they spread over cells however alike their IDs are. It is never 0.
func spreadOf(site grid.SiteID) uint64 {
	var buffer [siteMax]byte
	sum := sha256.Sum256(append(buffer[:0], site...))
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

// summary returns that of the quote alone.
func (q *Quote) summary() trie.Summary { return trie.SummaryOf(q.Processors, q.Free, q.Speed, q.Price) }

// sameTerms reports whether two quotes of a site differ in its load at most.
func (q *Quote) sameTerms(other *Quote) bool {
	return q.Site == other.Site && q.Name == other.Name && q.Resources == other.Resources && q.Rating == other.Rating &&
		q.Price == other.Price && q.Cost == other.Cost && q.Foreign == other.Foreign && q.Modules == other.Modules && q.GPUs.SameTerms(other.GPUs) &&
		q.GPUWeight == other.GPUWeight && q.Withdrawn == other.Withdrawn
}

// sameLoad reports whether two quotes of a site promise the same load.
func (q *Quote) sameLoad(now grid.Time, other *Quote) bool {
	return q.Free == other.Free && q.Widest == other.Widest && q.waitLeft(now) == other.waitLeft(now) && q.GPUs.SameLoad(other.GPUs)
}

// waitLeft returns what is left of the wait at a later time: it shrinks as time
// passes, but is only over when the site says so.
func (q *Quote) waitLeft(now grid.Time) grid.Time {
	if q.Wait == 0 {
		return 0
	}
	return max(q.Wait-(now-q.Issued), 1)
}
