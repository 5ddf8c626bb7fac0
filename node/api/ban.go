package api

// Ban is that nothing is made of connections of a peer, or of an address, for a while.
type Ban struct {
	Peer    string  `json:"peer,omitempty"` // ID; empty: it is of an address
	Name    string  `json:"name,omitempty"` // of its site, if a quote of it came by
	Address string  `json:"address"`        // IP address it came from
	Until   Instant `json:"until"`
	Why     string  `json:"why"`
	Times   int     `json:"times"`   // bans that are not forgotten, with this one
	Refused int64   `json:"refused"` // connections refused since it began
}

// BansReply answers GET /v1/peers/bans.
type BansReply struct {
	Bans []Ban `json:"bans"` // by end
}

// UnbanRequest is the body of POST /v1/peers/unban.
type UnbanRequest struct {
	Peer string `json:"peer"` // ID or its end, name of its site, or an address
}

// UnbanReply answers POST /v1/peers/unban.
type UnbanReply struct {
	Ban Ban `json:"ban"` // that was lifted
}

// NetworkCounters is what was held back or refused on the network since the daemon
// started.
type NetworkCounters struct {
	Held    int64 `json:"held"`    // messages and streams looked at late: their peer was above its allowance
	Refused int64 `json:"refused"` // connections and streams above a allowance
	Busy    int64 `json:"busy"`    // streams reset as the node was busy
	Bans    int64 `json:"bans"`    // of peers and addresses
}
