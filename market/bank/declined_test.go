package bank

import (
	"testing"

	"gridnode/grid"
)

// TestRefusedTransferStaysUndone: a copy of a request that was refused moves nothing when there are
// credits; the same transfer asked for again does, and once.
func TestRefusedTransferStaysUndone(t *testing.T) {
	l, _, out := books(t)
	ask := func(now, asked grid.Time) Refusal {
		return l.Transfer(now, bob, &TransferRequest{ID: id(70), To: carol, Amount: credits(4), Asked: asked}, out)
	}
	fund := func(n uint64) {
		if r := l.Transfer(4, alice, &TransferRequest{ID: id(n), To: bob, Amount: credits(4)}, out); r != Done {
			t.Fatal(r)
		}
	}
	before, _ := l.Balance(bob)
	if r := ask(3, 1); r != NoFunds {
		t.Fatalf("without credits: %v", r)
	}
	fund(71)
	for _, tt := range []struct {
		name       string
		now, asked grid.Time
		want       Refusal
	}{
		{"a copy", 5, 1, NoFunds}, {"asked again", 6, 2, Done}, {"a copy of either", 7, 1, Done}, {"a copy of the second", 7, 2, Done},
	} {
		if r := ask(tt.now, tt.asked); r != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, r, tt.want)
		}
	}
	if b, _ := l.Balance(bob); b != before {
		t.Errorf("%+v are left of %+v, want that 4 came and went once", b, before)
	}
}

// TestRestartedBankKnowsWhatItRefused: what was asked for before the last transfer of an account that was
// refused, or before the account was opened, moves nothing after a restart, nor when more were refused
// since than are remembered one by one. What is asked for later does.
func TestRestartedBankKnowsWhatItRefused(t *testing.T) {
	const asked = 10 * grid.Second
	restarted := func(t *testing.T, l *Ledger, out *grid.Outbox) *Ledger {
		d := disk{}
		d.write(out, -1)
		out.Reset()
		return d.desk(t, asked+2, Config{Self: here, Offer: true}, out).Ledger()
	}
	crowded := func(t *testing.T, l *Ledger, out *grid.Outbox) *Ledger {
		for n := range uint64(declinedMax) {
			l.Transfer(asked+2, carol, &TransferRequest{ID: id(1000 + n), To: bob, Amount: credits(100), Asked: 1}, out)
		}
		return l
	}
	const dave grid.SiteID = "dave"
	for name, since := range map[string]func(*testing.T, *Ledger, *grid.Outbox) *Ledger{"restarted": restarted, "crowded": crowded} {
		for _, tt := range []struct {
			what       string
			payer      grid.SiteID
			now, asked grid.Time
			moved      bool
		}{
			{"a copy", bob, asked + 5, asked, false},
			{"one that was asked for before", bob, asked + 5, asked - 1, false},
			{"asked again", bob, asked + 5, asked + 1, true},
			{"of software that does not say when", bob, asked + 5, 0, true},
			{"a copy when none can come", bob, asked + 1 + copyLife, asked, true},
			{"of another account", alice, asked + 5, asked, true},
			{"a copy of who had no account", dave, asked + 5, asked, false},
			{"asked for when there was one", dave, asked + 5, asked + 3, true},
		} {
			if name == "crowded" && tt.payer == dave {
				continue // only what accounts have refused is of lasting use
			}
			t.Run(name+"/"+tt.what, func(t *testing.T) {
				l, _, out := books(t)
				for _, payer := range []grid.SiteID{bob, dave} {
					if r := l.Transfer(asked+1, payer, &TransferRequest{ID: id(70), To: carol, Amount: credits(4), Asked: asked}, out); r == Done {
						t.Fatal("moved without credits")
					}
				}
				for i, payer := range []grid.SiteID{bob, dave} {
					if r := l.Grant(asked+1, &Grant{ID: id(uint64(80 + i)), To: payer, Amount: credits(4)}, out); r != Done {
						t.Fatal(r)
					}
				}
				l = since(t, l, out)
				r := l.Transfer(tt.now, tt.payer, &TransferRequest{ID: id(70), To: carol, Amount: credits(4), Asked: tt.asked}, out)
				if (r == Done) != tt.moved {
					t.Errorf("%v, want that it is moved: %t", r, tt.moved)
				}
			})
		}
	}
}

// TestDeclinedAreBounded: a refusal is known for as long as a copy may be under way, and only the latest are.
func TestDeclinedAreBounded(t *testing.T) {
	var d declined
	known := func(now grid.Time, n uint64, asked grid.Time) bool {
		_, yes := d.copied(now, moveKey{alice, id(n)}, asked)
		return yes
	}
	d.add(0, moveKey{alice, id(1)}, 7, NoFunds)
	d.add(grid.Second, moveKey{alice, id(1)}, 5, NoFunds) // one that was asked before, and came later
	for _, tt := range []struct {
		now, asked grid.Time
		want       bool
	}{{2 * grid.Second, 7, true}, {2 * grid.Second, 8, false}, {2 * grid.Second, 0, false}, {copyLife, 7, true}, {copyLife + grid.Second, 7, false}} {
		if got := known(tt.now, 1, tt.asked); got != tt.want {
			t.Errorf("at %v, asked at %v: known %t, want %t", tt.now, tt.asked, got, tt.want)
		}
	}
	for n := range uint64(declinedMax + 1) {
		d.add(grid.Hour, moveKey{alice, id(n)}, 1, NoFunds)
	}
	if len(d.list) != declinedMax || len(d.last) != declinedMax || known(grid.Hour, 0, 1) || !known(grid.Hour, 1, 1) {
		t.Errorf("%d of %d are kept, want the latest %d", len(d.list), declinedMax+1, declinedMax)
	}
}

// TestAnswerToWhatWasAskedBefore: a late answer does not answer what was asked since.
func TestAnswerToWhatWasAskedBefore(t *testing.T) {
	w := calmWorld(t, 3, 1)
	client := w.sites[1]
	var out grid.Outbox
	client.desk.Step(w.now, &Transfer{Token: 7, ID: id(50), To: "s2", Amount: 3}, &out)
	for _, tt := range []struct {
		asked grid.Time
		want  int
	}{{w.now - 1, 0}, {w.now, 1}} {
		client.desk.Step(w.now, &grid.Delivery{From: "s0", Message: &TransferReply{ID: id(50), Asked: tt.asked, Refusal: NoFunds}}, &out)
		if len(out.Answers) != tt.want {
			t.Errorf("an answer to what was asked %v ago: %d answers, want %d", w.now-tt.asked, len(out.Answers), tt.want)
		}
	}
}
