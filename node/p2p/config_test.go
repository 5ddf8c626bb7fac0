package p2p

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"

	"gridnode/grid"
)

func (c *Config) addr(text string) multiaddr.Multiaddr { return multiaddr.StringCast(text) }

func TestBadConfigurationNamesTheValue(t *testing.T) {
	const id = "/p2p/12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp"
	for _, tt := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"no listen address", "no address to listen on", func(c *Config) { c.Listen = nil }},
		{"not an address", `"127.0.0.1"`, func(c *Config) { c.Listen = []string{"127.0.0.1"} }},
		{"UDP", "quic-v1", func(c *Config) { c.Listen = []string{"/ip4/127.0.0.1/udp/1"} }},
		{"name to listen on", "a name is no address", func(c *Config) { c.Listen = []string{"/dns4/localhost/tcp/1"} }},
		{"list to join", "/dnsaddr", func(c *Config) { c.Join = []string{"/dnsaddr/localhost" + id} }},
		{"announced port", `port "0"`, func(c *Config) { c.Reach.Announce = []string{"example.org:0"} }},
		{"join without ID", "/p2p/ID", func(c *Config) { c.Join = []string{"/ip4/127.0.0.1/tcp/1"} }},
		{"join with half an ID", `"/ip4/127.0.0.1/tcp/1/p2p/12D3"`, func(c *Config) { c.Join = []string{"/ip4/127.0.0.1/tcp/1/p2p/12D3"} }},
		{"federation", `"Our Federation"`, func(c *Config) { c.Federation = "Our Federation" }},
		{"no federation", `""`, func(c *Config) { c.Federation = "" }},
		{"small buckets", "buckets of 10", func(c *Config) { c.BucketSize = bucketMin - 1 }},
		{"no key", "key", func(c *Config) { c.Key = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, cfg := config(t, 1, nil)
			tt.change(&cfg)
			_, err := Start(cfg)
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ErrConfig about %s", err, tt.want)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	first, cfg := config(t, 1, nil)
	start(t, first, cfg)
	defer first.Close()
	taken := first.host.Network().ListenAddresses()[0].String()
	second, cfg := config(t, 2, nil)
	cfg.Listen = append(cfg.Listen, taken) // the first address is free: one failure is enough
	_, err := Start(cfg)
	if !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), taken) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want ErrListen that names %s", err, taken)
	}
	_ = second
}

func TestTCPEndsWithoutLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a, cfg := config(t, 1, nil)
	cfg.Profile = ProfileNode
	start(t, a, cfg)
	defer a.Close()
	b, cfg := config(t, 2, nil)
	cfg.Profile = ProfileNode
	cfg.Join = a.Addrs()
	start(t, b, cfg)
	defer b.Close()
	<-b.joined
	b.Send(a.Self(), &note{1, "hello"}, 0)
	a.await(func(in []grid.Input) bool { return len(texts(in)) == 1 })
	a.Send(b.Self(), &note{3, "hello"}, 0)
	b.await(func(in []grid.Input) bool { return len(texts(in)) == 1 })
	peers := a.Peers(t.Context())
	if len(peers) != 1 || peers[0].Site != b.Self() || !peers[0].Inbound || peers[0].Latency <= 0 || peers[0].Agent != "gridnode/test" || !peers[0].Member {
		t.Errorf("peers %+v", peers)
	}
	if len(a.Addrs()) != 1 || !strings.HasSuffix(a.Addrs()[0], "/p2p/"+string(a.Self())) {
		t.Errorf("addresses %v", a.Addrs())
	}
}

func TestPeersOfTheLastRunAreEnoughToJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		file := filepath.Join(t.TempDir(), "peers")
		if err := os.WriteFile(file, []byte("not an address\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		nodes := fleet(t, memory, 3)
		defer closeAll(nodes)
		n, cfg := config(t, 9, memory)
		cfg.Remember, cfg.Join = file, nodes[0].Addrs()
		start(t, n, cfg)
		time.Sleep(time.Second) // identification goes on after the join
		n.Close()
		nodes[0].Close() // the one it was told to join through is gone
		cfg.Join = nil
		start(t, n, cfg)
		defer n.Close()
		time.Sleep(time.Second)
		if size := n.router.RoutingTable().Size(); size < 2 {
			t.Errorf("knows %d nodes after a restart, want 2", size)
		}
	})
}

func TestOtherFederationIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		nodes := fleet(t, memory, 1)
		defer closeAll(nodes)
		n, cfg := config(t, 9, memory)
		cfg.Federation, cfg.Join = "another", nodes[0].Addrs()
		start(t, n, cfg)
		defer n.Close()
		<-n.joined
		time.Sleep(time.Second)
		if a, b := n.router.RoutingTable().Size(), nodes[0].router.RoutingTable().Size(); a+b != 0 {
			t.Errorf("routing tables of two federations hold %d and %d peers of each other", a, b)
		}
		if p := n.Peers(t.Context()); len(p) != 1 || p[0].Member {
			t.Errorf("peers %+v, want one that is no member", p)
		}
	})
}
