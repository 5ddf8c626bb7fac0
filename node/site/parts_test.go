package site

import (
	"errors"
	"strings"
	"testing"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
)

// TestEveryInputIsTaken: whatever users ask, drivers report and cores tell each other is
// for a part; and so are the messages of all protocols.
func TestEveryInputIsTaken(t *testing.T) {
	for _, in := range []grid.Input{
		&grid.Closest{}, &grid.Probed{}, &grid.Parted{}, &grid.Provided{}, &grid.Providers{}, &grid.TaskEnded{},
		&Adopted{}, &Submit{}, &Cancel{}, &Preview{}, &FindQuotes{}, &SetPrice{}, &RequestLease{}, &ChangeLease{}, &ChangeLink{}, &Drain{},
		&bank.Grant{}, &bank.Transfer{}, &bank.Question{}, &bank.Written{}, &bank.Declined{}, &bank.Back{},
		&dataset.Hold{}, &dataset.Find{}, &dataset.Drop{}, &dataset.Learnt{}, &directory.Found{},
		&market.Placed{}, &market.Refused{}, &market.Accepted{}, &market.Completed{}, &market.Lost{}, &market.Belated{}, &market.Delivered{}, &market.Revoke{},
		&lease.Asked{}, &lease.Activated{}, &lease.Granted{}, &lease.Claimed{}, &lease.Refused{}, &lease.Recalled{}, &lease.Vacate{},
		&sibling.Changed{}, &sibling.Sampled{}, &lease.Ended{}, &lease.Brought{}, &lease.Lost{}, &lease.Relinked{}, &lease.Answered{},
		&coalloc.Rejected{}, &coalloc.Start{}, &coalloc.Aborted{}, &coalloc.Broken{},
	} {
		if h := switchboard.find(in); h == nil {
			t.Errorf("nobody takes %T", in)
		}
	}
	for _, p := range []*wire.Protocol{&market.Protocol, &lease.Protocol, &bank.Protocol, &dataset.Protocol, &sibling.Protocol, directory.NewProtocol(nil)} {
		for _, kind := range kindsOf(p) {
			if switchboard.kinds[kind] == nil {
				t.Errorf("nobody hears %s", wire.KindName(kind))
			}
		}
	}
}

// TestNothingIsTakenTwice: a board on which two parts claim the same is not made.
func TestNothingIsTakenTwice(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "two parts") {
			t.Errorf("panics with %q", text)
		}
	}()
	newBoard((*links)(nil), (*links)(nil))
}

// TestPartsLeftOut: a site without parts answers users who ask for them, ignores what is
// for them, and says nothing of theirs; what is left of it works.
func TestPartsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		parts Parts
		says  string // kinds of messages on joining, nothing else
	}{
		{Jobs, ""}, {Leases, ""}, {Leases | Links, ""}, {Leases | Gossip, "gossip."}, {Bank, ""}, {Data, ""}, {Latencies, ""},
		{Leases | Coallocation, ""}, {Quotes, "directory. gossip."}, {Market | Quotes, "directory. gossip."}, {Everything, "directory. gossip."},
	} {
		t.Run(tt.parts.String(), func(t *testing.T) {
			b := newBench(t, func(c *Config) {
				c.Parts = tt.parts
				c.Directory.Federation, c.Directory.Topic = "test", "load"
				if tt.parts == Leases|Coallocation {
					c.Sites = coalloc.NewView([]coalloc.Site{{ID: "a", Processors: 4, Free: 4}}, nil)
				}
			})
			b.step(&Submit{Token: 1, Job: b.job(1, 3)})
			if b.lookups > 0 != tt.parts.has(Quotes) {
				t.Errorf("its quote makes it look up %d cells", b.lookups)
			}
			for _, in := range []grid.Input{
				&FindQuotes{Token: 2}, &SetPrice{Token: 3, Price: 2 * grid.Credit}, &RequestLease{Token: 4, Lender: "there", Processors: 1, Span: grid.Hour},
				&ChangeLease{Token: 5, Change: RenewLease, Number: 1}, &bank.Question{Token: 7},
				&dataset.Drop{Token: 9, Name: "x"}, &Preview{Token: 10, Job: b.job(2, 1)},
				&grid.Delivery{From: "there", Message: &lease.Request{Number: 1, Processors: 1, Span: grid.Hour}},
				&grid.Delivery{From: "there", Message: &bank.Inquire{}}, &grid.Undelivered{To: "there", Message: &market.Cancel{}},
				&grid.Closest{}, &grid.Probed{To: "there"}, &Adopted{ID: grid.TaskID{Job: grid.JobID{Lo: 9}, Epoch: 1}}, &Drain{},
			} {
				b.step(in)
			}
			b.want(1, Running)
			b.step(b.ended(b.started[0], 0))
			b.want(1, Done)
			for _, token := range []uint64{1, 3, 5} {
				if b.answers[token] == nil {
					t.Errorf("question %d is not answered", token)
				}
			}
			if set := b.answers[3].(*PriceSet); set.Err != nil || b.site.Price() != 2*grid.Credit {
				t.Errorf("price %v after %+v", b.site.Price(), set)
			}
			for _, s := range b.sends {
				protocol, _, _ := strings.Cut(wire.KindName(s.Message.MessageKind()), ".")
				asked := protocol == "lease" && tt.parts.has(Leases) || protocol == "bank" && tt.parts.has(Bank)
				if !asked && !strings.Contains(tt.says, protocol+".") {
					t.Errorf("it says %s to %q", wire.KindName(s.Message.MessageKind()), s.To)
				}
			}
			if b.site.Held() > 0 && !tt.parts.has(Leases) || len(b.site.Links()) > 0 || b.site.Notices() != nil {
				t.Error("it holds what it has no part for")
			}
		})
	}
}

// TestPartsNeedOthers: a set of parts that cannot work is refused when the site is made.
func TestPartsNeedOthers(t *testing.T) {
	for parts, want := range map[Parts]string{
		Market: "market needs quotes", Links: "links needs leases", Coallocation: "co-allocation needs leases", Leases | Coallocation: "or to be given the sites",
	} {
		_, err := New(Config{ID: "here", Parts: parts, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Price: 1, Directory: directory.Config{Federation: "test"}}, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", parts, err, want)
		}
	}
}

// TestInputsNeedData: a site that knows no data sets takes no job that reads some.
func TestInputsNeedData(t *testing.T) {
	for parts, want := range map[Parts]error{Leases | Coallocation: ErrInvalid, Leases | Coallocation | Data: nil} {
		b := newBench(t, func(c *Config) {
			c.Parts, c.Sites = parts, coalloc.NewView([]coalloc.Site{{ID: "here", Processors: 4, Free: 4}}, nil)
		})
		j := b.job(1, 2)
		j.Coallocate, j.Inputs = &grid.Coallocation{Components: "2", CCR: -1}, []grid.DataSet{{Name: "x", Size: 1}}
		j.Tasks = 2
		b.step(&Submit{Token: 1, Job: j})
		if s := b.answers[1].(*Submitted); !errors.Is(s.Err, want) || want != nil && !strings.Contains(s.Err.Error(), "data sets") {
			t.Errorf("%v: %v", parts, s.Err)
		}
	}
}
