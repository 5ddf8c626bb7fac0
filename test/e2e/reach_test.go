package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// netReport is what the tests look at in -o json of diag net.
type netReport struct {
	Reachability string   `json:"reachability"`
	NAT          bool     `json:"nat"`
	Addresses    []string `json:"addresses"`
	Relays       []string `json:"relays"`
	Serving      bool     `json:"serving"`
	Circuits     int      `json:"circuits"`
	Punched      int      `json:"punched"`
	InVain       int      `json:"inVain"`
	Peers        []struct {
		ID      string   `json:"id"`
		Kind    string   `json:"kind"`
		Relay   string   `json:"relay"`
		Punched bool     `json:"punched"`
		Offset  *float64 `json:"offset"`
		Stuck   bool     `json:"stuck"`
	} `json:"peers"`
	Problems []struct {
		Severe   bool
		What, Do string
	} `json:"problems"`
	OK bool `json:"ok"`
}

// net returns what diag net says; its exit code must fit.
func (s *site) net() (n netReport) {
	s.Helper()
	r := s.run("diag", "net", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &n); err != nil {
		s.Fatalf("diag net: %v: %v", err, r)
	}
	if n.OK != (r.code == 0) {
		s.Fatalf("diag net: ok is %v with exit code %d", n.OK, r.code)
	}
	return n
}

// says reports whether diag net names a problem.
func (n netReport) says(what string) bool {
	for _, p := range n.Problems {
		if strings.Contains(p.What, what) && p.Do != "" {
			return true
		}
	}
	return false
}

// by returns how another site is connected: quic, tcp, punched, relayed through whom, or
// nothing.
func (n netReport) by(other *site) string {
	for _, p := range n.Peers {
		switch {
		case p.ID != other.id:
		case p.Punched:
			return "punched"
		case p.Relay != "":
			return "relayed through " + p.Relay
		default:
			return p.Kind
		}
	}
	return ""
}

// runsAt has a job run at another site, and returns what it wrote.
func (s *site) runsAt(other, text string) {
	s.Helper()
	id := strings.TrimSpace(s.ok("submit", "-W", "-q", "--site", other, "--", "echo", text))
	if got := strings.TrimSpace(s.ok("logs", id)); got != text {
		s.Errorf("a job at %s wrote %q, want %q", other, got, text)
	}
}

// TestThroughNATs: two sites behind NATs that give the same port to all find each other by
// a relay, punch holes, and run jobs at one another. The public site is known by a name. Holes are
// a matter of moments, so nothing else runs beside it.
func TestThroughNATs(t *testing.T) {
	n := newInternet(t)
	const name = "grid.example.org"
	open := n.public("open")
	open.set("network.announce", fmt.Sprintf("%s:%d", name, open.port)).start()
	hosts := open.ip + " " + name
	through := fmt.Sprintf("%s:%d/p2p/%s", name, open.port, open.id)
	hill := n.private("hill", cone, hosts, "--join", through).start()
	hill.eventually("hill finds out that it is behind a NAT", func() bool { return hill.net().Reachability == "private" })
	if r := hill.net(); r.OK || !r.NAT || !r.says("no member offers a relay") || r.by(open) != "quic" {
		t.Errorf("without a relay diag net says %+v", r)
	}

	relay := n.public("relay", "--join", open.addr)
	relay.set("network.relay", "offer", "network.join", fmt.Sprintf("/ip4/%s/tcp/%d/p2p/%s", open.ip, open.port, open.id)).start()
	relay.eventually("relay is one", func() bool { return relay.net().Serving })
	vale := n.private("vale", cone, hosts, "--join", through).start()
	for _, s := range []*site{hill, vale} {
		s.eventually("it has a relay", func() bool { return slices.Equal(s.net().Relays, []string{relay.id}) })
		if r := s.net(); !r.OK || !slices.ContainsFunc(r.Addresses, func(a string) bool { return strings.Contains(a, "/p2p-circuit/p2p/"+s.id) }) {
			t.Errorf("with a relay diag net says %+v", r)
		}
		s.sees(4)
	}
	hill.runsAt("vale", "from hill")
	vale.runsAt("hill", "from vale")
	hill.eventually("the connection is direct", func() bool { r := hill.net(); return r.by(vale) == "punched" && r.Punched > 0 })
	vale.eventually("so it is there", func() bool { r := vale.net(); return r.by(hill) == "punched" })
	relay.eventually("the relay carries nothing any more", func() bool { return relay.net().Circuits == 0 })
	hill.runsAt("vale", "directly")
	for _, p := range hill.net().Peers {
		if p.Offset == nil || *p.Offset > 1 || *p.Offset < -1 || p.Stuck {
			t.Errorf("of one machine, a peer is %+v", p)
		}
	}
	if text := hill.ok("peers"); !strings.Contains(text, "quic, punched") {
		t.Errorf("peers says %s", text)
	}
	if text := hill.ok("diag", "net"); !strings.Contains(text, "between this machine and some peers") {
		t.Errorf("diag net says %s", text)
	}

	boast := n.private("boast", cone, hosts, "--join", through)
	boast.set("network.announce", "45.0.0.99:7531").start()
	boast.eventually("it learns that nobody can connect", func() bool { r := boast.net(); return r.says("announced address") })
}

// TestThroughRelays: NATs that give everybody a new port let no hole be punched. Members
// run jobs at one another through a relay, and when that dies through another.
func TestThroughRelays(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	n.make = newLoner // members become so over the network
	root := n.public("root")
	root.ok("federation", "create", "natted")
	root.start()
	member := func(s *site) *site {
		t.Helper()
		s.inside("federation", "join", strings.TrimSpace(root.ok("invite", "--site", s.name())))
		return s.start()
	}
	first := member(n.public("first").set("network.relay", "offer"))
	hill := member(n.private("hill", symmetric, ""))
	vale := member(n.private("vale", symmetric, ""))
	first.eventually("first is a relay", func() bool { return first.net().Serving })
	for _, s := range []*site{hill, vale} {
		s.eventually("it has a relay", func() bool { return slices.Equal(s.net().Relays, []string{first.id}) })
		s.sees(4)
	}
	hill.runsAt("vale", "from hill")
	vale.runsAt("hill", "from vale")
	// A machine that is slow to answer about its addresses is not tried; the next connection to it is.
	inVain := func() bool { r := hill.net(); return r.InVain > 0 && r.says("failed") }
	for tries := 0; tries < 3 && !soonTrue(20*time.Second, inVain); tries++ {
		vale.kill()
		vale.start()
		vale.sees(4)
		vale.runsAt("hill", "from vale, started anew")
	}
	hill.eventually("holes were punched in vain", inVain)
	if by := hill.net().by(vale); by != "relayed through "+first.id {
		t.Errorf("vale is connected by %q", by)
	}

	second := member(n.public("second").set("network.relay", "offer"))
	second.eventually("second is a relay", func() bool { return second.net().Serving })
	first.kill()
	for _, s := range []*site{hill, vale} {
		s.eventually("it has the other relay", func() bool { return slices.Equal(s.net().Relays, []string{second.id}) })
	}
	hill.eventually("a job runs at vale again", func() bool {
		return hill.run("submit", "-W", "-q", "--site", "vale", "--", "true").code == 0
	})
	if by := hill.net().by(vale); by != "relayed through "+second.id {
		t.Errorf("vale is connected by %q, want through the second relay", by)
	}
	vale.runsAt("hill", "again")
}
