package bank

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

var seeds = flag.Int("seeds", 300, "runs of the simulation of desks")

// world is a few desks on a network that loses, doubles and reorders messages, with
// crashes between any two records. Deals stand for what the market agents say.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	seed  uint64
	now   grid.Time
	calm  bool // nothing goes wrong any more
	sites []*party
	mail  []letter
	deals map[grid.TaskID]*deal
	paid  map[grid.TaskID]grid.Credits // by the journals of the banks
	seen  map[grid.SiteID]uint64       // sequence
	ended map[grid.TaskID]TransactionKind
}

type party struct {
	cfg  Config
	desk *Desk
	disk disk
	up   grid.Time // down until then
}

type letter struct {
	at       grid.Time
	from, to grid.SiteID
	message  grid.Message
}

// deal is a job: what it costs, and what has become of it.
type deal struct {
	task    grid.TaskID
	payer   *party
	payee   *party
	cost    grid.Credits
	ceiling grid.Credits
	plan    int // 0: runs and is paid; 1: never runs; 2: payer wants it no more; 3: payee is silent for ever
	written bool
	over    bool // declined or lost
	taken   bool
	agreed  bool // payer has signed
}

func newWorld(t *testing.T, seed uint64, sites, banks int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, now: grid.Hour, deals: make(map[grid.TaskID]*deal),
		paid: make(map[grid.TaskID]grid.Credits), seen: make(map[grid.SiteID]uint64), ended: make(map[grid.TaskID]TransactionKind),
	}
	name := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprintf("s%d", i)) }
	for i := range sites {
		p := &party{cfg: Config{Self: name(i), Offer: i < banks, Bank: name(i % banks)}, disk: disk{}}
		p.desk = NewDesk(p.cfg, seed+uint64(i))
		w.sites = append(w.sites, p)
	}
	for i, p := range w.sites {
		w.step(w.find(p.cfg.Bank), &Grant{ID: id(uint64(i + 1)), To: p.cfg.Self, Amount: grid.Credits(20 + w.rng.IntN(200))})
	}
	return w
}

func (w *world) find(site grid.SiteID) *party {
	for _, p := range w.sites {
		if p.cfg.Self == site {
			return p
		}
	}
	panic("no site " + site)
}

// step feeds an input and all that follows from it within the site, with a crash
// somewhere in it now and then.
func (w *world) step(p *party, in grid.Input) {
	if p.up > w.now {
		return
	}
	var out grid.Outbox
	p.desk.Step(w.now, in, &out)
	w.carry(p, &out)
}

func (w *world) carry(p *party, out *grid.Outbox) {
	for i := 0; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *grid.Delivery:
			p.desk.Step(w.now, in, out)
		case *Written:
			w.deals[in.Task].written = true
		case *Declined:
			w.deals[in.Task].over = true
		case *Back:
		default:
			w.t.Fatalf("local %T", in)
		}
	}
	if !w.calm && w.rng.IntN(40) == 0 {
		stored := -1
		if w.rng.IntN(2) == 0 {
			stored = w.rng.IntN(len(out.Effects) + 1)
		}
		p.disk.write(out, stored)
		p.up = w.now + grid.Time(w.rng.Int64N(int64(2*grid.Minute)))
		p.desk = nil
		return
	}
	p.disk.write(out, -1)
	for _, s := range out.Sends {
		w.send(p.cfg.Self, s)
	}
	w.audit(p)
}

func (w *world) send(from grid.SiteID, s grid.Send) {
	copies := 1
	if !w.calm {
		copies = [...]int{1, 1, 1, 1, 1, 1, 1, 0, 0, 2}[w.rng.IntN(10)]
	}
	for range copies {
		at := w.now + grid.Time(w.rng.Int64N(int64(3*grid.Second)))
		w.mail = append(w.mail, letter{at, from, s.To, s.Message})
	}
}

