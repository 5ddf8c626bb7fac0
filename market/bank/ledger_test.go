package bank

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

const (
	here  grid.SiteID = "bank"
	alice grid.SiteID = "alice"
	bob   grid.SiteID = "bob"
	carol grid.SiteID = "carol"
)

func id(n uint64) grid.JobID       { return grid.JobID{Lo: n} }
func task(n uint64) grid.TaskID    { return grid.TaskID{Job: id(n), Epoch: 1} }
func credits(n int64) grid.Credits { return grid.Credits(n) * grid.Credit }
func receipt(c *Cheque, by grid.SiteID, amount grid.Credits) *Receipt {
	return &Receipt{Bank: c.Bank, Payer: c.Payer, Payee: c.Payee, Task: c.Task, Amount: amount, Signer: by}
}

// signed is a redemption that both sides have signed.
func signed(c *Cheque, amount grid.Credits) *Redeem {
	return &Redeem{Cheque: c, Claim: receipt(c, c.Payee, amount), Agreement: receipt(c, c.Payer, amount)}
}

// disk keeps records as a store does.
type disk map[string][]byte

// write stores the first n records of out in their order, all if n is negative.
func (d disk) write(out *grid.Outbox, n int) {
	for _, e := range out.Effects {
		if e.Kind != grid.EffectSave && e.Kind != grid.EffectDelete {
			continue
		}
		if n == 0 {
			return
		}
		n--
		r := out.Records[e.Index]
		if e.Kind == grid.EffectDelete {
			delete(d, r.RecordKey())
		} else {
			d[r.RecordKey()] = r.AppendRecord(nil)
		}
	}
}

// desk returns a desk that has recovered from what is on the disk.
func (d disk) desk(t testing.TB, now grid.Time, cfg Config, out *grid.Outbox) *Desk {
	t.Helper()
	desk := NewDesk(cfg, 1)
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if err := desk.Load(now, key, d[key], out); err != nil {
			t.Fatalf("load %s: %v", key, err)
		}
	}
	if err := desk.Loaded(now, out); err != nil {
		t.Fatal(err)
	}
	return desk
}

// state is everything that a ledger would store, as text.
func state(l *Ledger) string {
	var out grid.Outbox
	for _, site := range l.Sites() {
		out.Save(new(accountRecord).set(l.accounts[site]))
	}
	for _, h := range l.holds {
		out.Save(h)
	}
	for _, t := range l.journal {
		out.Save(t)
	}
	d := disk{}
	d.write(&out, -1)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(d)) {
		b.WriteString(k + "\x00" + string(d[k]) + "\n")
	}
	return b.String()
}

// books returns a ledger in which alice has 10 credits, 3 of them committed for bob,
// and bob and carol have one each.
func books(t testing.TB) (*Ledger, *Cheque, *grid.Outbox) {
	t.Helper()
	l, out := NewLedger(here, nil), new(grid.Outbox)
	for i, site := range []grid.SiteID{alice, bob, carol} {
		amount := credits(1)
		if site == alice {
			amount = credits(10)
		}
		if r := l.Grant(1, &Grant{ID: id(uint64(i + 1)), To: site, Amount: amount}, out); r != Done {
			t.Fatal(r)
		}
	}
	c, r := l.Draw(2, alice, &Draw{Task: task(1), Payee: bob, Ceiling: credits(3), Lifetime: grid.Hour}, out)
	if r != Done {
		t.Fatal(r)
	}
	return l, c, out
}

func balance(t testing.TB, l *Ledger, site grid.SiteID, settled, incoming, committed grid.Credits) {
	t.Helper()
	if got, _ := l.Balance(site); got != (Balance{settled, incoming, committed}) {
		t.Errorf("%s has %v settled, %v in flight, %v committed; want %v, %v, %v", site, got.Settled, got.Incoming, got.Committed, settled, incoming, committed)
	}
}

