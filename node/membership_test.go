package node

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// ours returns a card of the federation that all hosts of tests are members of.
func ours(key crypto.PrivKey, name string) *Card {
	now := time.Now()
	rootKey, err := ed25519Of(testKey(255))
	if err != nil {
		panic(err)
	}
	// Of one year, so that all hosts of a test know the same root, in a bubble and outside.
	begin := grid.Time(time.Date(now.Year()-1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	home, err := member.NewHousehold(mathrand.NewChaCha8([32]byte{1}), rootKey, "test", begin, 10*365*grid.Day)
	if err != nil {
		panic(err)
	}
	public, err := key.GetPublic().Raw()
	if err != nil {
		panic(err)
	}
	proof, err := home.Admit(public, name, "", member.All)
	if err != nil {
		panic(err)
	}
	return &Card{home.Federation, proof}
}

// founded returns a federation of one root, and a card of the site with that key.
func founded(t *testing.T, root byte, key crypto.PrivKey, name string) *Card {
	t.Helper()
	rootKey, err := ed25519Of(testKey(root))
	if err != nil {
		t.Fatal(err)
	}
	r, err := member.NewRoot(rand.Reader, rootKey, "test", 1, grid.Time(time.Now().UnixMicro()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := member.NewFederation([]*x509.Certificate{r.Certificate})
	if err != nil {
		t.Fatal(err)
	}
	return &Card{f, member.Proof(certifiedBy(t, &r.Issuer, key, name, member.All))}
}

func certifiedBy(t *testing.T, i *member.Issuer, key crypto.PrivKey, name string, rights member.Rights) []byte {
	t.Helper()
	raw, err := key.GetPublic().Raw()
	if err != nil {
		t.Fatal(err)
	}
	now := grid.Time(time.Now().UnixMicro())
	der, err := i.Issue(rand.Reader, member.Grant{Key: raw, Name: name, Rights: rights, From: now, Expires: now + 90*grid.Day})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// invited starts a host that an inviter has let in.
func invited(t *testing.T, by *Host, cfg HostConfig, what Invitation) *Host {
	t.Helper()
	token, err := by.Invite(t.Context(), what)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := applyTo(by, token, cfg.Key, cfg.Site.Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Member = &Card{by.Membership().Federation, proof}
	cfg.Join = by.Addrs()
	return startHost(t, cfg)
}

// applyTo is Apply, without a network: it serves the application as the protocol does.
func applyTo(by *Host, token *member.Token, key crypto.PrivKey, name string) (member.Proof, error) {
	raw, err := key.GetPublic().Raw()
	if err != nil {
		return nil, err
	}
	site := idOf(key)
	der, err := by.member.certify(&member.Application{ID: token.ID, Secret: token.Secret, Name: name, Site: site, Key: raw})
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(der), by.member.card.Load().Proof...), nil
}

var usual = Invitation{Rights: member.Usual, Expires: grid.Day, Valid: 30 * grid.Day}

// membersOf returns the names that a host's roll has.
func membersOf(t *testing.T, h *Host) (names []string) {
	t.Helper()
	if err := h.Do(t.Context(), func(s *site.Site) {
		for _, m := range s.Roll().Members() {
			names = append(names, m.Name)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestInvitedSitesTradeUntilRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		first := hostConfig(1, "", memory, &timers{})
		first.Site.Name = "alpha"
		first.Site.Price = 3 * grid.Credit
		first.Member = founded(t, 200, first.Key, "alpha")
		alpha := startHost(t, first)
		defer closeHost(t, alpha)
		var others []*Host
		for i, name := range []string{"beta", "gamma"} {
			cfg := hostConfig(byte(2+i), "", memory, &timers{})
			cfg.Site.Name, cfg.Site.Price = name, grid.Price(i+1)*grid.Credit
			h := invited(t, alpha, cfg, usual)
			defer closeHost(t, h)
			others = append(others, h)
		}
		beta, gamma := others[0], others[1]

		// A stranger that asks less than anybody knows the addresses of all.
		cfg := hostConfig(9, "", memory, &timers{})
		cfg.Site.Price = grid.Credit / 100
		cfg.Member = founded(t, 201, cfg.Key, "beta") // of its own root
		for _, h := range []*Host{alpha, beta, gamma} {
			cfg.Join = append(cfg.Join, h.Addrs()...)
		}
		stranger := startHost(t, cfg)
		defer closeHost(t, stranger)

		time.Sleep(15 * time.Second)
		runsAt := func(number uint64, want *Host) {
			t.Helper()
			job := testJob(alpha, number, 10*grid.Second)
			job.Goal = grid.GoalCost
			if _, err := submitTo(alpha, job); err != nil {
				t.Fatal(err)
			}
			if v := awaitState(t, alpha, job.ID, site.Done); v.Site != want.ID() {
				t.Errorf("job %d ran at %s, want %s: %+v", number, v.Site, want.ID(), v.Verdicts)
			}
		}
		runsAt(1, beta)
		if names := membersOf(t, alpha); !slices.Equal(names, []string{"beta", "gamma"}) {
			t.Errorf("alpha knows %q", names)
		}

		// gamma has not certified beta, and may not take it back.
		if _, err := gamma.Revoke(t.Context(), "beta"); !errors.Is(err, ErrRefused) {
			t.Errorf("gamma revokes: %v", err)
		}
		if _, err := gamma.Invite(t.Context(), usual); !errors.Is(err, ErrRefused) {
			t.Errorf("gamma invites: %v", err)
		}
		if _, err := alpha.Revoke(t.Context(), "delta"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no member") {
			t.Errorf("delta: %v", err)
		}
		if id, err := alpha.Revoke(t.Context(), "beta"); err != nil || id != beta.ID() {
			t.Fatalf("alpha revokes beta: %s, %v", id, err)
		}
		time.Sleep(10 * time.Second)
		for _, h := range []*Host{alpha, gamma} {
			if names := membersOf(t, h); slices.Contains(names, "beta") {
				t.Errorf("%s knows %q after beta was revoked", h.ID(), names)
			}
		}
		time.Sleep(time.Minute)
		runsAt(2, gamma)
	})
}

// TestStrangersAreDisconnected: of sites that are connected, only those stay that are
// members. Which streams the others may open TestWhoMayOpenStreams says, and what members may
// send site.TestWhoIsHeard.
func TestStrangersAreDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		first := hostConfig(1, t.TempDir(), memory, &timers{})
		first.Member = founded(t, 200, first.Key, "alpha")
		alpha := startHost(t, first)
		defer closeHost(t, alpha)
		spans := map[string]grid.Time{"member": 30 * grid.Day, "expired": 4 * grid.Minute, "revoked": 30 * grid.Day}
		sites := map[string]*Host{}
		const probe = "/gridnode/test-probe/1"
		var mu sync.Mutex
		var served []grid.SiteID
		alpha.net.Handle(probe, func(from grid.SiteID, s network.Stream) error {
			mu.Lock()
			defer mu.Unlock()
			served = append(served, from)
			return nil
		})
		for i, standing := range []string{"member", "expired", "revoked", "stranger"} {
			cfg := hostConfig(byte(2+i), t.TempDir(), memory, &timers{})
			cfg.Site.Name = standing
			if standing == "expired" { // it cannot keep a new certificate, so it stays with its old one
				cfg.Renewed = func(*Card) error { return errors.New("the disk is full") }
			}
			if standing == "stranger" {
				cfg.Member, cfg.Join = founded(t, 201, cfg.Key, standing), alpha.Addrs()
				sites[standing] = startHost(t, cfg)
			} else {
				sites[standing] = invited(t, alpha, cfg, Invitation{Rights: member.Usual, Expires: grid.Hour, Valid: spans[standing]})
			}
			defer closeHost(t, sites[standing])
		}
		time.Sleep(15 * time.Second)
		if names := membersOf(t, alpha); !slices.Equal(names, []string{"expired", "member", "revoked"}) {
			t.Fatalf("alpha has let in %q", names)
		}
		if _, err := alpha.Revoke(t.Context(), "revoked"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		mu.Lock()
		before := len(served)
		mu.Unlock()
		for _, h := range sites {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if s, err := h.net.Open(ctx, alpha.ID(), probe); err == nil {
				_, _ = s.Write([]byte("hello"))
				_, _ = io.ReadAll(s)
				s.Reset()
			}
			cancel()
		}
		mu.Lock()
		defer mu.Unlock()
		if got := served[before:]; !slices.Equal(got, []grid.SiteID{sites["member"].ID()}) {
			for standing, h := range sites {
				t.Logf("%s is %s", h.ID(), standing)
			}
			t.Errorf("alpha serves %v", got)
		}
	})
}

// TestOpenFederationRunsNoJobsOfOthers: nor does it lend, whatever its owner has said.
func TestOpenFederationRunsNoJobsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		var hosts []*Host
		for i := range 2 {
			cfg := hostConfig(byte(1+i), "", memory, &timers{})
			cfg.Member = nil
			cfg.Site.Lease.Lend = true
			if i > 0 {
				cfg.Join = hosts[0].Addrs()
			}
			hosts = append(hosts, startHost(t, cfg))
			defer closeHost(t, hosts[i])
		}
		time.Sleep(15 * time.Second)
		if names := quotesOf(t, hosts[0]); len(names) != 2 {
			t.Fatalf("the first sees %v", names)
		}
		job := testJob(hosts[0], 1, 10*grid.Second)
		job.Goal, job.Site = grid.GoalCost, hosts[1].ID()
		if _, err := submitTo(hosts[0], job); err != nil {
			t.Fatal(err)
		}
		awaitState(t, hosts[0], job.ID, site.Refused)
		answer, err := hosts[0].Ask(t.Context(), func(token uint64) grid.Input {
			return &site.RequestLease{Token: token, Lender: hosts[1].ID(), Processors: 1, Span: grid.Hour}
		})
		if err != nil || answer.(*site.LeaseAnswer).Err == nil {
			t.Errorf("a lease of a site in an open federation: %+v, %v", answer, err)
		}
	})
}

// quotesOf returns the sites that a host's directory lists.
func quotesOf(t *testing.T, h *Host) (sites []grid.SiteID) {
	t.Helper()
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input {
		return &site.FindQuotes{Token: token, Query: directory.Query{Limit: directory.LimitMax}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range answer.(*directory.Found).Quotes {
		sites = append(sites, q.Site)
	}
	return sites
}

func TestInvitationsAreUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &p2p.Memory{}
		home := t.TempDir()
		first := hostConfig(1, home, memory, &timers{})
		first.Member = founded(t, 200, first.Key, "alpha")
		alpha := startHost(t, first)
		beta, gamma := hostConfig(2, "", memory, &timers{}).Key, hostConfig(3, "", memory, &timers{}).Key
		if _, err := alpha.Invite(t.Context(), Invitation{Rights: member.All, Expires: grid.Hour, Valid: grid.Day}); !errors.Is(err, ErrRefused) {
			t.Errorf("alpha gives the right to invite: %v", err)
		}
		named, err := alpha.Invite(t.Context(), Invitation{Name: "beta", Rights: member.All &^ member.MayInvite, Expires: grid.Hour, Valid: grid.Day})
		if err != nil {
			t.Fatal(err)
		}
		wrong := *named
		wrong.Secret[0]++
		if _, err := applyTo(alpha, &wrong, beta, ""); !errors.Is(err, member.ErrInvitation) {
			t.Errorf("a wrong secret: %v", err)
		}
		given, err := applyTo(alpha, named, beta, "omega")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := alpha.member.card.Load().Federation.Verify(given, idOf(beta), alpha.Now()); err != nil || m.Name != "beta" || m.Rights != member.All&^member.MayInvite {
			t.Errorf("beta was made %+v, %v", m, err)
		}

		// What was promised is kept over a restart; asked again, it says the same.
		closeHost(t, alpha)
		alpha = startHost(t, first)
		defer func() { closeHost(t, alpha) }()
		again, err := applyTo(alpha, named, beta, "")
		if err != nil || !slices.Equal(again, given) {
			t.Errorf("beta asks again: %v", err)
		}
		if _, err := applyTo(alpha, named, gamma, "gamma"); !errors.Is(err, member.ErrInvitation) {
			t.Errorf("gamma uses beta's invitation: %v", err)
		}
		open, err := alpha.Invite(t.Context(), Invitation{Rights: member.Usual, Expires: grid.Hour, Valid: grid.Day})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := applyTo(alpha, open, gamma, "beta"); !errors.Is(err, member.ErrName) {
			t.Errorf("gamma calls itself beta: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := applyTo(alpha, open, gamma, "gamma"); !errors.Is(err, member.ErrInvitation) {
			t.Errorf("an invitation that has expired: %v", err)
		}
		if _, err := alpha.Revoke(t.Context(), "beta"); err != nil {
			t.Errorf("revoke beta, which was never met: %v", err)
		}
		closeHost(t, alpha)
		alpha = startHost(t, first)
		cfg := hostConfig(2, "", memory, &timers{})
		cfg.Member, cfg.Join = &Card{first.Member.Federation, given}, alpha.Addrs()
		late := startHost(t, cfg)
		defer closeHost(t, late)
		time.Sleep(time.Minute)
		if names := membersOf(t, alpha); len(names) > 0 {
			t.Errorf("a revoked site was let in after a restart: %q", names)
		}
	})
}

func TestCertificatesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		valid := 6 * grid.Hour
		if testing.Short() {
			valid = 30 * grid.Minute
		}
		memory := &p2p.Memory{}
		first := hostConfig(1, t.TempDir(), memory, &timers{})
		first.Member = founded(t, 200, first.Key, "alpha")
		alpha := startHost(t, first)
		defer func() { closeHost(t, alpha) }()
		if _, err := alpha.Renew(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("alpha, which a root has certified: %v", err)
		}
		cfg := hostConfig(2, "", memory, &timers{})
		cfg.Site.Name = "beta"
		var (
			mu   sync.Mutex
			kept []*Card
		)
		cfg.Renewed = func(c *Card) error {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, c)
			return nil
		}
		beta := invited(t, alpha, cfg, Invitation{Rights: member.Usual, Expires: grid.Hour, Valid: valid})
		defer closeHost(t, beta)
		old := *beta.Membership()
		time.Sleep((2 * valid).Duration())
		mu.Lock()
		renewed, newest := len(kept), *kept[len(kept)-1]
		mu.Unlock()
		if renewed < 2 || renewed > 3 {
			t.Errorf("renewed %d times in two lives of a certificate, want two to four times", renewed)
		}
		job := testJob(beta, 1, 10*grid.Second)
		job.Site, job.Goal = alpha.ID(), grid.GoalCost
		if _, err := submitTo(beta, job); err != nil {
			t.Fatal(err)
		}
		awaitState(t, beta, job.ID, site.Done)

		// All that it was given is taken back, also what it was given before.
		last := *beta.Membership()
		closeHost(t, alpha)
		alpha = startHost(t, first)
		if _, err := alpha.Revoke(t.Context(), "beta"); err != nil {
			t.Fatal(err)
		}
		for _, card := range []Card{old, newest, last} {
			m, err := card.Federation.Verify(card.Proof, beta.ID(), alpha.Now())
			if err != nil {
				continue // it has ended by itself
			}
			answer, err := alpha.Ask(t.Context(), func(token uint64) grid.Input { return &member.Introduce{Token: token, Member: m} })
			if err != nil || !errors.Is(answer.(*member.Introduced).Err, member.ErrRevoked) {
				t.Errorf("beta comes back with one of its certificates: %+v, %v", answer, err)
			}
		}
		if _, err := beta.Renew(t.Context()); err == nil {
			t.Error("a revoked site renews its certificate")
		}
	})
}

