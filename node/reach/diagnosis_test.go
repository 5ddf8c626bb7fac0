package reach

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

func addrs(texts ...string) (all []multiaddr.Multiaddr) {
	for _, t := range texts {
		all = append(all, multiaddr.StringCast(t))
	}
	return all
}

func TestProblems(t *testing.T) {
	member := Contact{Site: "hill", Kind: KindQUIC, Member: true, Clock: true}
	clock := func(offset time.Duration) Contact { c := member; c.Offset = offset; return c }
	both := addrs("/ip4/0.0.0.0/udp/7531/quic-v1", "/ip4/0.0.0.0/tcp/7531")
	for _, tt := range []struct {
		name   string
		d      Diagnosis
		severe bool
		what   string // of the first problem; empty: there is none
		do     string
	}{
		{"all is well", Diagnosis{Status{Reachability: Public}, both, 1, []Contact{member}}, false, "", ""},
		{"in one network", Diagnosis{Status{Reachability: Local}, both, 1, []Contact{member}}, false, "", ""},
		{"nobody told", Diagnosis{Status{Reachability: Public}, both, 0, nil}, true, "not told whom to join", "network.join"},
		{"nobody answers", Diagnosis{Status{Reachability: Public}, both, 1, nil}, true, "nobody is connected", "log"},
		{"strangers", Diagnosis{Status{Reachability: Public}, both, 1, []Contact{{Site: "x"}}}, true, "of this federation", "federation show"},
		{"loopback", Diagnosis{Status{Reachability: Unknown}, addrs("/ip4/127.0.0.1/tcp/1", "/p2p-circuit"), 1, []Contact{member}}, false, "this machine only", "0.0.0.0:1"},
		{"unknown", Diagnosis{Status{Reachability: Unknown}, both, 1, []Contact{member}}, false, "nobody has tried", "wait"},
		{"NAT", Diagnosis{Status{Reachability: Private, NAT: true, Relay: RelayUse}, both, 1, []Contact{member}}, true, "behind a NAT", "forward port 7531"},
		{"firewall", Diagnosis{Status{Reachability: Private, Relay: RelayUse}, both, 1, []Contact{member}}, true, "firewall", "network.relay to offer"},
		{"relays refused", Diagnosis{Status{Reachability: Private, NAT: true}, both, 1, []Contact{member}}, true, "network.relay is off", "network.relay to use"},
		{"two relays", Diagnosis{Status{Reachability: Private, Relay: RelayUse, Relays: []peer.ID{"a", "b"}}, both, 1, []Contact{member}}, false, "", ""},
		{"one relay", Diagnosis{Status{Reachability: Private, Relay: RelayUse, Relays: []peer.ID{"a"}}, both, 1, []Contact{member}}, false, "one relay", "another member"},
		{"TCP only", Diagnosis{Status{Reachability: Private, Relay: RelayUse, Relays: []peer.ID{"a", "b"}}, both[1:], 1, []Contact{member}}, false, "QUIC", "network.listen"},
		{"symmetric NAT", Diagnosis{Status{Reachability: Private, Relay: RelayUse, Relays: []peer.ID{"a", "b"}, InVain: 3}, both, 1, []Contact{member}}, false, "3 attempts", "network.announce"},
		{"one address shut", Diagnosis{Status{Reachability: Public, Unreachable: addrs("/ip4/45.0.0.1/udp/1/quic-v1")}, both, 1, []Contact{member}}, false, "/ip4/45.0.0.1/udp/1/quic-v1", "firewall"},
		{"announced in vain", Diagnosis{Status{Reachability: Public, Announced: both[:1], Refused: both[:1]}, both, 1, []Contact{member}}, true, "announced address /ip4/0.0.0.0/udp", "forward"},
		{"announced in part", Diagnosis{Status{Reachability: Public, Announced: both, Refused: both[:1]}, both, 1, []Contact{member}}, false, "announced address", "network.announce"},
		{"packets lost", Diagnosis{Status{Reachability: Public}, both, 1, []Contact{{Site: "hill", Member: true, Clock: true, Stuck: true}}}, false, "from hill are lost", "MTU"},
		{"one clock off", Diagnosis{Status{Reachability: Public}, both, 1, []Contact{member, member, clock(-time.Hour)}}, false, "clocks of 1 of 3 peers", "NTP"},
		{"own clock off", Diagnosis{Status{Reachability: Public}, both, 1, []Contact{clock(time.Hour), clock(time.Hour + time.Second), member}}, false, "this site is off by -1h0m", "NTP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.d.Problems()
			if tt.what == "" {
				if len(got) > 0 {
					t.Errorf("got %+v, want no problem", got)
				}
				return
			}
			if len(got) == 0 || got[0].Severe != tt.severe || !strings.Contains(got[0].What, tt.what) || !strings.Contains(got[0].Do, tt.do) {
				t.Errorf("got %+v, want first (severe %v) %q and to do %q", got, tt.severe, tt.what, tt.do)
			}
		})
	}
}

func TestReachabilityFollowsFromWhatIsKnown(t *testing.T) {
	one, two := addrs("/ip4/45.0.0.1/tcp/1"), addrs("/ip4/45.0.0.1/tcp/2")
	seen := func(nat, came bool) map[string]sight { return map[string]sight{"p": {one[0], nat, came}} }
	type checked = event.EvtHostReachableAddrsChanged
	for _, tt := range []struct {
		name string
		s    *Service
		want Reachability
	}{
		{"nothing", &Service{}, Unknown},
		{"the owner says so", &Service{announced: one, seen: seen(true, false)}, Public},
		{"one address works", &Service{checked: checked{Reachable: one, Unreachable: two}, seen: seen(true, false)}, Public},
		{"none works", &Service{checked: checked{Unreachable: one}, seen: seen(false, true)}, Private},
		{"one is not tried yet", &Service{checked: checked{Unreachable: one, Unknown: two}, seen: seen(false, false)}, Unknown},
		{"not tried, but somebody came", &Service{checked: checked{Unknown: one}, seen: seen(false, true)}, Public},
		{"behind a NAT", &Service{seen: seen(true, false)}, Private},
		{"no NAT, no public address", &Service{seen: seen(false, false)}, Local},
	} {
		if got := tt.s.judge(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestBytesKeepTheirPace(t *testing.T) {
	p, now := pace{rate: 1000}, time.Unix(0, 0)
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		if got := p.next(now, 500); got != want {
			t.Errorf("read %d waits %v, want %v", i, got, want)
		}
	}
	if got := p.next(now.Add(time.Hour), 500); got != 500*time.Millisecond {
		t.Errorf("after a rest a read waits %v, want its own half second", got)
	}
	if got := (&pace{}).next(now, 1<<40); got != 0 {
		t.Errorf("without a bound a read waits %v", got)
	}
}

func TestBestAddressesComeFirst(t *testing.T) {
	list := addrs("/ip4/127.0.0.1/tcp/1", "/ip4/10.0.0.1/tcp/1", "/ip4/45.0.0.9/tcp/1/p2p/"+another+"/p2p-circuit", "/ip4/45.0.0.1/tcp/1", "/dns/example.org/tcp/1")
	Order(list)
	want := "/dns/example.org/tcp/1 /ip4/45.0.0.1/tcp/1 /ip4/45.0.0.9/tcp/1/p2p/" + another + "/p2p-circuit /ip4/10.0.0.1/tcp/1 /ip4/127.0.0.1/tcp/1"
	if got := texts(list); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