func TestChequeIsPaidAndRefunded(t *testing.T) {
	l, c, out := books(t)
	balance(t, l, alice, credits(7), 0, credits(3))
	balance(t, l, bob, credits(1), credits(3), 0)
	for range 3 { // however often it is presented
		if paid, r := l.Redeem(3, bob, signed(c, credits(2)), out); r != Done || paid != credits(2) {
			t.Fatalf("redeem: %v, %v", paid, r)
		}
		balance(t, l, alice, credits(8), 0, 0)
		balance(t, l, bob, credits(3), 0, 0)
	}
	l.Expire(grid.Hour+2, out) // the expiry of what was paid returns nothing
	balance(t, l, alice, credits(8), 0, 0)
	balance(t, l, Issuer, -credits(12), 0, 0)
}

// Paid is the least of what both have signed.
func TestLesserSignatureCounts(t *testing.T) {
	for _, tt := range []struct{ claim, agreed, paid int64 }{{3, 3, 3}, {3, 1, 1}, {1, 3, 1}, {3, 0, 0}, {0, 3, 0}} {
		l, c, out := books(t)
		redeem := &Redeem{Cheque: c, Claim: receipt(c, bob, credits(tt.claim)), Agreement: receipt(c, alice, credits(tt.agreed))}
		if paid, r := l.Redeem(3, bob, redeem, out); r != Done || paid != credits(tt.paid) {
			t.Errorf("claim %d, agreed %d: paid %v, %v", tt.claim, tt.agreed, paid, r)
		}
		balance(t, l, alice, credits(10-tt.paid), 0, 0)
	}
}

func TestExpiryReturnsTheHoldOnce(t *testing.T) {
	l, c, out := books(t)
	if at := l.NextTimer(); at != grid.Hour+2 {
		t.Fatalf("timer at %v, want at the expiry", at)
	}
	for range 3 {
		l.Expire(grid.Hour+2, out)
		balance(t, l, alice, credits(10), 0, 0)
		balance(t, l, bob, credits(1), 0, 0)
	}
	before := state(l)
	if _, r := l.Redeem(grid.Hour+2, bob, signed(c, credits(1)), out); r != Expired {
		t.Errorf("redeemed after its expiry: %v", r)
	}
	if _, r := l.Draw(grid.Hour+3, alice, &Draw{Task: task(1), Payee: bob, Ceiling: credits(3), Lifetime: grid.Hour}, out); r != Expired {
		t.Errorf("drawn again after its expiry: %v", r)
	}
	if state(l) != before {
		t.Error("what was refused has changed the books")
	}
	l.Expire(grid.Hour+2+closedKeep, out)
	if _, r := l.Redeem(2*grid.Day, bob, signed(c, credits(1)), out); r != UnknownCheque || len(l.holds) != 0 {
		t.Errorf("after it was forgotten: %v, %d holds", r, len(l.holds))
	}
}

// A bank that stops when it has stored that a cheque expired, and not yet what becomes of its hold, does not
// pay it afterwards, as what was held has been given back.
func TestExpiryThatWasCutShortIsFinal(t *testing.T) {
	l, c, out := books(t)
	d := disk{}
	d.write(out, -1)
	out.Reset()
	l.Expire(grid.Hour+2, out)
	d.write(out, 1)
	desk := NewDesk(Config{Self: here, Offer: true}, 1)
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if err := desk.Load(grid.Hour+3, key, d[key], out); err != nil {
			t.Fatal(err)
		}
	}
	if err := desk.Loaded(grid.Hour+3, out); err != nil {
		t.Fatal(err)
	}
	l = desk.Ledger()
	if _, r := l.Redeem(grid.Hour+3, bob, signed(c, credits(1)), out); r != Expired {
		t.Errorf("redeemed after it expired: %v", r)
	}
	balance(t, l, alice, credits(10), 0, 0)
	balance(t, l, bob, credits(1), 0, 0)
}