func TestApplyOverTheNetwork(t *testing.T) {
	first := hostConfig(1, "", nil, &timers{})
	first.Member = founded(t, 200, first.Key, "alpha")
	alpha := startHost(t, first)
	defer closeHost(t, alpha)
	token, err := alpha.Invite(t.Context(), usual)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := member.ParseToken(token.String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := hostConfig(2, "", nil, &timers{}).Key
	card, err := Apply(ctx, parsed, key, "beta")
	if err != nil {
		t.Fatal(err)
	}
	m, err := card.Federation.Verify(card.Proof, idOf(key), alpha.Now())
	if err != nil || m.Name != "beta" || m.Rights != member.Usual {
		t.Errorf("%+v, %v", m, err)
	}
	other := *parsed
	other.Fingerprint[0]++
	if _, err := Apply(ctx, &other, key, "beta"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "other roots") {
		t.Errorf("roots that the invitation does not name: %v", err)
	}
	if _, err := Apply(ctx, parsed, hostConfig(3, "", nil, &timers{}).Key, "gamma"); !errors.Is(err, ErrRefused) {
		t.Errorf("the invitation again: %v", err)
	}
}

func idOf(key crypto.PrivKey) grid.SiteID {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		panic(err)
	}
	return grid.SiteID(id.String())
}
