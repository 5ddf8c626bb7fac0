package owner

import (
	"fmt"

	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// Sight is what watchers see of a run.
type Sight struct {
	N       *testnet.Network
	Checks  *testnet.Checker
	Certain bool // no message gets lost, other than where the network is cut

	// Whole reports whether a site has been up for a span, and a member, the network whole, and its
	// clock never set.
	Whole func(now grid.Time, at int, span grid.Time) bool

	Set func(at int) bool // a site's clock was
}

// all reports whether all sites have been whole for a span.
func (s *Sight) all(now, span grid.Time) bool {
	for at := range s.N.Len() {
		if !s.Whole(now, at, span) {
			return false
		}
	}
	return true
}

// local returns what a site's clock shows.
func (s *Sight) local(at int) grid.Time { return s.N.Clock(at).Local(s.N.Now()) }

// excluded reports whether a site knows that it is revoked itself, or is down.
func (s *Sight) excluded(at int) bool {
	site, up := scenario.SiteAt(s.N, at)
	return !up || site.Roll().Excluded()
}

// tokens is where the tokens of what owners say begin: no submission and no wish has one of them.
const tokens = 1 << 61

// Each has so many.
const (
	dataTokens = tokens + iota<<40
	guestTokens
	nameTokens
	invitationTokens
	namesakeTokens
	renewalTokens
)

// part takes a choice among so many from a number, and leaves the rest of it.
func part(which *uint64, of uint64) uint64 {
	choice := *which % of
	*which /= of
	return choice
}

// bytesOf returns bytes that follow from a number.
func bytesOf(dst []byte, of string, number uint64) {
	for i := range dst {
		number = draw.Mix(number+uint64(i), draw.Text(of))
		dst[i] = byte(number >> 32)
	}
}

// numbered names one of several.
func numbered(of string, number uint64) string { return fmt.Sprintf("%s-%d", of, number+1) }
