package site

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
	"gridnode/node/guest"
)

// TestUsersAreAnswered: a site that has no part for what its users ask says so.
func TestUsersAreAnswered(t *testing.T) {
	failed := func(of func(any) error, want error) func(any) bool {
		return func(answer any) bool { return answer != nil && errors.Is(of(answer), want) }
	}
	ofLease := func(a any) error { return a.(*LeaseAnswer).Err }
	ofGuests := func(a any) error { return a.(*GuestsChanged).Err }
	ofData := func(a any) error { return a.(*dataset.Held).Err }
	noBank := func(a any) bool {
		s, is := a.(*bank.Statement)
		return is && s.Refusal == bank.NoBank && s.Account == "here"
	}
	for i, tt := range []struct {
		in   func(token uint64) grid.Input
		said func(any) bool
	}{
		{func(n uint64) grid.Input { return &FindQuotes{Token: n} }, func(a any) bool { f, is := a.(*directory.Found); return is && f.End }},
		{func(n uint64) grid.Input { return &record.Find{Token: n} }, func(a any) bool { _, is := a.(*record.Found); return is }},
		{func(n uint64) grid.Input { return &record.Meant{Token: n, Text: "x"} }, func(a any) bool { return a != nil }},
		{func(n uint64) grid.Input { return &RequestLease{Token: n, Lender: "x"} }, failed(ofLease, ErrLease)},
		{func(n uint64) grid.Input { return &ChangeLease{Token: n, Change: RenewLease} }, failed(ofLease, ErrUnknownLease)},
		{func(n uint64) grid.Input { return &ChangeLease{Token: n, Change: RevokeLease} }, failed(ofLease, ErrUnknownLease)},
		{func(n uint64) grid.Input { return &ChangeLink{Token: n} }, failed(func(a any) error { return a.(*LinkAnswer).Err }, ErrLink)},
		{func(n uint64) grid.Input { return &ConfigureGuests{Token: n} }, failed(ofGuests, nil)},
		{func(n uint64) grid.Input { return &BanGuests{Token: n} }, failed(ofGuests, ErrGuest)},
		{func(n uint64) grid.Input { return &ChangeGuests{Token: n} }, failed(ofGuests, ErrGuest)},
		{func(n uint64) grid.Input { return &bank.Grant{Token: n} }, noBank},
		{func(n uint64) grid.Input { return &bank.Transfer{Token: n} }, noBank},
		{func(n uint64) grid.Input { return &bank.Question{Token: n} }, noBank},
		{func(n uint64) grid.Input { return &dataset.Hold{Token: n} }, failed(ofData, dataset.ErrRefused)},
		{func(n uint64) grid.Input { return &dataset.Find{Token: n} }, func(a any) bool { _, is := a.(*dataset.Found); return is }},
		{func(n uint64) grid.Input { return &dataset.Drop{Token: n} }, failed(ofData, dataset.ErrUnknown)},
	} {
		b := newBench(t, nil)
		in := tt.in(uint64(i + 1))
		if b.step(in); !tt.said(b.answers[uint64(i+1)]) {
			t.Errorf("%T is answered with %+v", in, b.answers[uint64(i+1)])
		}
	}
}

// TestPriceIsBounded, with a market and without.
func TestPriceIsBounded(t *testing.T) {
	for _, spoil := range []func(*Config){nil, together} {
		b := newBench(t, spoil)
		for price, fits := range map[grid.Price]bool{-1: false, 0: false, 1: true, grid.CreditsMax: true, grid.CreditsMax + 1: false} {
			before := b.site.Price()
			b.step(&SetPrice{Token: 1, Price: price})
			set := b.answers[1].(*PriceSet)
			if now := b.site.Price(); (set.Err == nil) != fits || set.Before != before || set.Price != now || fits && now != price || !fits && now != before {
				t.Errorf("from %v to %v: %+v, and the price is %v", before, price, set, now)
			}
		}
	}
}

// TestWhichLeaseIsMeant: two borrowers may have numbered theirs alike; what is not there, or not on
// that side, is not changed.
func TestWhichLeaseIsMeant(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Parts, c.Lease.Lend = Leases, true })
	for _, from := range []grid.SiteID{"there", "yonder"} {
		b.step(&grid.Delivery{From: from, Message: &lease.Request{Number: 5, Processors: 1, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: from}})
	}
	if n := len(b.site.Leases()); n != 2 {
		t.Fatalf("%d leases", n)
	}
	for i, tt := range []struct {
		change   LeaseChange
		number   uint64
		borrower grid.SiteID
		want     string
	}{
		{RevokeLease, 5, "", "name the borrower"},
		{RevokeLease, 6, "", "nothing is lent"},
		{RevokeLease, 5, "nobody", "nothing is lent"},
		{RenewLease, 5, "", "nothing is borrowed"},
		{ReleaseLease, 5, "there", "nothing is borrowed"},
		{RevokeLease, 5, "there", ""},
		{RevokeLease, 5, "", ""},
	} {
		token := uint64(i + 1)
		b.step(&ChangeLease{Token: token, Change: tt.change, Number: tt.number, Borrower: tt.borrower, Force: true})
		err := b.answers[token].(*LeaseAnswer).Err
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrUnknownLease) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("change %d of lease %d of %q: %v, want %q", tt.change, tt.number, tt.borrower, err, tt.want)
		}
	}
}

