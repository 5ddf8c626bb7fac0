package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/guest"
)

// TestRefusalSaysHowManyAreLent: who asks for more processors than the owner's rules ever lend it
// is told how many they lend, so that it can ask for less, as is who has some of them already.
func TestRefusalSaysHowManyAreLent(t *testing.T) {
	everyone := guest.Partner{Scope: guest.Everyone}
	for _, tt := range []struct {
		name       string
		rules      []guest.Rule
		processors int64
		why        lease.Reason
		lends      int64
	}{
		{"not at all", nil, 4, lease.Denied, 0},
		{"too many", []guest.Rule{{Partner: everyone, Processors: 3}}, 4, lease.TooWide, 3},
		{"too many leases", []guest.Rule{{Partner: everyone, Processors: 3}, {Partner: everyone, Lent: 2}}, 4, lease.TooWide, 2},
		{"a share", []guest.Rule{{Partner: everyone, Share: 500}}, 4, lease.TooWide, 2},
		{"none", []guest.Rule{{Partner: everyone, Lent: guest.None}}, 1, lease.ByRule, 0},
		{"too long", []guest.Rule{{Partner: everyone, Processors: 3, Time: grid.Minute}}, 4, lease.ByRule, 0},
		{"others have some", []guest.Rule{{Partner: everyone, Processors: 3}}, 3, lease.ByRule, 3},
	} {
		b := newBench(t, func(c *Config) {
			together(c)
			c.Lease.Lend, c.Lease.Most, c.Guests.Rules = tt.rules != nil, 3, tt.rules
		})
		ask := func(from grid.SiteID, processors int64) *lease.Refuse {
			b.sends = nil
			b.step(&grid.Delivery{From: from, Message: &lease.Request{Number: 5, Processors: processors, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: from}})
			for _, s := range b.sends {
				if m, is := s.Message.(*lease.Refuse); is && s.To == from {
					return m
				}
			}
			return nil
		}
		if tt.processors == 3 {
			if m := ask("others", 1); m != nil {
				t.Fatalf("%s: others get none: %+v", tt.name, m)
			}
		}
		if m := ask("there", tt.processors); m == nil || m.Reason != tt.why || m.Lends != tt.lends || tt.lends > 0 && m.Free > tt.lends {
			t.Errorf("%s: %+v, want reason %q and that it lends %d", tt.name, m, tt.why, tt.lends)
		}
	}
}
