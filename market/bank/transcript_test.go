package bank

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
)

// TestTranscripts runs testdata/*.txt: each command is followed by everything that
// happened because of it: what was stored, told and sent, in this order. Commands, with
// sites, tasks (by number) and credits as their arguments:
//
//	site name=a bank=b [offer]                              a site that banks with b, or keeps a bank
//	grant bank=b to=a credits=1 id=1 | transfer from=a to=c credits=1 id=1
//	ask site=a [account=c | all]                            what is in an account
//	draw task=1 payer=a payee=c ceiling=3 [for=1h]          a job waits for its cheque
//	take task=1 payer=a payee=c [cost=3]                    the payee keeps the cheque that came with the job
//	end task=1 payer=a payee=c costs=2 [signs=2] [lose]     the job has ended: receipts of both sides; signs is home's meter, lose its receipt
//	unwanted task=1 payer=a | release task=1 payer=a payee=c
//	present task=1 payer=a payee=c [claim=2 agreed=2 from=x] a redemption made by hand, on its way to the bank
//	deliver [count=1]                                       messages under way arrive, and those that they cause, or only so many
//	drop all                                                all messages under way are lost
//	drop | copy | last | undeliverable                      the first one is lost, doubled, overtaken by all others, or certainly never arrives
//	advance for=5s                                          time passes; messages stay under way
//	break site=a records=1                                  of what its next step stores, only so many records are; nothing leaves, and it is down
//	crash site=a | restart site=a
//	books bank=b                                            the accounts, which balance
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // a fuzzer's corpus
		}
		c := &counter{now: grid.Hour, sites: make(map[grid.SiteID]*teller)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c.t, c.d = t, d
			c.command()
			return c.takeTrace()
		})
	})
}

// counter is what a transcript plays in: desks, and the mail between them.
type counter struct {
	t     *testing.T
	d     *datadriven.TestData
	now   grid.Time
	sites map[grid.SiteID]*teller
	mail  []letter
	trace []string
}

// teller is one site.
type teller struct {
	cfg   Config
	desk  *Desk // nil while it is down
	disk  disk
	limit int // records that the next step stores before the site crashes; -1: all, and it does not
}

func (c *counter) command() {
	if slices.Contains([]string{"drop", "copy", "last", "undeliverable"}, c.d.Cmd) && len(c.mail) == 0 {
		c.t.Fatalf("%s: no message is under way", c.d.Pos)
	}
	switch c.d.Cmd {
	case "site":
		cfg := Config{Self: c.site("name"), Bank: c.site("bank"), Offer: c.d.HasArg("offer")}
		c.sites[cfg.Self] = &teller{cfg: cfg, desk: NewDesk(cfg, 1), disk: disk{}, limit: -1}
	case "grant":
		c.step(c.site("bank"), &Grant{Token: 1, ID: id(c.number("id", 0)), To: c.site("to"), Amount: c.credits("credits", 0)})
	case "transfer":
		c.step(c.site("from"), &Transfer{Token: 1, ID: id(c.number("id", 0)), To: c.site("to"), Amount: c.credits("credits", 0)})
	case "ask":
		c.step(c.site("site"), &Question{Token: 1, Account: c.site("account"), Limit: 10, All: c.d.HasArg("all")})
	case "draw":
		c.at("payer", func(d *Desk, out *grid.Outbox) {
			d.Draw(c.now, c.task(), c.site("payee"), c.credits("ceiling", 0), c.span("for", grid.Hour), out)
		})
	case "take":
		c.take()
	case "end":
		c.end()
	case "unwanted":
		c.at("payer", func(d *Desk, out *grid.Outbox) { d.Unwanted(c.now, c.task(), out) })
	case "release":
		c.at("payee", func(d *Desk, out *grid.Outbox) { d.Release(c.now, c.site("payer"), c.task(), out) })
	case "present":
		c.present()
	case "deliver":
		for n := c.number("count", 1000); n > 0 && len(c.mail) > 0; n-- {
			m := c.mail[0]
			c.mail = c.mail[1:]
			c.step(m.to, &grid.Delivery{From: m.from, Message: m.message})
		}
	case "drop":
		c.mail = c.mail[1:]
		if c.d.HasArg("all") {
			c.mail = nil
		}
	case "copy":
		c.mail = append(c.mail[:1:1], c.mail...)
	case "last":
		c.mail = append(c.mail[1:], c.mail[0])
	case "undeliverable":
		m := c.mail[0]
		c.mail = c.mail[1:]
		c.step(m.from, &grid.Undelivered{To: m.to, Message: m.message})
	case "advance":
		c.advance(c.span("for", grid.Second))
	case "break":
		c.sites[c.site("site")].limit = int(c.number("records", 0))
	case "crash":
		c.sites[c.site("site")].desk = nil
	case "restart":
		p, out := c.sites[c.site("site")], new(grid.Outbox)
		p.limit = -1
		p.desk = p.disk.desk(c.t, c.now, p.cfg, out)
		c.carry(p, out)
	case "books":
		c.books(c.sites[c.site("bank")].desk.Ledger())
	default:
		c.t.Fatalf("%s: unknown command %s", c.d.Pos, c.d.Cmd)
	}
}

