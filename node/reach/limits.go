package reach

import "time"

// Bounds on what others can make this node do or hold.
const (
	// namesMax bounds the IP addresses taken of one name.
	namesMax = 8

	// reservationsMax bounds the members that this node is a relay of; many may come from
	// one address, as members behind one NAT do.
	reservationsMax = 128
	// circuitsMax bounds the relayed connections under way, circuitsPeerMax those of one
	// member. Each costs two streams and two buffers.
	circuitsMax     = 256
	circuitsPeerMax = 32
	relayBuffer     = 4 << 10
	reservationLife = time.Hour

	// relaysWanted is at how many relays a private node has a place: one may die.
	relaysWanted = 2
	// relaysKnown bounds the relays that are kept in mind besides.
	relaysKnown = 8

	// directTries is how often that is looked at.
	directTries = 9

	// punchesMax bounds the peers of which it is remembered that a hole was punched.
	punchesMax = 1024

	// announcedMax bounds the addresses that an owner announces.
	announcedMax = 8
)

// Times.
const (
	relayBackoff  = time.Minute      // for a relay that refused a place
	relayInterval = 10 * time.Second // between searches for relays, at least
	searchMin     = 10 * time.Second // first pause between look-ups of relays in the DHT, doubled up to
	searchMax     = 5 * time.Minute  // this, while none is found
	searchTimeMax = 20 * time.Second // for one look-up
	offerEvery    = time.Hour        // between two provider records of a relay; kad-dht drops them after three
	offerAgain    = 30 * time.Second // after a record that was not stored
	tryTimeMax    = 8 * time.Second  // for members to try the announced addresses
	settleTime    = 5 * time.Second  // from the last change of what is known until it is acted on
	directAfter   = 20 * time.Second // a relayed connection beside a direct one is closed after this, if nobody uses it
)