// audit checks the books of p, and every new transaction.
func (w *world) audit(p *party) {
	if err := Audit(w.now, p.desk); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	l := p.desk.Ledger()
	if l == nil {
		return
	}
	if err := l.Audit(); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	l.Journal(w.seen[p.cfg.Self]+1, func(t *Transaction) bool {
		w.seen[p.cfg.Self] = t.Sequence
		if t.Kind != KindRedeem && t.Kind != KindExpire {
			return true
		}
		d := w.deals[t.Task]
		if before, twice := w.ended[t.Task]; twice {
			w.t.Fatalf("seed %d: cheque for %v is closed by %v after %v", w.seed, t.Task, t.Kind, before)
		}
		w.ended[t.Task] = t.Kind
		if t.Kind == KindRedeem {
			w.paid[t.Task] = t.Amount
			if t.Amount > d.cost || t.Payee != d.payee.cfg.Self || t.Amount+t.Refund != d.ceiling || t.Amount > 0 && !d.agreed {
				w.t.Fatalf("seed %d: %v paid for %+v", w.seed, t.Amount, d)
			}
		}
		return true
	})
}

// advance lets the earliest thing happen: a letter, a timer, a restart.
func (w *world) advance(until grid.Time) bool {
	next := until
	for _, m := range w.mail {
		next = min(next, m.at)
	}
	for _, p := range w.sites {
		if p.desk == nil {
			next = min(next, max(p.up, w.now))
		} else {
			next = min(next, max(p.desk.NextTimer(), w.now))
		}
	}
	w.now = next
	for _, p := range w.sites {
		switch {
		case p.desk == nil && p.up <= w.now:
			var out grid.Outbox
			p.desk = p.disk.desk(w.t, w.now, p.cfg, &out)
			w.restart(p)
			w.carry(p, &out)
		case p.desk != nil && p.desk.NextTimer() <= w.now:
			w.step(p, grid.Tick{})
		}
	}
	slices.SortStableFunc(w.mail, func(a, b letter) int { return cmp.Compare(a.at, b.at) })
	for len(w.mail) > 0 && w.mail[0].at <= w.now {
		m := w.mail[0]
		w.mail = w.mail[1:]
		if p := w.find(m.to); p.desk != nil {
			w.step(p, &grid.Delivery{From: m.from, Message: m.message})
		}
	}
	return next < until
}

// restart is what a site does about its jobs when it is up again.
func (w *world) restart(p *party) {
	for _, d := range w.inOrder() {
		if d.payer == p && !d.over && p.desk.Cheque(d.task) == nil {
			d.over = true // it never left, or it is settled
		}
	}
}

func (w *world) inOrder() []*deal {
	return slices.SortedFunc(maps.Values(w.deals), func(a, b *deal) int { return a.task.Compare(b.task) })
}

// progress lets the agents of a deal do their part.
func (w *world) progress(d *deal) {
	if d.payer.desk == nil || d.payee.desk == nil {
		return
	}
	payer, payee := d.payer, d.payee
	var home, away grid.Outbox
	cheque := payer.desk.Cheque(d.task)
	switch {
	case d.over && !d.agreed:
		payer.desk.Unwanted(w.now, d.task, &home)
	case cheque == nil || !d.written:
	case d.plan == 2 || d.plan == 3 && w.calm:
		d.over = true
		payer.desk.Unwanted(w.now, d.task, &home)
	case d.plan == 3:
	case !d.taken:
		if payee.desk.bills[cheque.key()] != nil {
			d.taken = true
		} else if payee.desk.Good(w.now, cheque, &Charge{Bank: cheque.Bank, Payer: payer.cfg.Self, Task: d.task, Cost: d.ceiling, Until: w.now}) {
			payee.desk.Take(cheque, &away)
			d.taken = payee.desk != nil
		}
	case d.plan == 1:
		payee.desk.Release(w.now, payer.cfg.Self, d.task, &away)
	default:
		claim := payee.desk.Claim(payer.cfg.Self, d.task, d.cost)
		if claim == nil {
			return // paid, or its record was lost with the crash in which it was taken
		}
		agreement := payer.desk.Agree(d.task, payee.cfg.Self, payer.desk.Due(d.task, payee.cfg.Self, claim, d.cost), &home)
		d.agreed = true
		w.carry(payer, &home)
		if payer.desk != nil && agreement != nil {
			payee.desk.Agreed(w.now, payer.cfg.Self, d.task, d.cost, agreement, &away)
			w.carry(payee, &away)
		}
		return
	}
	w.carry(payer, &home)
	if payee.desk != nil {
		w.carry(payee, &away)
	}
}