// TestHoldsAreShorterThanTerms, and questions are repeated within them.
func TestHoldsAreShorterThanTerms(t *testing.T) {
	for term, want := range map[grid.Time][2]grid.Time{
		0:                {0, 0}, // what a book does by itself
		grid.Second:      {grid.Second, grid.Second / 6},
		12 * grid.Second: {12 * grid.Second, 2 * grid.Second},
		grid.Minute:      {30 * grid.Second, 5 * grid.Second},
		grid.Hour:        {30 * grid.Second, 5 * grid.Second},
	} {
		c := LeaseConfig{Term: term}
		if got := c.book("here"); got.Hold != want[0] || got.Retry != want[1] || got.Term != term || !got.Drain || got.Grace != pilotGrace {
			t.Errorf("with a term of %v: %+v", term, got)
		}
	}
}

// TestSameOffer: what others would have to be told, and what passes by itself.
func TestSameOffer(t *testing.T) {
	quote := directory.Quote{Site: "here", Price: 1, Free: 2, Widest: 3, Wait: 0}
	for name, tt := range map[string]struct {
		change func(*directory.Quote)
		same   bool
	}{
		"nothing":         {func(*directory.Quote) {}, true},
		"the site":        {func(q *directory.Quote) { q.Site = "there" }, false},
		"the price":       {func(q *directory.Quote) { q.Price++ }, false},
		"what is free":    {func(q *directory.Quote) { q.Free++ }, false},
		"the widest":      {func(q *directory.Quote) { q.Widest++ }, false},
		"that it is busy": {func(q *directory.Quote) { q.Wait = 1 }, false},
		"GPUs":            {func(q *directory.Quote) { q.GPUs = grid.GPUStock{{Type: "x", Count: 1}} }, false},
	} {
		q := quote
		if tt.change(&q); sameOffer(&q, &quote) != tt.same || sameOffer(&quote, &q) != tt.same {
			t.Errorf("%s has changed: the same is %t", name, !tt.same)
		}
	}
	long, short := quote, quote
	long.Wait, short.Wait = grid.Hour, grid.Minute
	if !sameOffer(&long, &short) {
		t.Error("a wait that gets shorter is another offer")
	}
}

// TestHomeHearsHowFarItIs: when its job has begun elsewhere, or is to; and who waits for news is told.
func TestHomeHearsHowFarItIs(t *testing.T) {
	b := newBench(t, together)
	j := b.job(1, 1)
	e := &entry{job: j, state: Awarded, epoch: 1, award: market.Award{Site: "there", Epoch: 1, Until: grid.Never}}
	b.site.jobs.add(e)
	for _, tt := range []struct {
		in              market.Heard
		start, expected grid.Time
		told            bool
	}{
		{market.Heard{Start: 7}, 0, 7, false},
		{market.Heard{Start: grid.Never}, 0, 0, false},
		{market.Heard{Begun: true, Start: 9}, 9, 0, true},
		{market.Heard{Begun: true, Start: 9}, 9, 0, false},
		{market.Heard{Start: 8}, 0, 8, true},
	} {
		var out grid.Outbox
		tt.in.Task = e.task()
		b.site.leased.heard(b.now, &tt.in, &out)
		if e.start != tt.start || e.expected != tt.expected || len(out.Events) > 0 != tt.told {
			t.Errorf("%+v: it began at %v, is to at %v, and %d events", tt.in, e.start, e.expected, len(out.Events))
		}
	}
	for _, other := range []grid.TaskID{{Job: j.ID, Epoch: 2}, {Job: grid.JobID{Lo: 9}, Epoch: 1}} {
		var out grid.Outbox
		if b.site.leased.heard(b.now, &market.Heard{Task: other, Begun: true, Start: 5}, &out); e.start != 0 || len(out.Events) > 0 {
			t.Errorf("news of %v count for %v", other, e.task())
		}
	}
}

// TestUnwantedGuests: a job whose home does not wait for it any more ends; one that was lost here, and
// waits to run again, is given back, as home may not know of that.
func TestUnwantedGuests(t *testing.T) {
	for _, tt := range []struct {
		state   State
		losses  uint32
		foreign bool
		want    string
	}{
		{Queued, 0, true, "cancelled"}, {Queued, 1, true, "returned"}, {Running, 0, true, "cancelling"}, {Running, 1, true, "cancelling"},
		{Cancelling, 1, true, "cancelling"}, {Done, 0, true, "done"}, {Queued, 0, false, "queued"},
	} {
		b := newBench(t, together)
		j := b.job(1, 1)
		if tt.foreign {
			j.Home = "there"
		}
		e := &entry{job: j, state: tt.state, foreign: tt.foreign, epoch: 1, losses: tt.losses, award: market.Award{Site: "here", Epoch: 1, Price: 1, Until: grid.Never}}
		b.site.jobs.add(e)
		b.site.leased.unwanted(b.now, &keepalive.Unwanted{Task: e.task()}, &b.out)
		got := "gone"
		if v, there := b.site.Job(j.ID); there {
			got = v.State.name()
		}
		if got != tt.want {
			t.Errorf("%s, %d losses, foreign %t: %s, want %s", tt.state.name(), tt.losses, tt.foreign, got, tt.want)
		}
	}
}