// Bad input is refused with a reason, counted, and changes nothing.
func TestBadInput(t *testing.T) {
	const never = 99
	l, c, out := books(t)
	altered := func(f func(c *Cheque)) *Cheque { d := *c; f(&d); return &d }
	draw := func(d Draw) func() Refusal {
		return func() Refusal { _, r := l.Draw(3, alice, &d, out); return r }
	}
	redeem := func(by grid.SiteID, r *Redeem) func() Refusal {
		return func() Refusal { _, refusal := l.Redeem(3, by, r, out); return refusal }
	}
	move := func(from, to grid.SiteID, n uint64, amount grid.Credits) func() Refusal {
		return func() Refusal { return l.Transfer(3, from, &TransferRequest{ID: id(n), To: to, Amount: amount}, out) }
	}
	grant := func(to grid.SiteID, n uint64, amount grid.Credits) func() Refusal {
		return func() Refusal { return l.Grant(3, &Grant{ID: id(n), To: to, Amount: amount}, out) }
	}
	for _, tt := range []struct {
		name string
		want Refusal
		do   func() Refusal
	}{
		{"negative transfer", BadAmount, move(alice, bob, never, -1)},
		{"smallest transfer", BadAmount, move(alice, bob, never, math.MinInt64)},
		{"transfer of nothing", BadAmount, move(alice, bob, never, 0)},
		{"overflowing transfer", BadAmount, move(alice, bob, never, grid.CreditsMax+1)},
		{"largest transfer", BadAmount, move(alice, bob, never, math.MaxInt64)},
		{"transfer beyond the balance", NoFunds, move(alice, bob, never, credits(7)+1)},
		{"transfer of what is committed", NoFunds, move(alice, bob, never, credits(10))},
		{"transfer to self", ToSelf, move(alice, alice, never, 1)},
		{"transfer to an unknown account", NoPayee, move(alice, "nobody", never, 1)},
		{"transfer from an unknown account", NoAccount, move("nobody", alice, never, 1)},
		{"transfer to the issuer", NoPayee, move(alice, Issuer, never, 1)},
		{"grant of nothing", BadAmount, grant(alice, never, 0)},
		{"negative grant", BadAmount, grant(alice, never, -5)},
		{"more than may be issued", BadAmount, grant(alice, never, grid.CreditsMax-credits(12)+1)},
		{"grant to the issuer", ToSelf, grant(Issuer, never, 1)},
		{"used ID, other amount", OtherTerms, grant(alice, 1, 5)},
		{"used ID, other receiver", OtherTerms, grant(bob, 1, credits(10))},
		{"draw of nothing", BadAmount, draw(Draw{Task: task(2), Payee: bob, Lifetime: 1})},
		{"negative draw", BadAmount, draw(Draw{Task: task(2), Payee: bob, Ceiling: -1, Lifetime: 1})},
		{"overflowing draw", BadAmount, draw(Draw{Task: task(2), Payee: bob, Ceiling: math.MaxInt64, Lifetime: 1})},
		{"draw without a life", BadAmount, draw(Draw{Task: task(2), Payee: bob, Ceiling: 1})},
		{"draw for ever", BadAmount, draw(Draw{Task: task(2), Payee: bob, Ceiling: 1, Lifetime: grid.Never})},
		{"draw beyond the balance", NoFunds, draw(Draw{Task: task(2), Payee: bob, Ceiling: credits(8), Lifetime: 1})},
		{"draw to self", ToSelf, draw(Draw{Task: task(2), Payee: alice, Ceiling: 1, Lifetime: 1})},
		{"draw for the issuer", NoPayee, draw(Draw{Task: task(2), Payee: Issuer, Ceiling: 1, Lifetime: 1})},
		{"draw again over more", OtherTerms, draw(Draw{Task: task(1), Payee: bob, Ceiling: credits(4), Lifetime: 1})},
		{"draw again for another", OtherTerms, draw(Draw{Task: task(1), Payee: carol, Ceiling: credits(3), Lifetime: 1})},
		{"draw without an account", NoAccount, func() Refusal {
			_, r := l.Draw(3, "nobody", &Draw{Task: task(2), Payee: bob, Ceiling: 1, Lifetime: 1}, out)
			return r
		}},
		{"forged: over more", OtherTerms, redeem(bob, signed(altered(func(c *Cheque) { c.Ceiling *= 2 }), 1))},
		{"forged: longer life", OtherTerms, redeem(bob, signed(altered(func(c *Cheque) { c.Expires = grid.Day }), 1))},
		{"forged: made out to another", OtherTerms, redeem(bob, signed(altered(func(c *Cheque) { c.Payee = carol }), 1))},
		{"forged: never written", UnknownCheque, redeem(bob, signed(altered(func(c *Cheque) { c.Task = task(7) }), 1))},
		{"forged: other payer", UnknownCheque, redeem(bob, signed(altered(func(c *Cheque) { c.Payer = carol }), 1))},
		{"of another bank", WrongBank, redeem(bob, signed(altered(func(c *Cheque) { c.Bank = carol }), 1))},
		{"stolen", NotPayee, redeem(carol, signed(c, 1))},
		{"claimed by the payer", NotPayee, redeem(bob, &Redeem{Cheque: c, Claim: receipt(c, alice, 1), Agreement: receipt(c, alice, 1)})},
		{"without the payer's signature", NotSigned, redeem(bob, &Redeem{Cheque: c, Claim: receipt(c, bob, 1)})},
		{"signed by the payee only", NotSigned, redeem(bob, &Redeem{Cheque: c, Claim: receipt(c, bob, 1), Agreement: receipt(c, bob, 1)})},
		{"signed for another job", NotSigned, redeem(bob, &Redeem{Cheque: c, Claim: receipt(c, bob, 1),
			Agreement: receipt(altered(func(c *Cheque) { c.Task = task(7) }), alice, 1)})},
		{"above the ceiling", TooMuch, redeem(bob, signed(c, credits(3)+1))},
		{"overflowing", TooMuch, redeem(bob, signed(c, math.MaxInt64))},
		{"negative", BadAmount, redeem(bob, signed(c, -1))},
		{"agreed to less than nothing", NotSigned, redeem(bob, &Redeem{Cheque: c, Claim: receipt(c, bob, 1), Agreement: receipt(c, alice, -1)})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, counted := state(l), l.refused[tt.want]
			out.Reset()
			if got := tt.do(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if l.refused[tt.want] != counted+1 {
				t.Error("the refusal was not counted")
			}
			if state(l) != before || len(out.Effects) != 0 {
				t.Errorf("the books have changed, effects %v", out.Effects)
			}
			if l.Refused()[tt.want.String()] == 0 || strings.HasPrefix(tt.want.String(), "refused for") {
				t.Errorf("the refusal has no words: %v", l.Refused())
			}
		})
	}
}