// TestDesksUnderFaults: whatever is lost, doubled, late or crashes, every cheque is
// closed once, paid at most what was agreed, and no credit is made or lost.
func TestDesksUnderFaults(t *testing.T) {
	kinds := make(map[TransactionKind]int)
	partial := 0
	for seed := range uint64(*seeds) {
		w := newWorld(t, seed, 4, 1+int(seed%2))
		for n := range 12 {
			payer := w.sites[w.rng.IntN(len(w.sites))]
			payee := w.sites[w.rng.IntN(len(w.sites))]
			if payer == payee || payer.desk == nil {
				continue
			}
			d := &deal{task: task(uint64(n + 1)), payer: payer, payee: payee, ceiling: grid.Credits(1 + w.rng.IntN(40)), plan: max(w.rng.IntN(7)-3, 0)}
			d.cost = grid.Credits(w.rng.Int64N(int64(d.ceiling) + 1))
			w.deals[d.task] = d
			var out grid.Outbox
			payer.desk.Draw(w.now, d.task, payee.cfg.Self, d.ceiling, grid.Time(w.rng.Int64N(int64(grid.Hour))), &out)
			w.carry(payer, &out)
			if payer.desk == nil {
				d.over = d.over || !d.written
			}
			for range 6 {
				w.advance(w.now + grid.Time(w.rng.Int64N(int64(4*grid.Second))))
				for _, d := range w.inOrder() {
					w.progress(d)
				}
			}
		}
		w.calm = true
		silent := seed%3 == 0 // one payee never comes back: expiry must return what is held
		if silent {
			w.sites[3].desk, w.sites[3].up = nil, grid.Never
		}
		for round := range 300 {
			for w.advance(w.now + 20*grid.Second) {
			}
			for _, d := range w.inOrder() {
				if d.written && !d.agreed && round > 20 && d.payer.desk != nil && d.payer.desk.Cheque(d.task) != nil {
					d.over = true
				}
				w.progress(d)
			}
		}
		for w.advance(grid.Hour + 40*grid.Day) {
		}
		w.settled(silent)
		for _, kind := range w.ended {
			kinds[kind]++
		}
		for task, amount := range w.paid {
			if amount > 0 && amount < w.deals[task].ceiling {
				partial++
			}
		}
	}
	if kinds[KindRedeem] < 2**seeds || kinds[KindExpire] == 0 || partial < *seeds {
		t.Errorf("the simulation saw %v and %d partial payments: too few to mean anything", kinds, partial)
	}
}

// settled checks what must hold once nothing is under way any more.
func (w *world) settled(silent bool) {
	var total grid.Credits
	for i, p := range w.sites {
		if p.desk == nil {
			continue
		}
		payments, bills := p.desk.Open()
		if payments+bills > 0 {
			w.t.Errorf("seed %d: site %d has %d payments and %d bills left", w.seed, i, payments, bills)
		}
		l := p.desk.Ledger()
		if l == nil {
			continue
		}
		for _, site := range l.Sites() {
			b, _ := l.Balance(site)
			total += b.Settled
			if b.Committed != 0 || b.Incoming != 0 {
				w.t.Errorf("seed %d: %s has %v committed, %v in flight left", w.seed, site, b.Committed, b.Incoming)
			}
		}
	}
	if total != 0 {
		w.t.Errorf("seed %d: all accounts sum to %v", w.seed, total)
	}
	for _, d := range w.inOrder() {
		p, agreed := w.paid[d.task], d.agreed && d.taken
		if d.plan == 0 && agreed && !silent && w.ended[d.task] == KindRedeem && p != d.cost && p != 0 {
			w.t.Errorf("seed %d: %v paid for a job that costs %v", w.seed, p, d.cost)
		}
	}
}

