package owner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridnode/node/member"
)

// TestNamesakesAreJudged: who is let in, or kept out, by mistake is seen.
func TestNamesakesAreJudged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      bool
		refusal error
		want    string // in the violation; empty: there is none
	}{
		{"it has the name", true, nil, ""},
		{"another one has it", false, fmt.Errorf("namesake-1: %w", member.ErrName), ""},
		{"the name is free", true, member.ErrName, "nobody else is called namesake-1 any more"},
		{"both have it", false, nil, "which is the name of a member"},
		{"it is revoked", false, member.ErrRevoked, "for another reason"},
		{"it has the name, and is revoked", true, errors.New("no"), "it is not let in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &showing{Member: &member.Member{Name: "namesake-1"}, in: tt.in}
			err := s.judge(tt.refusal)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