// at does something at the site that an argument names.
func (c *counter) at(role string, do func(d *Desk, out *grid.Outbox)) {
	p, out := c.sites[c.site(role)], new(grid.Outbox)
	if p.desk == nil {
		c.logf("%s is down", p.cfg.Self)
		return
	}
	do(p.desk, out)
	c.carry(p, out)
}

func (c *counter) step(site grid.SiteID, in grid.Input) {
	p, out := c.sites[site], new(grid.Outbox)
	if p.desk == nil {
		return
	}
	p.desk.Step(c.now, in, out)
	c.carry(p, out)
}

// carry stores and tells what a step orders, feeds what is for the site itself, and
// puts messages on their way.
func (c *counter) carry(p *teller, out *grid.Outbox) {
	for i := 0; i < len(out.Locals); i++ {
		switch in := out.Locals[i].(type) {
		case *grid.Delivery:
			c.logf("%s->itself %s", p.cfg.Self, describe(in.Message))
			p.desk.Step(c.now, in, out)
		case *Written:
			c.logf("%s: written j%d", p.cfg.Self, in.Task.Job.Lo)
		case *Declined:
			c.logf("%s: declined j%d: %s", p.cfg.Self, in.Task.Job.Lo, in.Reason)
		case *Back:
			c.logf("%s: the bank is back", p.cfg.Self)
		}
	}
	left := p.limit
	for _, e := range out.Effects {
		if e.Kind != grid.EffectSave && e.Kind != grid.EffectDelete || left == 0 {
			continue
		}
		left--
		verb := map[grid.EffectKind]string{grid.EffectSave: "stores", grid.EffectDelete: "forgets"}[e.Kind]
		c.logf("%s %s %s", p.cfg.Self, verb, describeRecord(out.Records[e.Index]))
	}
	p.disk.write(out, p.limit)
	if p.limit >= 0 {
		c.logf("%s crashes", p.cfg.Self)
		p.desk = nil
		return
	}
	for _, a := range out.Answers {
		c.logf("%s: %s", p.cfg.Self, describeStatement(a.Value.(*Statement)))
	}
	for _, s := range out.Sends {
		c.logf("%s->%s %s", p.cfg.Self, s.To, describe(s.Message))
		c.mail = append(c.mail, letter{c.now, p.cfg.Self, s.To, s.Message})
	}
}

// take is what the executing site does with the job's cheque.
func (c *counter) take() {
	cheque := c.sites[c.site("payer")].desk.Cheque(c.task())
	if cheque == nil {
		c.logf("%s has no cheque for the job", c.site("payer"))
		return
	}
	c.at("payee", func(d *Desk, out *grid.Outbox) {
		charge := &Charge{Bank: cheque.Bank, Payer: cheque.Payer, Task: cheque.Task, Cost: c.credits("cost", cheque.Ceiling), Until: c.now}
		if !d.Good(c.now, cheque, charge) {
			c.logf("%s: the cheque is not good", d.cfg.Self)
			return
		}
		d.Take(cheque, out)
	})
}