func calmWorld(t *testing.T, sites, banks int) *world {
	w := newWorld(t, 1, sites, banks)
	w.calm = true
	return w
}

// A bank that does not answer is told from one that says no, and its coming back is told.
func TestSilentBank(t *testing.T) {
	w := calmWorld(t, 3, 1)
	bank, payer := w.sites[0], w.sites[1]
	bank.desk, bank.up = nil, w.now+grid.Minute
	var out grid.Outbox
	payer.desk.Draw(w.now, task(1), "s2", 5, grid.Hour, &out)
	var declined *Declined
	back := false
	for w.now < 2*grid.Hour && !back {
		for _, in := range out.Locals {
			switch in := in.(type) {
			case *Declined:
				declined = in
				if at := w.now - grid.Hour; at != drawMax || !in.Silent || !strings.Contains(in.Reason, "does not answer") {
					t.Errorf("declined after %v: %+v", at, in)
				}
			case *Back:
				back = true
			}
		}
		payer.disk.write(&out, -1)
		for _, s := range out.Sends {
			w.send(payer.cfg.Self, s)
		}
		out.Reset()
		if declined != nil && declined.Task == task(1) && !back {
			payer.desk.Draw(w.now, task(2), "s2", 5, grid.Hour, &out)
			if len(out.Locals) != 1 || !out.Locals[0].(*Declined).Silent || len(out.Sends) != 0 {
				t.Errorf("while it is silent: %v, %d messages", out.Locals, len(out.Sends))
			}
			declined = &Declined{}
			out.Reset()
		}
		if back {
			break
		}
		next := payer.desk.NextTimer()
		for _, m := range w.mail {
			next = min(next, m.at)
		}
		w.now = max(w.now, next)
		if bank.desk == nil && bank.up <= w.now {
			bank.desk = bank.disk.desk(t, w.now, bank.cfg, new(grid.Outbox))
		}
		mail := w.mail
		w.mail = nil
		for _, m := range mail {
			switch {
			case m.at > w.now:
				w.mail = append(w.mail, m)
			case m.to == payer.cfg.Self:
				payer.desk.Step(w.now, &grid.Delivery{From: m.from, Message: m.message}, &out)
			case bank.desk != nil:
				w.step(bank, &grid.Delivery{From: m.from, Message: m.message})
			}
		}
		payer.desk.Step(w.now, grid.Tick{}, &out)
	}
	if !back || w.now > grid.Hour+3*grid.Minute {
		t.Errorf("back %v after %v, want within two minutes of its return", back, w.now-grid.Hour)
	}
	if n, _ := payer.desk.Open(); n != 0 {
		t.Errorf("%d payments left", n)
	}
}

// Without funds a job is told its account's balance, what is held, and what it needs.
func TestInsufficientFunds(t *testing.T) {
	w := calmWorld(t, 2, 1)
	bank := w.sites[0] // it banks with itself
	b, _ := bank.desk.Ledger().Balance("s0")
	var out grid.Outbox
	bank.desk.Draw(w.now, task(1), "s1", b.Settled-1, grid.Hour, &out)
	bank.desk.Draw(w.now, task(2), "s1", 2, grid.Hour, &out)
	var locals []grid.Input
	for i := 0; i < len(out.Locals); i++ {
		if d, ok := out.Locals[i].(*grid.Delivery); ok {
			bank.desk.Step(w.now, d, &out)
		} else {
			locals = append(locals, out.Locals[i])
		}
	}
	if len(locals) != 2 {
		t.Fatalf("locals %v", locals)
	}
	if written, ok := locals[0].(*Written); !ok || written.Task != task(1) || bank.desk.Cheque(task(1)) == nil {
		t.Errorf("first: %+v", locals[0])
	}
	declined, ok := locals[1].(*Declined)
	want := fmt.Sprintf("insufficient funds at bank s0: balance %v credits, of which %v are held; 0.000002 needed", b.Settled, b.Settled-1)
	if !ok || declined.Silent || declined.Reason != want {
		t.Errorf("second: %+v, want %q", locals[1], want)
	}
	if bank.desk.Stats().Refused[NoFunds.String()] != 1 {
		t.Errorf("refusals %v", bank.desk.Stats().Refused)
	}
}

