package owner

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/member"
)

// TestRenewalsSee: a certificate that is renewed too late, or for what it does not say, is seen.
func TestRenewalsSee(t *testing.T) {
	const local = grid.Hour
	for _, tt := range []struct {
		name   string
		spoils func(before, m *member.Member)
		want   string // in the violation; empty: there is none
	}{
		{"as it should be", func(_, _ *member.Member) {}, ""},
		{"in the last moment", func(before, _ *member.Member) { before.Expires = local + 1 }, ""},
		{"too late", func(before, _ *member.Member) { before.Expires = local }, "has ended at"},
		{"under another name", func(_, m *member.Member) { m.Name = "candidate-2" }, "as candidate-2"},
		{"of another organisation", func(_, m *member.Member) { m.Org = "others" }, "of others"},
		{"with more rights", func(_, m *member.Member) { m.Rights |= member.MayBank }, "which may"},
		{"with another lot", func(_, m *member.Member) { m.Serial[len(m.Serial)-1]++ }, "lots"},
		{"for longer", func(_, m *member.Member) { m.Expires++ }, "was to do so for"},
		{"for less", func(_, m *member.Member) { m.Expires -= grid.Second }, "was to do so for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := member.Member{Name: "candidate-1", Org: "strangers", Rights: member.Usual, Expires: local + grid.Second}
			m := first
			m.Expires = local + grid.Minute
			c := &candidate{first: &first, latest: &first, valid: grid.Minute}
			tt.spoils(&first, &m)
			err := c.mayBe(local)
			if c.latest = &m; err == nil {
				err = c.differs(local)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestRenewalsSeeRefusals: a member that is refused is seen; one that has not shown what it was given,
// has too many certificates, or may be one by a clock that was set, may be.
func TestRenewalsSeeRefusals(t *testing.T) {
	const local = grid.Hour
	ends := make([]grid.Time, renewalsMost)
	for i := range ends {
		ends[i] = local - renewalsLate + 1
	}
	for _, tt := range []struct {
		name string
		c    candidate
		set  bool
		seen bool
	}{
		{"it is a member", candidate{met: true, ends: ends[1:]}, false, true},
		{"it was not met", candidate{ends: ends[1:]}, false, false},
		{"it has too many", candidate{met: true, ends: ends}, false, false},
		{"some of them ended long ago", candidate{met: true, ends: append([]grid.Time{local - renewalsLate}, ends[1:]...)}, false, true},
		{"the clock was set", candidate{met: true, ends: ends[1:]}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &Renewals{Sight: Sight{Set: func(int) bool { return tt.set }}}
			tt.c.latest = &member.Member{Expires: local + 1}
			if err := w.refused(&tt.c, local, errors.New("no")); (err != nil) != tt.seen {
				t.Errorf("%v, want a violation: %t", err, tt.seen)
			}
		})
	}
}

// TestStrangersDiffer: no two have one key, of whatever kind they are.
func TestStrangersDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, of := range []string{"stranger", "namesake", "candidate"} {
		for number := range uint64(100) {
			s := newStranger(of, 7, number)
			if seen[string(s.key)] || len(s.key) != ed25519.PublicKeySize || s.id == "" {
				t.Fatalf("%s %d is %s", of, number, s.id)
			}
			seen[string(s.key)] = true
		}
	}
}
