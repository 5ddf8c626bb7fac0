package server

import (
	"net/http"
	"slices"

	"github.com/multiformats/go-multiaddr"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/reach"
	"gridnode/node/site"
)

// net answers how the node is reached.
func (a *Server) net(w http.ResponseWriter, r *http.Request) error {
	d := a.host.Diagnose(r.Context())
	reply := api.Net{
		Reachability: string(d.Reachability), NAT: d.NAT, Listen: addrTexts(d.Listen), Addresses: a.host.Addrs(), Announced: addrTexts(d.Announced),
		Reachable: addrTexts(d.Reachable), Unreachable: addrTexts(d.Unreachable), Unchecked: addrTexts(d.Unchecked), Observed: addrTexts(d.Observed),
		Relay: d.Relay.String(), Relays: []string{}, Serving: d.Serving, Circuits: d.Circuits, Punched: d.Punched, InVain: d.InVain,
		Peers: []api.NetPeer{}, Problems: []api.NetProblem{}, OK: true,
	}
	if d.Loopback() {
		reply.Reachability = "loopback"
	}
	for _, p := range d.Relays {
		reply.Relays = append(reply.Relays, p.String())
	}
	for _, p := range d.Problems() {
		reply.Problems = append(reply.Problems, api.NetProblem{Severe: p.Severe, What: p.What, Do: p.Do})
		reply.OK = reply.OK && !p.Severe
	}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for i := range d.Peers {
			q, _ := s.Known(d.Peers[i].Site)
			reply.Peers = append(reply.Peers, netPeer(&d.Peers[i], q.Name))
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

func netPeer(p *reach.Contact, name string) api.NetPeer {
	out := api.NetPeer{
		ID: string(p.Site), Name: name, Address: p.Addr, Kind: string(p.Kind), Relay: string(p.Relay), Punched: p.Punched,
		Latency: api.Seconds(grid.FromDuration(p.Latency)), Member: p.Member, Stuck: p.Stuck,
	}
	if p.Clock {
		offset := api.Seconds(grid.FromDuration(p.Offset))
		out.Offset = &offset
	}
	return out
}

// addrTexts returns addresses as texts, without those that say only that relays are used.
func addrTexts(addrs []multiaddr.Multiaddr) []string {
	texts := []string{}
	for _, a := range addrs {
		if text := a.String(); text != "/p2p-circuit" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