// What a payee does not take.
// TestNobodySignsForMore: payer and payee sign for what their cheque is over at most, and for nothing less than nothing.
func TestNobodySignsForMore(t *testing.T) {
	c := Cheque{Bank: here, Payer: alice, Payee: bob, Task: task(1), Ceiling: 5, Expires: grid.Day}
	for amount, want := range map[grid.Credits]grid.Credits{-1: 0, 4: 4, 5: 5, 6: 5} {
		var out grid.Outbox
		payee := NewDesk(Config{Self: bob, Accept: []grid.SiteID{here}}, 1)
		payee.Take(&c, &out)
		if r := payee.Claim(alice, c.Task, amount); r == nil || r.Amount != want {
			t.Errorf("by a cheque over %v, %v is claimed as %+v, want %v", c.Ceiling, amount, r, want)
		}
		payer := NewDesk(Config{Self: alice, Bank: here}, 1)
		payer.Draw(0, c.Task, bob, c.Ceiling, grid.Hour, &out)
		payer.Step(0, &grid.Delivery{From: here, Message: &Drawn{Task: c.Task, Cheque: &c}}, &out)
		if r := payer.Agree(c.Task, bob, amount, &out); r == nil || r.Amount != want {
			t.Errorf("by a cheque over %v, %v is agreed to as %+v, want %v", c.Ceiling, amount, r, want)
		}
	}
}

// TestBadCheques: a cheque that does not pay for what it is to pay for is not taken.
func TestBadCheques(t *testing.T) {
	d := NewDesk(Config{Self: bob, Accept: []grid.SiteID{here}}, 1)
	good := Cheque{Bank: here, Payer: alice, Payee: bob, Task: task(1), Ceiling: 5, Expires: grid.Day}
	ok := func(c *Cheque) bool {
		return d.Good(1, c, &Charge{Bank: here, Payer: alice, Task: task(1), Cost: 5, Until: grid.Hour})
	}
	if !ok(&good) || !d.Accepts(here) || d.Accepts("") || d.Accepts(carol) {
		t.Fatal("a good cheque is not taken, or a bad bank's is")
	}
	for name, spoil := range map[string]func(c *Cheque){
		"other bank":  func(c *Cheque) { c.Bank = carol },
		"other payer": func(c *Cheque) { c.Payer = carol },
		"other payee": func(c *Cheque) { c.Payee = carol },
		"other job":   func(c *Cheque) { c.Task = task(2) },
		"too little":  func(c *Cheque) { c.Ceiling = 4 },
		"too short":   func(c *Cheque) { c.Expires = grid.Hour + graceMin - 1 },
	} {
		c := good
		if spoil(&c); ok(&c) {
			t.Errorf("%s: taken", name)
		}
	}
	if ok(nil) {
		t.Error("no cheque is taken for one")
	}
	var out grid.Outbox
	d.Take(&good, &out)
	if ok(&good) {
		t.Error("a cheque is taken twice")
	}
	// Somebody else's receipt, or none, redeems nothing.
	out.Reset()
	d.Agreed(2, alice, task(1), 5, receipt(&good, bob, 5), &out)
	if r, sent := out.Sends[0].Message.(*Redeem); !sent || r.Claim.Amount != 0 || r.Agreement != nil || d.Stats().Unpaid != 5 {
		t.Errorf("without the payer's receipt: %+v, unpaid %v", out.Sends[0].Message, d.Stats().Unpaid)
	}
}

