package p2p

import (
	"time"

	"gridnode/node/p2p/refresh"
)

// Bounds on what peers can make this node hold or do.
const (
	// messageStreamsMax bounds a peer's open streams with messages of the cores. An
	// honest peer keeps one per core, and for a while those of a connection that broke.
	messageStreamsMax = 16
	// driverStreamsMax bounds a peer's open streams of the driver's protocols: an
	// honest peer has one per output that somebody follows or that is being fetched.
	driverStreamsMax = 32
	// taskStreamsMax bounds a peer's open streams between tasks of jobs that run at
	// both sites: one per two tasks that talk, if all do with all.
	taskStreamsMax = 1024
	// peersMax bounds the peers with streams, and those with a queue.
	peersMax = 4096

	// outboundMax bounds the messages waiting for one peer: about two seconds of what it
	// reads of us (package allowance), some MiB.
	outboundMax = 8192
	// batchMax bounds the messages written at once, writeMax the bytes of all but the last.
	batchMax = 256
	writeMax = 128 << 10
	// connsMax bounds the connections of one peer: an honest one has a second for a moment,
	// when both sides dial.
	connsMax = 4

	// windowMax bounds the bytes of a stream that came and were not read: with what is read
	// of a transfer that stays below 16 MiB, and fills a gigabit over 60 ms. It is yamux's first
	// window, doubled some times: with another bound go-yamux 5.1 stalls, as it tells a sender
	// of the last growth of a window only, and then waits until half of the window was read.
	windowMax = 8 << 20

	// greetingsMax bounds the proofs of membership read of one peer while it is connected.
	greetingsMax = 16

	// lookupsMax bounds the DHT look-ups under way, lookupsWaitingMax those waiting.
	lookupsMax        = 8
	lookupsWaitingMax = 1024

	// recordOrdersAlive bounds the orders about provider records that are carried out,
	// recordOrdersMax those waiting.
	recordOrdersAlive = 8
	recordOrdersMax   = 1024

	// doubtsAlive bounds the peers asked at a time whether they are there, doubtsMax those waiting.
	doubtsAlive = 8
	doubtsMax   = 64
	// recordsMax bounds the provider records kept for others, recordsPeerMax those of one
	// peer, recordsKeyMax those under one key. At 300 bytes each that is some 20 MiB.
	recordsMax     = 65_536
	recordsPeerMax = 4096
	recordsKeyMax  = 64

	// silentMax and silentSpan bound what Silent asks, and for how long.
	silentMax  = 32
	silentSpan = 3 * time.Second

	// probesMax bounds the measurements of round trips under way, probePings is how
	// many pings one takes.
	probesMax  = 16
	probePings = 3

	// checksMax bounds the peers that are asked for their clocks at once.
	checksMax = 16

	// bucketMin is the least size of Kademlia's buckets. kad-dht looks for peers for
	// its table again after every change while it has at most 10, and until its own
	// refreshes have run (which it skips here) takes a new peer in place of an old one
	// wherever a bucket is full. A table that is small and has a full bucket would
	// never come to rest: each peer put out comes back in place of another, at a
	// request each. A bucket that holds more than 10 rules that out.
	bucketMin = 11

	// parallel is Kademlia's α (Maymounkov and Mazières 2002 take the same). A look-up with
	// kad-dht's own, 10, takes half as many requests again: those under way when the nearest
	// have answered tell it nothing. It ends sooner, but hardly any job waits for one.
	parallel = 3

	// sparseTable is how few members in the table make a node try several of those at a time
	// that it has known, and not one.
	sparseTable = 4

	// rememberedMax bounds the peers whose addresses survive a restart, rememberedAddrs the
	// addresses of each.
	rememberedMax   = 64
	rememberedAddrs = 6
)

// Gossip bounds, per author: reports come on change and with a slow heartbeat.
const (
	gossipRate  = 10
	gossipBurst = 20
	// gossipQueue is how many messages wait to be verified: the burst of a peer's allowance.
	gossipQueue = 1024
)

// refreshMin is between two looks at who is connected, while not alone, and whether a refresh.Pause is over.
const refreshMin = time.Duration(refresh.Min) * time.Microsecond

// Times.
const (
	youngMax       = time.Minute            // a connection is no older: it ends when its address is banned
	holdMax        = time.Second            // a reader of a protocol of libp2p's is held back so long at once
	greetTimeMax   = 5 * time.Second        // for a new peer to show that it is a member
	dialTimeMax    = 5 * time.Second        // to connect, and again to open a stream
	writeTimeMax   = 10 * time.Second       // for a batch of frames
	frameTimeMax   = 10 * time.Second       // from a frame's first byte to its last
	streamIdleMax  = 2 * time.Minute        // an inbound stream without a frame is closed
	sendIdleMax    = 30 * time.Second       // an outbound stream without a frame is closed
	busyTimeMax    = time.Second            // wait for room in the node's queue; then the stream is reset
	busyPoll       = 2 * time.Millisecond   // how often room is looked for
	redialMin      = time.Second            // first pause after a failed dial, doubled up to
	redialMax      = 30 * time.Second       // this
	lookupTimeMax  = 10 * time.Second       // for one DHT look-up
	recordTimeMax  = 15 * time.Second       // to put a provider record into the DHT, or to find those there
	joinTimeMax    = 3 * time.Second        // the first look-ups wait this long for the first join
	rejoinMin      = 500 * time.Millisecond // first pause between joins while alone, doubled up to
	rejoinMax      = 30 * time.Second       // this
	rememberPause  = 500 * time.Millisecond // from a new connection until the peers are written down
	pingTimeMax    = 2 * time.Second        // for a peer's latency, when somebody asks for it
	recordLife     = 3 * time.Hour          // of a provider record; its owner puts it there again every hour at least
	recordAddrLife = 30 * time.Minute       // of a provider's addresses
	checkTimeMax   = 4 * time.Second        // for a peer to answer what its clock says
	pingFresh      = 30 * time.Second       // a latency younger than this is not measured again
)
