// Package allowance says how much each peer may ask of a node, and what becomes of one
// that asks for more: it is read more slowly, and if it goes on it is banned for a
// while. It holds numbers and no connection; node/p2p draws from it whatever a peer
// sends, before anything of it is decoded or verified, and ends the connections of
// those that are banned.
//
// A sender keeps to the same allowances (Pace), so that an honest site never goes beyond:
// whoever does either does not speak the protocol, or has been cut off for so long that
// what was under way comes all at once, which Patience is for.
package allowance

import (
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Class is what messages are allowanceed together.
type Class uint8

// The classes.
const (
	Market Class = iota // placing jobs: negotiations, submissions, completions
	Lease
	Directory
	Signed  // of those, quotes and records: each costs a verification
	Gossip  // load reports and latencies
	Money   // bank and fees
	Records // site records, siblings, data sets, revocations
	Other   // protocols that no line below names
	Lookups // requests to this node's part of the DHT, provider records, pings
	Topics  // GossipSub
	Streams // opened, of whatever protocol
	Conns   // connections of one peer that were opened
	Faults  // what was malformed, or a stream too many
	Address // connections of one address that were opened
	Classes // how many there are
)

// TokenBytes is how many bytes of a message cost as much as the message itself.
const TokenBytes = 512

// Line is the allowance of a class: tokens refill at Rate a second up to Burst. A message
// costs one, and one more for each full TokenBytes.
type Line struct {
	Name        string
	Rate, Burst float64
}

// Lines are the allowances of all classes.
type Lines [Classes]Line

// Table is the allowance of each peer, and of each address. In a federation of 200 sites a
// site is sent 200 messages a minute by all others together (docs/figures), so a single
// honest peer needs a hundredth of any line, but for what a line says.
var Table = Lines{
	// Two sites that push 1,000 jobs a second through the market send each other 3,000
	// small messages a second, which is what Pace leaves of this.
	Market: {"market", 4000, 4000},
	Lease:  {"lease", 500, 1000},
	// A page of 64 quotes costs up to 128; whoever lists a federation of 1,000 sites may
	// get all pages of one holder.
	Directory: {"directory", 1000, 2000},
	// A verification takes as long as ten messages without one. Holders of cells get few.
	Signed: {"quotes and records", 250, 500},
	Gossip: {"gossip", 200, 500},
	// A bank is drawn from and redeemed at for every job of its customers.
	Money:   {"money", 1000, 2000},
	Records: {"records", 200, 500},
	Other:   {"other", 4000, 4000},
	// A look-up sends a peer a few requests. A site that joins makes some at once.
	Lookups: {"look-ups", 100, 500},
	Topics:  {"topics", 100, 300},
	// Tasks of one job that talk across sites open a stream for each two of them.
	Streams: {"streams", 250, 256},
	Conns:   {"connections", 1, 16},
	Faults:  {"faults", 1, 16},
	// Many nodes may run on one machine, or behind one address.
	Address: {"connections of one address", 16, 128},
}

// What a sender leaves of a allowance.
const (
	paceRate  = 0.75 // of the rate
	paceBurst = 0.5  // of the burst: the receiver may have filled its own a while ago
)

// A peer that has used up its burst gets a twentieth of the rate until a tenth of the burst
// is there again: twenty that flood together cost what one may. What an honest peer has to
// say meanwhile is less.
const (
	emptyRate  = 0.05
	emptyUntil = 0.1
)

// Patience is for how long, of the latest time, a peer may be above its allowance before it
// is banned. Time below the allowance counts against it by a quarter.
const (
	Patience  = 2 * time.Second
	forgiving = 4
)

// SlowMax is how often in SlowSpan a peer may leave a message half sent, or not take what
// it was sent, until the time for it is over. Those at the same time count once: a
// connection that breaks has many.
const (
	SlowMax  = 4
	SlowSpan = time.Minute
	slowGap  = time.Second
)

// Of returns the class of a protocol ("/gridnode/market/1.0.0").
func Of(protocol string) Class {
	name, _, _ := strings.Cut(strings.TrimPrefix(protocol, "/gridnode/"), "/")
	switch name {
	case "market":
		return Market
	case "lease":
		return Lease
	case "directory":
		return Directory
	case "gossip":
		return Gossip
	case "bank", "fee":
		return Money
	case "site-record", "sibling", "dataset", "member":
		return Records
	}
	return Other
}

// Carries reports whether a message of a kind draws from Signed, too.
func Carries(k grid.Kind) bool { return k == wire.DirectoryPublish || k == wire.DirectoryEnter }

// String implements fmt.Stringer.
func (c Class) String() string { return Table[c].Name }

// Cost returns the tokens of a message of so many bytes.
func Cost(bytes int) float64 { return float64(1 + bytes/TokenBytes) }