// A site must not believe a bank that writes another cheque than was asked for, nor
// another site that speaks for its bank.
func TestForeignAnswers(t *testing.T) {
	var out grid.Outbox
	d := NewDesk(Config{Self: alice, Bank: here}, 1)
	d.Draw(1, task(1), bob, 5, grid.Hour, &out)
	c := Cheque{Bank: here, Payer: alice, Payee: bob, Task: task(1), Ceiling: 5, Expires: grid.Day}
	for _, tt := range []struct {
		from  grid.SiteID
		spoil func(c *Cheque)
	}{
		{carol, func(*Cheque) {}}, {here, func(c *Cheque) { c.Ceiling = 1 }}, {here, func(c *Cheque) { c.Payee = carol }},
		{here, func(c *Cheque) { c.Payer = carol }}, {here, func(c *Cheque) { c.Bank = carol }},
	} {
		other := c
		tt.spoil(&other)
		out.Reset()
		d.Step(2, &grid.Delivery{From: tt.from, Message: &Drawn{Task: task(1), Cheque: &other}}, &out)
		if d.Cheque(task(1)) != nil || len(out.Locals) != 0 {
			t.Fatalf("taken from %s: %+v", tt.from, other)
		}
	}
	d.Step(3, &grid.Delivery{From: here, Message: &Drawn{Task: task(1), Cheque: &c}}, &out)
	if d.Cheque(task(1)) == nil {
		t.Fatal("the cheque is not taken")
	}
	d.Step(4, &grid.Delivery{From: carol, Message: &Settled{Task: task(1), Paid: 5}}, &out)
	if d.Cheque(task(1)) == nil {
		t.Fatal("settled by a stranger")
	}
	d.Step(5, &grid.Delivery{From: carol, Message: &Return{Cheque: &c}}, &out)
	if _, bills := d.Open(); bills != 0 {
		t.Error("a return of somebody else's cheque is acted on")
	}
}

// Users' questions: answered by the bank, by the books here, or not at all.
func TestQuestions(t *testing.T) {
	w := calmWorld(t, 3, 1)
	bank, client := w.sites[0], w.sites[1]
	ask := func(p *party, in grid.Input) *Statement {
		t.Helper()
		var out grid.Outbox
		p.desk.Step(w.now, in, &out)
		for end := w.now + grid.Minute; len(out.Answers) == 0 && w.now < end; {
			for _, l := range out.Locals {
				p.desk.Step(w.now, l, &out)
			}
			for _, s := range out.Sends {
				if to := w.find(s.To); to.desk != nil {
					var there grid.Outbox
					to.desk.Step(w.now, &grid.Delivery{From: p.cfg.Self, Message: s.Message}, &there)
					for _, reply := range there.Sends {
						p.desk.Step(w.now, &grid.Delivery{From: s.To, Message: reply.Message}, &out)
					}
				}
			}
			out.Sends, out.Locals = nil, nil
			if len(out.Answers) == 0 {
				w.now = p.desk.NextTimer()
				p.desk.Step(w.now, grid.Tick{}, &out)
			}
		}
		if len(out.Answers) != 1 || out.Answers[0].Token != 7 {
			t.Fatalf("answers %v", out.Answers)
		}
		return out.Answers[0].Value.(*Statement)
	}
	before := ask(client, &Question{Token: 7, Limit: 10})
	if before.Refusal != Done || before.Bank != "s0" || before.Account != "s1" || before.Balance.Settled == 0 || len(before.Transactions) != 1 {
		t.Errorf("balance: %+v", before)
	}
	move := &Transfer{Token: 7, ID: id(50), To: "s2", Amount: 3}
	for range 2 {
		if a := ask(client, move); a.Refusal != Done || a.Balance.Settled != before.Balance.Settled-3 {
			t.Errorf("transfer: %+v", a)
		}
	}
	if a := ask(client, &Transfer{Token: 7, ID: id(51), To: "nobody", Amount: 3}); a.Refusal != NoPayee {
		t.Errorf("transfer to nobody: %+v", a)
	}
	if a := ask(client, &Grant{Token: 7, ID: id(52), To: "s1", Amount: 3}); a.Refusal != NoBank {
		t.Errorf("a client grants: %+v", a)
	}
	if a := ask(client, &Question{Token: 7, Account: "s2"}); a.Refusal != NoBank {
		t.Errorf("a client looks into another's account: %+v", a)
	}
	if a := ask(bank, &Question{Token: 7, Account: "s2", Limit: 1}); a.Refusal != Done || len(a.Transactions) != 1 || a.Transactions[0].Kind != KindTransfer {
		t.Errorf("the bank looks: %+v", a)
	}
	if a := ask(bank, &Question{Token: 7, All: true}); a.Refusal != Done || len(a.Accounts) != 4 {
		t.Errorf("all accounts: %+v", a)
	}
	if a := ask(bank, &Question{Token: 7}); a.Refusal != Done || a.Account != "s0" {
		t.Errorf("the bank's own: %+v", a)
	}
	bank.desk = nil
	if a := ask(client, &Question{Token: 7}); !a.Silent {
		t.Errorf("a silent bank: %+v", a)
	}
	alone := &party{cfg: Config{Self: "s9"}}
	alone.desk = NewDesk(alone.cfg, 1)
	w.sites = append(w.sites, alone)
	if a := ask(alone, &Question{Token: 7}); a.Refusal != NoBank {
		t.Errorf("without a bank: %+v", a)
	}
}

