package api

// SiteInfo is one site of the federation as this one sees it.
type SiteInfo struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Self       bool    `json:"self"`
	Processors int64   `json:"processors"`
	Free       int64   `json:"free"`   // processors idle now
	Widest     int64   `json:"widest"` // most processors a job could start on now
	Wait       Seconds `json:"wait"`   // estimated wait of a job as wide as the site
	Queued     int64   `json:"queued"` // jobs waiting there, if it gossiped
	Memory     int64   `json:"memoryPerProcessor,omitempty"`
	Speed      int64   `json:"speed"`               // MIPS rating
	Bandwidth  int64   `json:"bandwidth"`           // Mb/s
	Price      Amount  `json:"price"`               // per processor-hour, per hour under cost model paper
	Cost       string  `json:"cost"`                // cost model
	Foreign    bool    `json:"foreign"`             // runs jobs of other sites
	GPUs       []GPUs  `json:"gpus,omitempty"`      // by type
	GPUWeight  int64   `json:"gpuWeight,omitempty"` // processors that a GPU counts for in what a job costs
	Head       string  `json:"head,omitempty"`      // ID of the site that may head it, if it gossiped
	Sequence   uint64  `json:"sequence"`
	Issued     Instant `json:"issued,omitzero"` // its quote
	Expires    Instant `json:"expires,omitzero"`
	Silent     bool    `json:"silent,omitempty"` // it does not answer this site

	// From here: half a round trip, and how it is known. Without a source it is not.
	Latency       Seconds   `json:"latency,omitempty"`
	LatencySource string    `json:"latencySource,omitempty"`
	Latencies     []Latency `json:"latencies,omitempty"` // to all sites of the listing, if they are at most 32

	Place []Seconds `json:"place,omitempty"` // its network coordinate, x and y; left out if it has told none
}

// SitesReply answers GET /v1/sites and GET /v1/quotes.
type SitesReply struct {
	Sites    []SiteInfo `json:"sites"`
	Messages int32      `json:"messages"` // the directory needed to answer
	Certain  bool       `json:"certain"`  // no site is missing, as far as the directory knows; see directory.Found
}

// FoundSite is a site that was found by its name or ID.
type FoundSite struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Self       bool     `json:"self"`
	Source     string   `json:"source"`              // "record": it has signed all this; "quote": it has none, this is what the index lists
	Authority  string   `json:"authority,omitempty"` // whose site it is
	Addresses  []string `json:"addresses"`           // of its node
	Processors int64    `json:"processors"`
	Memory     int64    `json:"memoryPerProcessor,omitempty"`
	Speed      int64    `json:"speed"`     // MIPS rating
	Bandwidth  int64    `json:"bandwidth"` // Mb/s
	Services   []string `json:"services"`  // what it does for others: runs, lends, banks, heads
	Sequence   uint64   `json:"sequence"`
	Issued     Instant  `json:"issued,omitzero"`
	Expires    Instant  `json:"expires,omitzero"`
}

// FindSiteReply answers GET /v1/sites/find.
type FindSiteReply struct {
	Sites    []FoundSite `json:"sites"`    // by ID, at least one
	Clash    bool        `json:"clash"`    // several sites claim the name: it stands for none of them
	Asked    int         `json:"asked"`    // sites that may have had records
	Answered int         `json:"answered"` // of them
}

// Peer is a node this one is connected to.
type Peer struct {
	ID      string  `json:"id"`
	Name    string  `json:"name,omitempty"` // of its site, if a quote of it came by
	Address string  `json:"address"`        // of the connection
	Inbound bool    `json:"inbound"`        // it dialled us
	Since   Instant `json:"since"`
	Latency Seconds `json:"latency"`         // smoothed round trip; 0 if not measured
	Agent   string  `json:"agent"`           // program and version it says it runs
	Member  bool    `json:"member"`          // it speaks this federation's DHT protocol
	Kind    string  `json:"kind"`            // of the connection: quic, tcp or relayed
	Relay   string  `json:"relay,omitempty"` // ID of the relay that it leads through
	Punched bool    `json:"punched"`         // it leads through a hole that was punched into NATs

	// What it has sent lately.
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	Held     int64 `json:"held"` // looked at late: it was above its allowance
}

// PeersReply answers GET /v1/peers.
type PeersReply struct {
	Peers []Peer `json:"peers"`
}

// MessageCount is the messages and bytes of one kind.
type MessageCount struct {
	Kind          string `json:"kind"`
	Sent          int64  `json:"sent"`
	SentBytes     int64  `json:"sentBytes"`
	Received      int64  `json:"received"`
	ReceivedBytes int64  `json:"receivedBytes"`
}

// PriceRequest is the body of POST /v1/price.
type PriceRequest struct {
	Price Amount `json:"price"` // credits per processor-hour
}

// PriceReply answers POST /v1/price.
type PriceReply struct {
	Before Amount `json:"before"`
	Price  Amount `json:"price"`
}

// CountersReply answers GET /v1/counters.
type CountersReply struct {
	Messages  []MessageCount  `json:"messages"`
	Malformed int64           `json:"malformed"` // frames that did not decode
	Network   NetworkCounters `json:"network"`
}

// GPUs is what a site has of one type.
type GPUs struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	Free  int64  `json:"free"` // that no job has
}

// NodeInfo answers GET /v1/node.
type NodeInfo struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Federation string   `json:"federation"`
	Addresses  []string `json:"addresses"` // with /p2p/ID: what others join
	PID        int      `json:"pid"`
	Started    Instant  `json:"started"`
	Version    string   `json:"version"`
	Jobs       int      `json:"jobs"`    // known here
	Price      Amount   `json:"price"`   // charged at the moment, per processor-hour
	Pricing    string   `json:"pricing"` // "fixed" or "demand"
	GPUs       []GPUs   `json:"gpus,omitempty"`

	Scheduler Scheduler `json:"scheduler,omitzero"` // of the site's processors; left out if they are its own and all is well

	Account string `json:"account"` // that the daemon runs as
	Runs    string `json:"runs"`    // whose jobs: "own" of that account, or "all", each as its user
	Caller  string `json:"caller"`  // account of who asks
	Role    string `json:"role"`    // of who asks: visitor, user, operator or admin
}

// Scheduler is how it stands with another scheduler to whom the site's processors belong.
type Scheduler struct {
	Others  int64   `json:"others"`            // processors that its other users hold
	Trouble string  `json:"trouble,omitempty"` // why it does not answer
	Margin  Seconds `json:"margin"`            // how much later than it foretells jobs begin, as learned
	Broken  int64   `json:"broken"`            // promises that could not be kept as it began jobs late
}

// Latency is what this site knows of the way between two sites.
type Latency struct {
	To      string  `json:"to"` // ID; within the site itself if it is its own
	Latency Seconds `json:"latency"`
	Source  string  `json:"source"` // declared, measured, reported or estimated
}
