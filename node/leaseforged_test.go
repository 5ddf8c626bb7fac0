package node

import (
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// TestForgedLeaseMessages: what a third member of the federation says of a lease of two
// others, and what anybody says that is out of bounds, changes nothing on either side.
func TestForgedLeaseMessages(t *testing.T) {
	t.Parallel()
	memory := &p2p.Memory{}
	bc, lc, xc := realConfig(t, 1, memory), realConfig(t, 2, memory), realConfig(t, 3, memory)
	bc.Site.Lease, lc.Site.Lease = site.LeaseConfig{Term: grid.Hour}, site.LeaseConfig{Lend: true, Term: grid.Hour} // no renewal changes anything meanwhile
	lender := realHost(t, lc)
	bc.Join, xc.Join = lender.Addrs(), lender.Addrs()
	borrower, other := realHost(t, bc), realHost(t, xc)
	a := borrowFrom(t, borrower, lender, 1, grid.Hour)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	l := a.Lease
	state := func() string {
		return fmt.Sprint(leasesOf(t, borrower), leasesOf(t, lender), linksOf(t, borrower), linksOf(t, lender))
	}
	before := state()
	path := []grid.SiteID{other.ID()}
	forged := []grid.Message{
		&lease.Release{Number: l.Number, Epoch: l.Epoch}, &lease.Released{Number: l.Number, Epoch: l.Epoch, Cause: lease.Revoked},
		&lease.Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 99, Span: 2 * grid.Hour}, &lease.Claim{Number: l.Number, Epoch: l.Epoch, Sequence: 1},
		&lease.Revoke{Number: l.Number, Epoch: l.Epoch}, &lease.Refuse{Number: l.Number, Reason: lease.Busy},
		&lease.Renewed{Number: l.Number, Epoch: l.Epoch, Sequence: 1, Term: grid.Hour, Limit: grid.Hour},
		&lease.Grant{Number: l.Number, Epoch: l.Epoch, Hold: 1, Span: 1, Source: other.ID(), Key: 1, Hops: 1},
		&lease.Join{Number: 1}, &lease.Join{Answer: lease.AnswerNo, Reason: lease.Parted}, &lease.Family{Number: 1, Path: path, Siblings: []grid.SiteID{"z"}},
	}
	for _, m := range forged {
		other.net.Send(lender.ID(), m, 0)
		other.net.Send(borrower.ID(), m, 0)
	}
	// Requests out of bounds do not even get past the decoder, from whomever they are.
	// Each ends the stream it comes over, so that the next may have to be sent again.
	bad := []*lease.Request{
		{Processors: 0, Span: grid.Hour}, {Processors: -1, Span: grid.Hour}, {Processors: lease.ProcessorsMax + 1, Span: grid.Hour},
		{Processors: 1, Span: 0}, {Processors: 1, Span: -1}, {Processors: 1, Span: lease.SpanLimit + 1},
	}
	for i, m := range bad {
		m.Number, m.Subject, m.Sink = uint64(100+i), grid.JobID{Lo: 1}, other.ID()
		malformed := lender.net.Counter().Malformed
		until(t, fmt.Sprintf("the lender has seen through request %d", i), func() bool {
			other.net.Send(lender.ID(), m, 0)
			return lender.net.Counter().Malformed > malformed
		})
	}
	// Whatever is sent in order has been dealt with when an answer to the last comes.
	for _, h := range []*Host{lender, borrower} {
		if a := borrowFrom(t, other, h, 1<<20, grid.Hour); a.Err == nil {
			t.Error("an absurd request was granted")
		}
	}
	if after := state(); after != before {
		t.Errorf("forged messages have changed\n%s to\n%s", before, after)
	}
}

func linksOf(t *testing.T, h *Host) (links []lease.Kin) {
	t.Helper()
	if err := h.Do(t.Context(), func(s *site.Site) { links = s.Links() }); err != nil {
		t.Fatal(err)
	}
	return links
}