// A bank that certainly cannot be reached is not waited for.
func TestUnreachableBank(t *testing.T) {
	var out grid.Outbox
	d := NewDesk(Config{Self: alice, Bank: here}, 1)
	d.Draw(1, task(1), bob, 5, grid.Hour, &out)
	draw := out.Sends[0].Message
	out.Reset()
	d.Step(2, &grid.Undelivered{To: carol, Message: draw}, &out)
	if len(out.Locals) != 0 {
		t.Fatalf("another site cannot be reached: %v", out.Locals)
	}
	d.Step(3, &grid.Undelivered{To: here, Message: draw}, &out)
	if declined, ok := out.Locals[0].(*Declined); !ok || !declined.Silent || declined.Task != task(1) {
		t.Fatalf("locals %v", out.Locals)
	}
	again := out.Sends[0].Message.(*Draw)
	if !again.Withdrawn {
		t.Error("the draw is repeated as if somebody wanted it")
	}
	out.Reset()
	d.Step(4, &grid.Undelivered{To: here, Message: again}, &out) // a timer repeats it
	if len(out.Locals) != 0 || d.NextTimer() > 3+2*drawPause {
		t.Errorf("locals %v, timer at %v", out.Locals, d.NextTimer())
	}
	d.Step(5, &grid.Delivery{From: here, Message: &Drawn{Task: task(1), Refusal: Closed}}, &out)
	if _, ok := out.Locals[0].(*Back); !ok || d.NextTimer() != grid.Never {
		t.Errorf("locals %v, timer at %v", out.Locals, d.NextTimer())
	}
}

// TestRefusedThenWritten: a draw is refused for want of funds, and so withdrawn; a second copy
// of that answer settles nothing, as a copy of the draw that comes later may find funds. The
// cheque of that one is given back at once.
func TestRefusedThenWritten(t *testing.T) {
	d := NewDesk(Config{Self: alice, Bank: "bank"}, 1)
	var out grid.Outbox
	d.Draw(grid.Hour, task(1), bob, credits(3), grid.Hour, &out)
	out.Reset()
	answer := func(m *Drawn) {
		d.Step(grid.Hour+1, &grid.Delivery{From: "bank", Message: m}, &out)
	}
	answer(&Drawn{Task: task(1), Refusal: NoFunds})
	answer(&Drawn{Task: task(1), Refusal: NoFunds})
	if open, _ := d.Open(); open != 1 {
		t.Fatalf("%d cheques are known, want the one that may be written still", open)
	}
	out.Reset()
	answer(&Drawn{Task: task(1), Cheque: &Cheque{Bank: "bank", Payer: alice, Payee: bob, Task: task(1), Ceiling: credits(3), Expires: 3 * grid.Hour}})
	for _, s := range out.Sends {
		if r, yes := s.Message.(*Return); yes && s.To == bob && r.Cheque.Task == task(1) {
			return
		}
	}
	t.Errorf("%+v: want the cheque to be given back", out.Sends)
}