// TestLinesOfLeasesAndJobsElsewhere: a job that ran elsewhere is logged with where it did, and what is lent
// as it is billed: a hold that the lender itself has taken back costs nothing.
func TestLinesOfLeasesAndJobsElsewhere(t *testing.T) {
	b := loggingBench(t)
	k := &logKeeper{b: b}
	e := &entry{job: b.job(1, 2), state: Done, epoch: 1, award: market.Award{Site: "there", Epoch: 1}, result: grid.Result{Start: b.now - grid.Minute, End: b.now}}
	b.site.chronicle.job(b.now, e, Done, &b.out)
	for _, tt := range []struct {
		state lease.State
		cause lease.Cause
		price grid.Price
	}{
		{lease.Held, lease.Revoked, grid.Credit}, {lease.Held, lease.Broken, grid.Credit}, {lease.Held, lease.Freed, grid.Credit}, {lease.Held, lease.Freed, 0}, {lease.Active, lease.Revoked, grid.Credit},
	} {
		b.site.chronicle.lent(b.now, &lease.Ended{Cause: tt.cause, Lease: lease.Lease{
			ID: lease.ID{Borrower: "beta", Number: 5}, Lent: true, State: tt.state, Processors: 4, Since: b.now - 10*grid.Minute, End: b.now + grid.Hour, Price: tt.price,
		}}, &b.out)
	}
	b.carryOut()
	k.move(100, true)
	var got []string
	for _, l := range k.lines {
		got = append(got, fmt.Sprintf("%s at %s: %v used, costs %v: %s", l.Kind, l.Site, l.Used, l.Cost, l.Reason))
	}
	want := []string{
		"job at there: 2m0s used, costs 0: ",
		"lease at here: 0s used, costs 0: revoked",
		"lease at here: 0s used, costs 0: its source has ended",
		"lease at here: 40m0s used, costs 0.666667: released",
		"lease at here: 40m0s used, costs 0.666667: revoked",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLentLeasesAreLogged when they end, whatever happens to them.
func TestLentLeasesAreLogged(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Parts, c.Lease.Lend, c.History = Leases, true, &HistoryConfig{} })
	k := &logKeeper{b: b}
	b.step(&grid.Delivery{From: "there", Message: &lease.Request{Number: 5, Processors: 1, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "there"}})
	l := b.site.Leases()[0]
	b.step(&grid.Delivery{From: "there", Message: &lease.Claim{Number: 5, Epoch: l.Epoch, Sequence: 1}})
	b.now += grid.Minute
	b.step(&grid.Delivery{From: "there", Message: &lease.Release{Number: 5, Epoch: l.Epoch}})
	if k.move(100, true); len(k.lines) != 1 || k.lines[0].Kind != "lease" || k.lines[0].Home != "there" || k.lines[0].Used != grid.Minute {
		t.Errorf("the log has %+v", k.lines)
	}
}

// TestGuestsAreKnownByTheirCertificates: what an owner's rules say of names and organisations counts
// for members who are certified to have them.
func TestGuestsAreKnownByTheirCertificates(t *testing.T) {
	w := newTown(t)
	id := w.sites["with-none"]
	if got := w.b.site.who(id); got != (guest.Who{Site: id, Name: "with-none"}) {
		t.Errorf("it is known as %+v", got)
	}
	if got := w.b.site.who("nobody"); got != (guest.Who{Site: "nobody"}) {
		t.Errorf("a stranger is known as %+v", got)
	}
}

// TestSiteIsNamed: a site whose record has a lifetime says once, by itself, what it is called, and again
// when its addresses are others.
func TestSiteIsNamed(t *testing.T) {
	look := func(lifetime grid.Time) (first, moved int) {
		b := newBench(t, func(c *Config) {
			together(c)
			c.Record.Lifetime = lifetime
		})
		b.step()
		first = b.lookups
		b.step(&grid.Closest{}, &Here{Addresses: []string{"/ip4/192.0.2.1/tcp/4100"}})
		return first, b.lookups
	}
	without, _ := look(0)
	with, after := look(grid.Hour)
	if with <= without || after < with {
		t.Errorf("it looks for %d holders without a record, and %d with one, %d after it has moved", without, with, after)
	}
}

// TestNetworkOfKnownSites: bandwidths are those of the quotes, this site's own that of its configuration.
func TestNetworkOfKnownSites(t *testing.T) {
	b := newBench(t, func(c *Config) {
		together(c)
		c.Rating.Bandwidth = 1000
	})
	n := b.site.Network(b.now, []grid.SiteID{"here", "there"})
	if got := n.Bandwidth(0, 1); n.Len() != 2 || got != 1000*bytesPerMegabit {
		t.Errorf("%d sites, %d bytes a second", n.Len(), got)
	}
}