// TestWholeBalance: all that is in an account can be drawn, or moved.
func TestWholeBalance(t *testing.T) {
	l, _, out := books(t)
	if _, r := l.Draw(3, alice, &Draw{Task: task(2), Payee: bob, Ceiling: credits(7), Lifetime: grid.Hour}, out); r != Done {
		t.Errorf("a cheque over all there is: %v", r)
	}
	if r := l.Transfer(3, carol, &TransferRequest{ID: id(9), To: alice, Amount: credits(1)}, out); r != Done {
		t.Errorf("a transfer of all there is: %v", r)
	}
	balance(t, l, alice, credits(1), 0, credits(10))
	balance(t, l, carol, 0, 0, 0)
}

// A draw that the payer does not want any more is never written afterwards.
func TestWithdrawnDraw(t *testing.T) {
	l, c, out := books(t)
	d := Draw{Task: task(2), Payee: bob, Ceiling: credits(1), Lifetime: grid.Hour, Withdrawn: true}
	if _, r := l.Draw(3, alice, &d, out); r != Closed {
		t.Fatal(r)
	}
	d.Withdrawn = false // a late copy
	if _, r := l.Draw(4, alice, &d, out); r != Closed {
		t.Fatal(r)
	}
	balance(t, l, alice, credits(7), 0, credits(3))
	d = Draw{Task: task(1), Payee: bob, Ceiling: credits(3), Lifetime: grid.Hour, Withdrawn: true}
	if again, r := l.Draw(5, alice, &d, out); r != Done || !again.same(c) {
		t.Errorf("what was written before: %v, %v", again, r)
	}
	giveBack := &Redeem{Cheque: c, Claim: receipt(c, bob, 0)}
	if paid, r := l.Redeem(6, bob, giveBack, out); r != Done || paid != 0 {
		t.Errorf("given back: %v, %v", paid, r)
	}
	balance(t, l, alice, credits(10), 0, 0)
	if paid, r := l.Redeem(7, bob, signed(c, credits(3)), out); r != Done || paid != 0 {
		t.Errorf("redeemed after it was given back: %v, %v", paid, r)
	}
	balance(t, l, alice, credits(10), 0, 0)
}

