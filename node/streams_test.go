package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	relay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/member"
	"gridnode/node/p2p"
	"gridnode/node/reach"
	"gridnode/node/run"
	"gridnode/node/visit"
	"gridnode/node/witness"
)

// trustPage is where the manual says who may open streams.
const trustPage = "../docs/trust.md"

// greeters are the columns of the table there, after the protocols.
var greeters = []string{"stranger", "expired", "revoked", "member"}

// streamRules reads the table: to whom a stream of each protocol is open.
func streamRules(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile(trustPage)
	if err != nil {
		t.Fatal(err)
	}
	header := "| stream | " + strings.Join(greeters, " | ") + " |"
	_, table, found := strings.Cut(string(text), header)
	if !found {
		t.Fatalf("%s has no table %q", trustPage, header)
	}
	rules := map[string]map[string]bool{}
	_, table, _ = strings.Cut(table, "\n") // what is said of members in words
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < len(greeters)+3 {
			break
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			id := strings.ReplaceAll(strings.Trim(strings.TrimSpace(name), "`"), "FEDERATION", "test")
			if strings.HasPrefix(id, "-") {
				continue // the rule below the header
			}
			if rules[id] != nil {
				t.Errorf("%s has %s twice", trustPage, id)
			}
			rules[id] = map[string]bool{}
			for i, who := range greeters {
				switch said := strings.TrimSpace(cells[i+2]); said {
				case "yes", "no":
					rules[id][who] = said == "yes"
				default:
					t.Fatalf("%s: %q", trustPage, line)
				}
			}
		}
	}
	return rules
}

// greetingProtocol is p2p's, in which proofs are shown.
const greetingProtocol = "/gridnode/greeting/1"

// idle is an engine that nothing is asked of.
type idle struct{ run.Engine }

func (idle) Traits() run.Traits                         { return run.Traits{} }
func (idle) Recover() ([]run.Found, []run.Ended, error) { return nil, nil, nil }
func (idle) Close() error                               { return nil }

// visitor is a node that is no gridnode: it knows no members, and shows whatever proof it
// has.
type visitor struct {
	*p2p.Network
	proof member.Proof // empty: it shows none
}

// ask opens a stream of a protocol to a site, having shown the proof, and reports whether it
// has come there, whatever was made of it.
func (v *visitor) ask(t *testing.T, to *Host, id string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if len(v.proof) > 0 && id != greetingProtocol {
		if s, err := v.Open(ctx, to.ID(), greetingProtocol); err == nil {
			_ = wire.WriteFrame(s, v.proof)
			_, _ = io.ReadAll(s)
			s.Reset()
		}
	}
	s, err := v.Open(ctx, to.ID(), id)
	if err != nil {
		return errors.Is(err, network.ErrReset)
	}
	defer s.Reset()
	_, _ = s.Write([]byte("hello"))
	_, _ = io.ReadAll(s)
	return true
}

// TestWhoMayOpenStreams: streams of every protocol that a site serves are open to whom the
// manual says, and to nobody else. The peers are not held back by a gate of their own.
func TestWhoMayOpenStreams(t *testing.T) {
	rules := streamRules(t)
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		cfg := hostConfig(1, t.TempDir(), memory, nil)
		cfg.Executor = nil // so that it has all that real sites have
		cfg.Engine = func(context.Context, run.Setup) (run.Engine, error) { return idle{}, nil }
		cfg.Listen = []string{"/ip4/10.0.0.1/tcp/0"}
		cfg.Reach = reach.Config{Probe: true, Relay: reach.RelayOffer}
		cfg.Member = founded(t, 200, cfg.Key, "alpha")
		alpha := startHost(t, cfg)
		defer closeHost(t, alpha)
		VisitsOf(alpha).Handle(func(grid.SiteID, string, string) (*visit.Ticket, error) { return nil, ErrRefused })

		standings, shown := append([]string{"silent"}, greeters...), map[string]string{"silent": "stranger"}
		spans := map[string]grid.Time{"expired": grid.Minute, "revoked": grid.Day, "member": grid.Day}
		visitors := map[string]*visitor{}
		names := map[grid.SiteID]string{}
		for i, standing := range standings {
			key := testKey(byte(2 + i))
			v := &visitor{}
			switch standing {
			case "silent":
			case "stranger":
				v.proof = founded(t, 201, key, standing).Proof // of its own root
			default:
				token, err := alpha.Invite(t.Context(), Invitation{Rights: member.Usual, Expires: grid.Hour, Valid: spans[standing]})
				if err != nil {
					t.Fatal(err)
				}
				if v.proof, err = applyTo(alpha, token, key, standing); err != nil {
					t.Fatal(err)
				}
			}
			visitors[standing], names[idOf(key)] = v, standing
		}
		if _, err := alpha.Revoke(t.Context(), "revoked"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		connect := func(standing string) {
			var err error
			visitors[standing].Network, err = p2p.Start(p2p.Config{
				Key: testKey(byte(2 + slices.Index(standings, standing))), Federation: "test", Listen: []string{"/ip4/10.0.0.1/tcp/0"}, Join: alpha.Addrs(), Memory: memory,
				Profile: p2p.ProfileFleet, Agent: "gridnode/test", Deliver: func(*grid.Delivery) bool { return true }, Report: func(grid.Input) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // until it has tried the address
		}
		for _, standing := range standings {
			connect(standing)
			defer func() { visitors[standing].Close() }()
		}

		// In place of what is served there are probes: the greeting's comes last, as without it
		// nobody is a member.
		var mu sync.Mutex
		served := map[string]bool{} // protocol and standing
		probe := func(id string) {
			alpha.net.Handle(id, func(from grid.SiteID, _ network.Stream) error {
				mu.Lock()
				defer mu.Unlock()
				served[id+" "+names[from]] = true
				return nil
			})
		}
		protocols := p2p.Protocols(alpha.net)
		// What a site serves only once it knows how it is reached, or with a network outside.
		protocols = append(protocols, witness.AskProtocol, witness.TellProtocol, relay.ProtoIDv2Hop, string(holepunch.Protocol))
		slices.Sort(protocols)
		protocols = append(slices.DeleteFunc(slices.Compact(protocols), func(id string) bool { return id == greetingProtocol }), greetingProtocol)
		for _, id := range protocols {
			rule, listed := rules[id]
			delete(rules, id)
			if !listed {
				t.Errorf("%s does not say who may open %s", trustPage, id)
				continue
			}
			probe(id)
			for _, standing := range standings {
				want := rule[cmp.Or(shown[standing], standing)]
				asked, got := false, false
				for range 5 {
					asked = visitors[standing].ask(t, alpha, id) || asked
					mu.Lock()
					got = served[id+" "+standing]
					mu.Unlock()
					if got || asked && !want {
						break
					}
					visitors[standing].Close() // the connection has ended just then, or it has forgotten the address
					connect(standing)
				}
				if !asked {
					t.Errorf("a site that is %s could not ask for %s", standing, id)
				}
				if got != want {
					t.Errorf("%s is open to a site that is %s: %v, the manual says %v", id, standing, got, want)
				}
			}
		}
		for id := range rules {
			t.Errorf("%s says who may open %s, which nobody serves", trustPage, id)
		}
		t.Logf("%d protocols", len(protocols))
	})
}