// end is completion and acknowledgement between the agents of both sides.
func (c *counter) end() {
	payer, payee, costs := c.site("payer"), c.site("payee"), c.credits("costs", 0)
	claim := c.sites[payee].desk.Claim(payer, c.task(), costs)
	c.logf("%s->%s job-completion with %s", payee, payer, describeReceipt(claim))
	var agreement *Receipt
	c.at("payer", func(d *Desk, out *grid.Outbox) {
		agreement = d.Agree(c.task(), payee, d.Due(c.task(), payee, claim, c.credits("signs", costs)), out)
	})
	c.logf("%s->%s acknowledge with %s", payer, payee, describeReceipt(agreement))
	if c.d.HasArg("lose") {
		return
	}
	c.at("payee", func(d *Desk, out *grid.Outbox) { d.Agreed(c.now, payer, c.task(), costs, agreement, out) })
}

// present sends a redemption that no honest desk would.
func (c *counter) present() {
	cheque := c.sites[c.site("payer")].desk.Cheque(c.task())
	r := &Redeem{Cheque: cheque, Claim: receipt(cheque, cheque.Payee, c.credits("claim", cheque.Ceiling))}
	if c.d.HasArg("agreed") {
		r.Agreement = receipt(cheque, cheque.Payer, c.credits("agreed", 0))
	}
	from := cheque.Payee
	if c.d.HasArg("from") {
		from = c.site("from")
	}
	c.logf("%s->%s %s", from, cheque.Bank, describe(r))
	c.mail = append(c.mail, letter{c.now, from, cheque.Bank, r})
}

// advance lets time pass, timer by timer.
func (c *counter) advance(span grid.Time) {
	end := c.now.Add(span)
	before, same := "", 0
	for {
		next := grid.Never
		for _, id := range slices.Sorted(maps.Keys(c.sites)) {
			if p := c.sites[id]; p.desk != nil {
				next = min(next, p.desk.NextTimer())
			}
		}
		if next > end {
			break
		}
		c.now = max(c.now, next)
		at := len(c.trace)
		c.logf("at %v", (c.now - end.Add(-span)).Duration().Round(time.Second))
		for _, id := range slices.Sorted(maps.Keys(c.sites)) {
			if p := c.sites[id]; p.desk != nil && p.desk.NextTimer() <= c.now {
				c.step(id, grid.Tick{})
			}
		}
		if now := strings.Join(c.trace[at+1:], "\n"); now == before {
			c.trace, same = c.trace[:at], same+1
		} else {
			before = now
		}
	}
	if same > 0 {
		c.logf("(what came last %d times more)", same)
	}
	c.now = end
}

func (c *counter) books(l *Ledger) {
	for _, site := range l.Sites() {
		b, _ := l.Balance(site)
		c.logf("%-8s settled=%v in-flight=%v committed=%v", site, b.Settled, b.Incoming, b.Committed)
	}
	if err := l.Audit(); err != nil {
		c.t.Errorf("%s: %v", c.d.Pos, err)
	}
}

