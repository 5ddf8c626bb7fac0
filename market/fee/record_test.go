package fee

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// stored returns a record of a lease in a state, as it is stored.
func stored(t testing.TB, s state, change func(p *wirepb.FeeRecord)) []byte {
	p := &wirepb.FeeRecord{Peer: "lender", Number: 7, Epoch: 9, State: uint32(s), Bank: "bank", Processors: 2, Price: 3, Longest: 4, Asked: 5, Over: 6, Amount: 7}
	if change != nil {
		change(p)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecordsOutOfBounds: a record that no tab has stored is an error, and nothing of it is kept.
func TestRecordsOutOfBounds(t *testing.T) {
	for name, change := range map[string]func(p *wirepb.FeeRecord){
		"":                  nil,
		"no number":         func(p *wirepb.FeeRecord) { p.Number = 0 },
		"no epoch":          func(p *wirepb.FeeRecord) { p.Epoch = 0 },
		"no peer":           func(p *wirepb.FeeRecord) { p.Peer = "" },
		"long peer":         func(p *wirepb.FeeRecord) { p.Peer = strings.Repeat("x", 129) },
		"no state":          func(p *wirepb.FeeRecord) { p.State = 0 },
		"a state too many":  func(p *wirepb.FeeRecord) { p.State = uint32(billed) + 1 },
		"no processors":     func(p *wirepb.FeeRecord) { p.Processors = 0 },
		"many processors":   func(p *wirepb.FeeRecord) { p.Processors = 1<<24 + 1 },
		"no price":          func(p *wirepb.FeeRecord) { p.Price = 0 },
		"high price":        func(p *wirepb.FeeRecord) { p.Price = int64(grid.CreditsMax) + 1 },
		"negative amount":   func(p *wirepb.FeeRecord) { p.Amount = -1 },
		"high amount":       func(p *wirepb.FeeRecord) { p.Amount = int64(grid.CreditsMax) + 1 },
		"negative span":     func(p *wirepb.FeeRecord) { p.Longest = -1 },
		"negative instant":  func(p *wirepb.FeeRecord) { p.Asked = -1 },
		"instant never":     func(p *wirepb.FeeRecord) { p.Asked = int64(grid.Never) },
		"an end like never": func(p *wirepb.FeeRecord) { p.Over = int64(grid.Never) },
	} {
		tab := newTrio(t).borrower.tab
		err := tab.Load(0, stored(t, advanced, change), new(grid.Outbox))
		owes, owed := tab.Open()
		if want := change == nil; (err == nil) != want || owes+owed > 0 != want {
			t.Errorf("%s: %v, and %d leases are open", name, err, owes+owed)
		}
	}
	if err := newTrio(t).borrower.tab.Load(0, []byte{0xff}, new(grid.Outbox)); err == nil {
		t.Error("no record, and no error")
	}
}

// TestLoadedLeasesAreRemembered: each in its state, as it was stored, and what it waits for comes.
func TestLoadedLeasesAreRemembered(t *testing.T) {
	for s, want := range map[state]grid.Time{
		drawing: grid.Never, advancing: askPause, advanced: checkIn, late: lateKeep, billed: askPause,
	} {
		for _, over := range []grid.Time{6, grid.Never} {
			w := newTrio(t)
			record := stored(t, s, func(p *wirepb.FeeRecord) {
				if over == grid.Never {
					p.Over = 0
				}
			})
			var out grid.Outbox
			if err := w.borrower.tab.Load(w.now, record, &out); err != nil {
				t.Fatal(err)
			}
			if at := w.borrower.tab.NextTimer(); at-w.now != want && at != want {
				t.Errorf("state %d waits until %v, want for %v", s, at, want)
			}
			owes, owed := w.borrower.tab.Open()
			if wantOwes, wantOwed := s == advancing || s == advanced, s >= late; owes == 1 != wantOwes || owed == 1 != wantOwed {
				t.Errorf("state %d: %d leases are owed for, and for %d this site is owed", s, owes, owed)
			}
			if len(out.Effects) > 0 != (s == drawing) {
				t.Errorf("state %d: %d effects", s, len(out.Effects))
			}
			for _, f := range w.borrower.tab.owes {
				if got := f.AppendRecord(nil); f.over != over || !slices.Equal(got, record) {
					t.Errorf("state %d: %x is stored as %x", s, record, got)
				}
			}
		}
	}
}
