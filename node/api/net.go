package api

import "context"

// Net is how this node is reached.
type Net struct {
	Reachability string   `json:"reachability"` // public, private, local, loopback or unknown
	NAT          bool     `json:"nat"`          // peers see other addresses than this machine has
	Listen       []string `json:"listen"`
	Addresses    []string `json:"addresses"` // told to others, best first
	Announced    []string `json:"announced"`
	Reachable    []string `json:"reachable"`   // at which others were able to connect
	Unreachable  []string `json:"unreachable"` // at which they were not
	Unchecked    []string `json:"unchecked"`
	Observed     []string `json:"observed"` // how peers see this node

	Relay    string   `json:"relay"`    // the setting: use, offer or off
	Relays   []string `json:"relays"`   // IDs of those that have a place for this node
	Serving  bool     `json:"serving"`  // this node is a relay
	Circuits int      `json:"circuits"` // connections relayed for others now
	Punched  int      `json:"punched"`  // holes punched through NATs so far
	InVain   int      `json:"inVain"`   // attempts that failed

	Peers    []NetPeer    `json:"peers"`
	Problems []NetProblem `json:"problems"` // worst first
	OK       bool         `json:"ok"`       // others can reach this node, and somebody is connected
}

// NetPeer is a connected peer.
type NetPeer struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Address string   `json:"address"`
	Kind    string   `json:"kind"`            // quic, tcp or relayed
	Relay   string   `json:"relay,omitempty"` // ID of the relay
	Punched bool     `json:"punched"`         // through a hole that was punched
	Latency Seconds  `json:"latency"`
	Member  bool     `json:"member"`
	Offset  *Seconds `json:"offset"` // by which its clock is ahead of this one; null if it does not say
	Stuck   bool     `json:"stuck"`  // large packets are lost
}

// NetProblem is something that does not work, and what to do about it.
type NetProblem struct {
	Severe bool   `json:"severe"`
	What   string `json:"what"`
	Do     string `json:"do"`
}

// Net says how the node is reached. It asks every connected peer, which takes a while.
func (c *Client) Net(ctx context.Context) (*Net, error) { return get[Net](ctx, c, "/v1/net") }