// An account that is opened by a redemption learns of cheques made out to it before.
func TestPayeeWithoutAccount(t *testing.T) {
	l, _, out := books(t)
	var cheques []*Cheque
	for n := range uint64(2) {
		c, r := l.Draw(3, alice, &Draw{Task: task(10 + n), Payee: "dave", Ceiling: credits(2), Lifetime: grid.Hour}, out)
		if r != Done {
			t.Fatal(r)
		}
		cheques = append(cheques, c)
	}
	if _, r := l.Redeem(4, "dave", signed(cheques[0], credits(1)), out); r != Done {
		t.Fatal(r)
	}
	balance(t, l, "dave", credits(1), credits(2), 0)
	if err := l.Audit(); err != nil {
		t.Error(err)
	}
}

// Beyond its bounds the ledger refuses, and the oldest transactions go.
func TestLedgerBounds(t *testing.T) {
	l, _, out := books(t)
	for i := len(l.journal); i < journalMax; i++ {
		if r := l.Transfer(3, alice, &TransferRequest{ID: id(uint64(1000 + i)), To: bob, Amount: 1}, out); r != Done {
			t.Fatal(i, r)
		}
		out.Reset()
	}
	if r := l.Transfer(3, alice, &TransferRequest{ID: id(5), To: bob, Amount: 1}, out); r != Full {
		t.Errorf("with a full journal: %v", r)
	}
	if _, r := l.Draw(3, alice, &Draw{Task: task(5), Payee: bob, Ceiling: 1, Lifetime: 1}, out); r != Full {
		t.Errorf("draw with a full journal: %v", r)
	}
	later := 2 + copyLife
	for i := range uint64(3) {
		if r := l.Transfer(later, alice, &TransferRequest{ID: id(5 + i), To: bob, Amount: 1}, out); r != Done {
			t.Fatal(r)
		}
	}
	if len(l.journal) != journalMax || l.first() != 4 {
		t.Errorf("%d transactions from %d on", len(l.journal), l.first())
	}
	if err := l.Audit(); err != nil {
		t.Error(err)
	}
	for i := len(l.accounts); i < accountsMax; i++ {
		l.accounts[grid.SiteID(id(uint64(i)).String())] = newAccount("x")
	}
	if r := l.Grant(later, &Grant{ID: id(4), To: "new", Amount: 1}, out); r != Full {
		t.Errorf("with too many accounts: %v", r)
	}
	l.accounts[alice].holds = perPayerMax
	if _, r := l.Draw(later, alice, &Draw{Task: task(5), Payee: bob, Ceiling: 1, Lifetime: 1, Withdrawn: true}, out); r != Full {
		t.Errorf("with too many cheques: %v", r)
	}
}