func (c *counter) logf(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

// takeTrace returns what happened since the last call.
func (c *counter) takeTrace() string {
	if len(c.trace) == 0 {
		return "(nothing)\n"
	}
	text := strings.Join(c.trace, "\n") + "\n"
	c.trace = nil
	return text
}

func (c *counter) text(key string) string {
	for _, arg := range c.d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return ""
}

func (c *counter) site(key string) grid.SiteID { return grid.SiteID(c.text(key)) }
func (c *counter) task() grid.TaskID           { return task(c.number("task", 0)) }

func (c *counter) number(key string, def uint64) uint64 {
	if c.text(key) == "" {
		return def
	}
	n, err := strconv.ParseUint(c.text(key), 10, 64)
	if err != nil {
		c.t.Fatalf("%s: %v", c.d.Pos, err)
	}
	return n
}

func (c *counter) credits(key string, def grid.Credits) grid.Credits {
	if c.text(key) == "" {
		return def
	}
	v, err := grid.ParseCredits(c.text(key))
	if err != nil {
		c.t.Fatalf("%s: %v", c.d.Pos, err)
	}
	return v
}

func (c *counter) span(key string, def grid.Time) grid.Time {
	if c.text(key) == "" {
		return def
	}
	span, err := time.ParseDuration(c.text(key))
	if err != nil {
		c.t.Fatalf("%s: %v", c.d.Pos, err)
	}
	return grid.FromDuration(span)
}

func describeReceipt(r *Receipt) string {
	if r == nil {
		return "no receipt"
	}
	return fmt.Sprintf("receipt of %s over %v", r.Signer, r.Amount)
}

func describeStatement(s *Statement) string {
	switch {
	case s.Silent:
		return fmt.Sprintf("bank %s is silent", s.Bank)
	case s.Refusal != Done:
		return fmt.Sprintf("bank %s refuses: %v", s.Bank, s.Refusal)
	}
	text := fmt.Sprintf("account %s settled=%v in-flight=%v committed=%v", s.Account, s.Balance.Settled, s.Balance.Incoming, s.Balance.Committed)
	for _, t := range s.Transactions {
		text += fmt.Sprintf("\n  %s", describeRecord(t))
	}
	for _, a := range s.Accounts {
		text += fmt.Sprintf("\n  %s settled=%v committed=%v", a.Site, a.Settled, a.Committed)
	}
	return text
}

func describeRecord(r grid.Record) string {
	switch r := r.(type) {
	case *Transaction:
		text := fmt.Sprintf("transaction %d %v %s->%s %v", r.Sequence, r.Kind, r.Payer, r.Payee, r.Amount)
		if r.Refund > 0 {
			text += fmt.Sprintf(", %v back", r.Refund)
		}
		return text
	case *accountRecord:
		return fmt.Sprintf("account %s settled=%v committed=%v", r.of.site, r.settled, r.committed)
	case *hold:
		return fmt.Sprintf("cheque j%d of %s %s", r.Task.Job.Lo, r.Payer, [...]string{"", "open", "redeemed", "expired", "withdrawn"}[r.state])
	case *payment:
		return fmt.Sprintf("payment j%d to %s %s", r.Task.Job.Lo, r.Payee, [...]string{"", "drawing", "held", "agreed", "withdrawn", "returning"}[r.state])
	case *bill:
		return fmt.Sprintf("bill j%d of %s %s", r.Task.Job.Lo, r.Payer, [...]string{"", "open", "redeeming"}[r.state])
	}
	return fmt.Sprintf("%T", r)
}

func describe(m grid.Message) string {
	switch m := m.(type) {
	case *Draw:
		text := fmt.Sprintf("draw j%d for %s over %v", m.Task.Job.Lo, m.Payee, m.Ceiling)
		if m.Withdrawn {
			text += ", withdrawn"
		}
		return text
	case *Drawn:
		return fmt.Sprintf("drawn j%d (%v), settled=%v committed=%v", m.Task.Job.Lo, m.Refusal, m.Settled, m.Committed)
	case *Return:
		return fmt.Sprintf("return j%d", m.Cheque.Task.Job.Lo)
	case *Redeem:
		return fmt.Sprintf("redeem j%d with %s and %s", m.Cheque.Task.Job.Lo, describeReceipt(m.Claim), describeReceipt(m.Agreement))
	case *Redeemed:
		return fmt.Sprintf("redeemed j%d (%v) %v", m.Task.Job.Lo, m.Refusal, m.Paid)
	case *Settled:
		return fmt.Sprintf("settled j%d %v", m.Task.Job.Lo, m.Paid)
	case *TransferRequest:
		return fmt.Sprintf("transfer %d to %s %v", m.ID.Lo, m.To, m.Amount)
	case *TransferReply:
		return fmt.Sprintf("transferred %d (%v), settled=%v committed=%v", m.ID.Lo, m.Refusal, m.Settled, m.Committed)
	case *Inquire:
		return "inquire"
	case *Inform:
		return fmt.Sprintf("inform (%v) of %d transactions", m.Refusal, len(m.Transactions))
	}
	return fmt.Sprintf("%T", m)
}
