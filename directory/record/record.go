package record

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gridnode/grid"
)

// Bounds of a record, whoever it comes from.
const (
	siteMax       = 128     // bytes of a site ID
	NameMax       = 64      // bytes of a name, and of an authority's
	addressesMax  = 8       // of one site
	addressMax    = 224     // bytes of an address; one behind a relay has two IDs
	processorsMax = 1 << 24 // of one site
	memoryMax     = 1 << 50 // bytes per processor
	sealedMax     = 2 << 10 // bytes of the signed form
	lifetimeMax   = grid.Day
	skewMax       = grid.Minute // how far another site's clock may be ahead
)

// Services is a set of what a site does for others.
type Services uint8

// Services. Numbers travel on the wire: append, never renumber.
const (
	Runs    Services = 1 << iota // runs jobs of other sites
	Lends                        // lends processors
	Banks                        // keeps accounts
	Heads                        // packs batches of jobs for other sites
	unknown                      // the first bit that means nothing yet
)

var serviceNames = [...]string{"runs", "lends", "banks", "heads"}

// String lists the services.
func (s Services) String() string { return strings.Join(s.Names(), ",") }

// Names returns what each service is called.
func (s Services) Names() (names []string) {
	for i, name := range serviceNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Offer is what a site says of itself in its record.
type Offer struct {
	Name           string   // what people call the site; printable UTF-8, at most NameMax bytes, may be empty
	Authority      string   // whose site it is, likewise
	Addresses      []string // where its node listens, with its ID; at most 8 of 224 bytes; none in virtual time
	grid.Resources          // of the whole site
	grid.Rating
	Services Services
}

// Record is what a site publishes so that others find it by its name or ID. It says that
// the holder of a key calls itself so, not that it may.
type Record struct {
	Site grid.SiteID // 1 to 128 bytes
	Offer

	Sequence uint64    // rises with every record a site issues, across restarts too; at least 1
	Issued   grid.Time // instant on the site's clock
	Lifetime grid.Time // span from Issued after which it is void; more than 0, at most a day
	Sealed   []byte    // signed form, at most 2 KiB; nil in virtual time
}

// ErrRecord is wrapped by every error of Record.Check and Offer.Check.
var ErrRecord = errors.New("bad site record")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRecord, fmt.Sprintf(format, args...))
}

// Check returns an error wrapping ErrRecord that names the first field that is out of
// bounds. Records that came out of a Registry or of a decoder have passed it.
func (r *Record) Check() error {
	if err := r.Offer.Check(); err != nil {
		return err
	}
	switch {
	case len(r.Site) == 0 || len(r.Site) > siteMax:
		return bad("site of %d bytes, want 1 to %d", len(r.Site), siteMax)
	case r.Sequence == 0:
		return bad("sequence 0, want 1 or more")
	case r.Issued < 0 || r.Issued > grid.SpanMax:
		return bad("issued at %d µs", int64(r.Issued))
	case r.Lifetime <= 0 || r.Lifetime > lifetimeMax:
		return bad("lifetime of %v, want more than 0, at most %v", r.Lifetime, lifetimeMax)
	case len(r.Sealed) > sealedMax:
		return bad("signed form of %d bytes, at most %d", len(r.Sealed), sealedMax)
	}
	return nil
}

// Check is as Record.Check of what the site decides.
func (o *Offer) Check() error {
	switch {
	case len(o.Name) > NameMax || !printable(o.Name):
		return bad("name %q, want at most %d bytes of printable UTF-8", o.Name, NameMax)
	case len(o.Authority) > NameMax || !printable(o.Authority):
		return bad("authority %q, want at most %d bytes of printable UTF-8", o.Authority, NameMax)
	case len(o.Addresses) > addressesMax:
		return bad("%d addresses, at most %d", len(o.Addresses), addressesMax)
	case o.Processors < 0 || o.Processors > processorsMax:
		return bad("%d processors, want 0 to %d", o.Processors, int64(processorsMax))
	case o.Memory < 0 || o.Memory > memoryMax:
		return bad("%d bytes of memory per processor, want 0 to %d", o.Memory, int64(memoryMax))
	case o.Speed < 0 || o.Speed > grid.RatingMax || o.Bandwidth < 0 || o.Bandwidth > grid.RatingMax:
		return bad("speed %d and bandwidth %d, want 0 to %d", o.Speed, o.Bandwidth, int64(grid.RatingMax))
	case o.Services >= unknown:
		return bad("services %#x", uint8(o.Services))
	}
	for _, a := range o.Addresses {
		if len(a) == 0 || len(a) > addressMax || !printable(a) {
			return bad("address %q, want 1 to %d bytes of printable UTF-8", a, addressMax)
		}
	}
	return nil
}

// Bounded returns addresses without those that no record may hold.
func Bounded(addresses []string) (list []string) {
	for _, a := range addresses {
		if len(a) > 0 && len(a) <= addressMax && printable(a) && len(list) < addressesMax {
			list = append(list, a)
		}
	}
	return list
}

// same reports whether two sites say the same of themselves.
func (o *Offer) same(other *Offer) bool {
	return o.Name == other.Name && o.Authority == other.Authority && o.Resources == other.Resources && o.Rating == other.Rating &&
		o.Services == other.Services && slices.Equal(o.Addresses, other.Addresses)
}

// printable reports whether s can be shown on a terminal as it is.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Expires returns the instant from which the record is void.
func (r *Record) Expires() grid.Time { return r.Issued.Add(r.Lifetime) }

// valid reports whether the record counts now.
func (r *Record) valid(now grid.Time) bool { return r.Issued <= now+skewMax && now < r.Expires() }

// about reports whether the record is of the site that text names, by its ID or a name
// that it claims.
func (r *Record) about(text string) bool {
	return text != "" && (string(r.Site) == text || r.Name == text)
}

// key returns the point of the DHT's key space whose nearest sites hold the records of
// those whom text names.
func key(federation, text string) grid.Key {
	return sha256.Sum256([]byte("gridnode/site/" + federation + "\x00" + text))
}

// sortRecords puts records in the order of their sites.
func sortRecords(list []*Record) {
	slices.SortFunc(list, func(a, b *Record) int { return cmp.Compare(a.Site, b.Site) })
}