// Books that were tampered with, or have lost their end, are not gone on with.
func TestDamagedBooks(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		damage     func(d disk)
	}{
		{"a balance", "sum to", func(d disk) {
			a := newAccount(bob)
			a.Settled, a.last = credits(5), 4
			var out grid.Outbox
			out.Save(new(accountRecord).set(a))
			d.write(&out, -1)
		}},
		{"a gap", "follows transaction", func(d disk) { delete(d, journalKey(2)) }},
		{"the end is missing", "journal ends", func(d disk) { delete(d, journalKey(4)) }},
		{"an amount", "hash", func(d disk) {
			b := d[journalKey(2)]
			i := strings.Index(string(b), string(bob))
			b[i]++
		}},
		{"no record", "not a record", func(d disk) { d["bank/else/1"] = nil }},
		{"noise", "", func(d disk) { d[journalKey(3)] = []byte{0xff} }},
		{"a cheque in no state", "state 77", func(d disk) {
			for k, v := range d {
				var p wirepb.BankHoldRecord
				if strings.HasPrefix(k, holdPrefix) && proto.Unmarshal(v, &p) == nil {
					p.State = 77
					d[k], _ = proto.Marshal(&p)
				}
			}
		}},
		{"a cheque that is gone", "committed", func(d disk) {
			for k := range d {
				if strings.HasPrefix(k, holdPrefix) {
					delete(d, k)
				}
			}
			delete(d, journalKey(1)) // trimmed, so that the journal does not say all
			delete(d, journalKey(2))
			delete(d, journalKey(3))
			delete(d, journalKey(4))
			for k, v := range d {
				if strings.HasPrefix(k, accountPrefix) {
					l := NewLedger(here, nil)
					if l.account(v) != nil {
						continue
					}
					for _, a := range l.accounts {
						if a.site != Issuer || k == accountPrefix+string(Issuer) {
							a.last = 0
							d[a.record] = new(accountRecord).set(a).AppendRecord(nil)
						}
					}
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, out := books(t)
			d := disk{}
			d.write(out, -1)
			tt.damage(d)
			desk := NewDesk(Config{Self: here, Offer: true}, 1)
			var err error
			for _, key := range slices.Sorted(maps.Keys(d)) {
				if err == nil {
					err = desk.Load(5, key, d[key], out)
				}
			}
			if err == nil {
				err = desk.Loaded(5, out)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
}

// TestMovedOnceOverARestart: what was granted or transferred is not moved again after a restart of the bank, and the
// same ID with other terms is refused.
func TestMovedOnceOverARestart(t *testing.T) {
	l, _, out := books(t)
	transfer := &TransferRequest{ID: id(9), To: bob, Amount: credits(2)}
	if r := l.Transfer(5, alice, transfer, out); r != Done {
		t.Fatal(r)
	}
	d := disk{}
	d.write(out, -1)
	again := d.desk(t, 6, Config{Self: here, Offer: true}, new(grid.Outbox)).Ledger()
	for _, l := range []*Ledger{l, again} {
		last := l.Last()
		if r := l.Transfer(7, alice, transfer, out); r != Done {
			t.Errorf("a copy of the request is answered with %v", r)
		}
		if r := l.Grant(7, &Grant{ID: id(2), To: bob, Amount: credits(1)}, out); r != Done {
			t.Errorf("a copy of the grant is answered with %v", r)
		}
		if r := l.Transfer(7, alice, &TransferRequest{ID: id(9), To: bob, Amount: credits(1)}, out); r == Done {
			t.Error("another transfer of the same ID is made")
		}
		if l.Last() != last {
			t.Errorf("%d transactions were added", l.Last()-last)
		}
		balance(t, l, bob, credits(3), credits(3), 0)
	}
}

// Whatever prefix of a step's records is stored, the books recover: the step has
// happened as a whole, or not at all.
func TestAnyPrefixRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Self: here, Offer: true}
		sites := []grid.SiteID{alice, bob, carol}
		d, out := disk{}, new(grid.Outbox)
		l := NewLedger(here, nil)
		now := grid.Time(1)
		var paid, written = map[grid.TaskID]int{}, map[grid.TaskID]*Cheque{}
		site := func(label string) grid.SiteID { return rapid.SampledFrom(sites).Draw(t, label) }
		steps := rapid.IntRange(1, 25).Draw(t, "steps")
		for n := range steps {
			out.Reset()
			before, last := state(l), l.Last()
			now += grid.Time(rapid.Int64Range(0, int64(grid.Minute)).Draw(t, "pause"))
			l.Expire(now, out)
			amount := grid.Credits(rapid.Int64Range(1, 50).Draw(t, "amount"))
			job := task(uint64(rapid.IntRange(1, 8).Draw(t, "job")))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				l.Grant(now, &Grant{ID: id(uint64(n + 1)), To: site("to"), Amount: amount}, out)
			case 1:
				l.Transfer(now, site("from"), &TransferRequest{ID: id(uint64(n + 1)), To: site("to"), Amount: amount}, out)
			case 2, 3:
				if c, r := l.Draw(now, site("payer"), &Draw{Task: job, Payee: site("payee"), Ceiling: amount, Lifetime: 5 * grid.Minute}, out); r == Done {
					written[job] = c
				}
			case 4:
				if c := written[job]; c != nil {
					if _, r := l.Redeem(now, c.Payee, signed(c, min(amount, c.Ceiling)), out); r == Done {
						paid[job]++
					}
				}
			case 5:
				now += grid.Time(rapid.Int64Range(0, int64(10*grid.Minute)).Draw(t, "rest"))
				l.Expire(now, out)
			}
			if err := l.Audit(); err != nil {
				t.Fatal(err)
			}
			if !rapid.Bool().Draw(t, "crash") {
				d.write(out, -1)
				continue
			}
			records := 0
			for _, e := range out.Effects {
				if e.Kind == grid.EffectSave || e.Kind == grid.EffectDelete {
					records++
				}
			}
			k := rapid.IntRange(0, records).Draw(t, "stored")
			d.write(out, k)
			after := state(l)
			out.Reset()
			desk := NewDesk(cfg, 1)
			for _, key := range slices.Sorted(maps.Keys(d)) {
				if err := desk.Load(now, key, d[key], out); err != nil {
					t.Fatal(err)
				}
			}
			if err := desk.Loaded(now, out); err != nil {
				t.Fatal(err)
			}
			d.write(out, -1)
			moved := l.Last() - last
			l = desk.Ledger()
			switch got := state(l); {
			case moved <= 1 && k == 0 && got != before && moved == 1:
				t.Fatal("nothing was stored, and the books have changed")
			case k == records && got != after:
				t.Fatal("everything was stored, and the books are different")
			}
			if l.Last() < last {
				t.Fatalf("transaction %d is lost", last)
			}
		}
	})
}

