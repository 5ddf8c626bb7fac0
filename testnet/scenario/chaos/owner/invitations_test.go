package owner

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/testnet"
)

// TestInvitationsSee: whoever is certified, or refused, by mistake is seen.
func TestInvitationsSee(t *testing.T) {
	const expires, local = grid.Hour, grid.Minute
	says := member.Member{Name: "stranger-1", Rights: member.Usual, Expires: local + grid.Hour}
	for _, tt := range []struct {
		name   string
		spoils func(i *invitation, a *application, says *member.Member)
		want   string // in the violation; empty: there is none
	}{
		{"as it should be", func(*invitation, *application, *member.Member) {}, ""},
		{"without the secret", func(_ *invitation, a *application, _ *member.Member) { a.right = false }, "does not have the secret"},
		{"without an invitation", func(_ *invitation, a *application, _ *member.Member) { a.of = nil }, "does not have the secret"},
		{"too late", func(i *invitation, _ *application, _ *member.Member) { i.Expires = local }, "has expired"},
		{"after another", func(i *invitation, _ *application, _ *member.Member) { i.given, i.to = []byte("a"), 1 }, "was used by"},
		{"with another certificate", func(i *invitation, _ *application, _ *member.Member) { i.given = []byte("b") }, "had another"},
		{"under another name", func(i *invitation, _ *application, _ *member.Member) { i.Name = "invited-1" }, "and was to be invited-1"},
		{"with more rights", func(_ *invitation, _ *application, m *member.Member) { m.Rights |= member.MayBank }, "and was to be"},
		{"for longer", func(i *invitation, _ *application, _ *member.Member) { i.Valid = grid.Minute }, "was to do so for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := says
			i := &invitation{Invitation: member.Invitation{Expires: expires, Valid: grid.Hour, Rights: member.Usual}, asked: 1, by: map[int]bool{0: true}}
			a := &application{of: i, name: "stranger-1", right: true}
			tt.spoils(i, a, &m)
			w := &Invitations{strangers: make([]stranger, strangers), check: func(int, []byte, grid.SiteID, grid.Time) (*member.Member, error) { return &m, nil }}
			err := w.certified(local, 0, a, []byte("a"))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestRefusalsAreSeen: an invitation that was confirmed, and is not honoured, is seen; one that
// another may have used, or that has expired, need not be.
func TestRefusalsAreSeen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spoils func(i *invitation)
		seen   bool
	}{
		{"it is good", func(*invitation) {}, true},
		{"it was given before", func(i *invitation) { i.given, i.by = []byte("a"), map[int]bool{0: true, 1: true} }, true},
		{"it was not confirmed", func(i *invitation) { i.confirmed = false }, false},
		{"it has expired", func(i *invitation) { i.Expires = grid.Minute }, false},
		{"another may have used it", func(i *invitation) { i.by[1] = true }, false},
		{"another has used it", func(i *invitation) { i.given, i.to = []byte("a"), 1 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := lonely(t)
			c := testnet.Check(n, []int64{1}, nil)
			i := &invitation{Invitation: member.Invitation{Expires: grid.Hour, Hash: sha256.Sum256(nil)}, confirmed: true, by: map[int]bool{0: true}}
			tt.spoils(i)
			w := &Invitations{Sight: Sight{N: n, Checks: c, Set: func(int) bool { return false }}, strangers: make([]stranger, strangers)}
			w.refused(grid.Minute, 0, &application{of: i, right: true}, errors.New("no"))
			if err := c.Violation(0); (err != nil) != tt.seen {
				t.Errorf("%v, want a violation: %t", err, tt.seen)
			}
		})
	}
}

// lonely returns a network of one site that does nothing.
func lonely(t *testing.T) *testnet.Network {
	t.Helper()
	n, err := testnet.New(testnet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Add(testnet.Member{ID: "a", New: func(int) (testnet.Site, error) { return quiet{}, nil }}); err != nil {
		t.Fatal(err)
	}
	return n
}

// quiet is a site that does nothing.
type quiet struct{}

func (quiet) Step(grid.Time, grid.Input, *grid.Outbox) {}
func (quiet) NextTimer() grid.Time                     { return grid.Never }