func TestNextTimerIsTheEarliestExpiry(t *testing.T) {
	l, _, out := books(t)
	if _, r := l.Draw(3, alice, &Draw{Task: task(2), Payee: carol, Ceiling: 1, Lifetime: grid.Minute}, out); r != Done {
		t.Fatal(r)
	}
	if at := l.NextTimer(); at != 3+grid.Minute {
		t.Errorf("timer at %v", at)
	}
	if got := l.History(alice, 2); len(got) != 2 || got[0].Kind != KindDraw || got[0].Amount != 1 || got[1].Amount != credits(3) {
		t.Errorf("statement %+v", got)
	}
	if got := l.History(alice, 100); len(got) != 3 || got[2].Kind != KindGrant {
		t.Errorf("statement of %d transactions", len(got))
	}
	if got := l.History("nobody", 5); got != nil {
		t.Errorf("statement of nobody: %v", got)
	}
}

func BenchmarkTransfer(b *testing.B) {
	l, out := NewLedger(here, nil), new(grid.Outbox)
	l.Grant(1, &Grant{ID: id(1), To: alice, Amount: credits(1_000_000)}, out)
	l.Grant(1, &Grant{ID: id(2), To: bob, Amount: credits(1_000_000)}, out)
	b.ReportAllocs()
	for i := range b.N {
		from, to := alice, bob
		if i%2 == 1 {
			from, to = to, from
		}
		out.Reset()
		if r := l.Transfer(grid.Time(i)*10*grid.Millisecond, from, &TransferRequest{ID: id(uint64(i + 3)), To: to, Amount: 1}, out); r != Done {
			b.Fatal(r)
		}
	}
}

// BenchmarkCheque is all that a bank does for one job.
func BenchmarkCheque(b *testing.B) {
	l, out := NewLedger(here, nil), new(grid.Outbox)
	l.Grant(1, &Grant{ID: id(1), To: alice, Amount: credits(1_000_000)}, out)
	l.Grant(1, &Grant{ID: id(2), To: bob, Amount: credits(1)}, out)
	b.ReportAllocs()
	for i := range b.N {
		now := grid.Time(i) * grid.Second
		out.Reset()
		l.Expire(now, out)
		c, r := l.Draw(now, alice, &Draw{Task: task(uint64(i + 3)), Payee: bob, Ceiling: 2, Lifetime: grid.Hour}, out)
		if r != Done {
			b.Fatal(r)
		}
		if _, r := l.Redeem(now, bob, signed(c, 1), out); r != Done {
			b.Fatal(r)
		}
	}
}
