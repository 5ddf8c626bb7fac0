package chaos

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// What a thief does. It signs for itself only: what it would have to forge a real node's
// decoder drops, and a sender is who it says.
const (
	signsNothing = iota // as a home: it acknowledges results without a receipt
	signsLess           // as a home: its receipts are over a tenth
	takesBack           // as a home: it withdraws the cheque and asks for it back once the job is away
	cashesItsOwn        // as a home: it presents the cheques that it has written itself
	claimsMore          // as an executing site: jobs have run a hundred times as long
	redeemsAgain        // as an executing site: it presents each cheque three times, for all of it
	keepsCheques        // as an executing site: it presents no cheque
	claimsIdly          // as an executing site: it presents cheques before their jobs have ended
	kindsOfThieves
)

// thief is a site that changes what it says about money.
type thief struct {
	*site.Site
	id   grid.SiteID
	does int
}

func (t *thief) Core() *site.Site { return t.Site }

// Step implements testnet.Site.
func (t *thief) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	before := len(out.Effects)
	t.Site.Step(now, in, out)
	t.early(in, out)
	said := append([]grid.Effect(nil), out.Effects[before:]...)
	out.Effects = out.Effects[:before]
	for _, e := range said {
		if e.Kind != grid.EffectSend || t.says(e.Index, out) {
			out.Effects = append(out.Effects, e)
		}
	}
}

// says changes the message of an effect, says more beside it, or reports that it is not sent.
func (t *thief) says(index int32, out *grid.Outbox) bool {
	to, own := out.Sends[index].To, t.id
	switch m := out.Sends[index].Message.(type) {
	case *market.Acknowledge:
		if m.Agreement == nil || t.does != signsNothing && t.does != signsLess {
			break
		}
		lie := *m
		lie.Agreement = nil
		if t.does == signsLess {
			less := *m.Agreement
			less.Amount /= 10
			lie.Agreement = &less
		}
		out.Sends[index].Message = &lie
	case *market.JobSubmission:
		c := m.Cheque
		switch {
		case c == nil:
		case t.does == takesBack:
			out.Send(c.Bank, &bank.Draw{Task: c.Task, Payee: c.Payee, Ceiling: c.Ceiling, Lifetime: grid.Hour, Withdrawn: true})
			out.Send(to, &bank.Return{Cheque: c})
		case t.does == cashesItsOwn:
			receipt := func(signer grid.SiteID) *bank.Receipt {
				return &bank.Receipt{Bank: c.Bank, Payer: c.Payer, Payee: c.Payee, Task: c.Task, Amount: c.Ceiling, Signer: signer}
			}
			out.Send(c.Bank, &bank.Redeem{Cheque: c, Claim: receipt(own), Agreement: receipt(own)})
		}
	case *market.JobCompletion:
		if m.Claim != nil && t.does == claimsMore {
			lie, claim := *m, *m.Claim
			lie.Run, lie.Cost = m.Run*100, m.Cost*100
			claim.Amount = lie.Cost
			lie.Claim = &claim
			out.Sends[index].Message = &lie
		}
	case *bank.Redeem:
		all := *m.Claim
		all.Amount = m.Cheque.Ceiling
		switch t.does {
		case keepsCheques:
			return false
		case redeemsAgain:
			out.Sends[index].Message = &bank.Redeem{Cheque: m.Cheque, Claim: &all, Agreement: m.Agreement}
			for range 2 {
				out.Send(to, &bank.Redeem{Cheque: m.Cheque, Claim: &all, Agreement: m.Agreement})
			}
		}
	}
	return true
}

// early has a thief present each cheque as soon as it has it, with a receipt of its own alone.
func (t *thief) early(in grid.Input, out *grid.Outbox) {
	d, ok := in.(*grid.Delivery)
	if !ok || t.does != claimsIdly {
		return
	}
	if m, ok := d.Message.(*market.JobSubmission); ok && m.Cheque != nil && m.Cheque.Payee == t.id {
		c := m.Cheque
		claim := &bank.Receipt{Bank: c.Bank, Payer: c.Payer, Payee: c.Payee, Task: c.Task, Amount: c.Ceiling, Signer: c.Payee}
		out.Send(c.Bank, &bank.Redeem{Cheque: c, Claim: claim, Agreement: claim})
	}
}

// TestThieves: a fifth of all sites cheat the others for a day. No credit is made or lost,
// nobody honest pays more than its own meter says, no honest site is paid less than honest
// homes owe it, and who does not sign soon finds nobody who works for it.
func TestThieves(t *testing.T) {
	const (
		sites, thieves = 40, 8
		told           = 10 * grid.Minute // until a site knows that a home does not sign, whatever gets lost
	)
	span := grid.Day
	if testing.Short() {
		span = 2 * grid.Hour
	}
	does := make(map[grid.SiteID]int)
	var watch *testnet.Checker
	f := federation.Builder{
		Config:    testnet.Config{Seed: 11, Inputs: scenario.Inputs(), Durable: true, Link: chaosLink(map[string]float64{"loss": 0.01, "duplicate": 0.01})},
		Placement: market.PlacementCoordinated, Foreign: true, Sites: chaosSites(sites), Retention: grid.Day, Bank: chaosBank(sites, (*roster)(nil).id),
		Wrap: func(id grid.SiteID, s *site.Site) testnet.Site {
			if kind, yes := does[id]; yes {
				return &thief{Site: s, id: id, does: kind}
			}
			return s
		},
	}
	for k, i := range rand.New(rand.NewPCG(3, 4)).Perm(sites - 2)[:thieves] {
		does[f.ID(i+2)] = k % kindsOfThieves // the banks are honest: who banks trusts its bank
	}
	n, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	watch = testnet.Check(n, f.Processors(), scenario.Submission)
	money := watchBooks(n, watch, []int{0, 1})
	var granted grid.Credits
	for i := range sites {
		where, _ := n.Index(chaosBank(sites, n.ID)(i).Bank)
		n.Inject(federation.Warmup/2, where, &bank.Grant{ID: grid.JobID{Hi: 1, Lo: uint64(i + 1)}, To: n.ID(i), Amount: 1_000_000 * grid.Credit})
		granted += 1_000_000 * grid.Credit
	}
	source, err := chaosFeed(&Script{Seed: 11, Config: Config{Sites: sites, Hours: span.Seconds() / 3600}}, &f, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Feed(source)
	worked := make(map[pair]grid.Credits) // what jobs that ended had cost by the driver's clock, by home and site
	unpaid := make(map[pair]int)          // jobs that began for homes that do not sign
	ended := make(map[pair]int)           // and ended
	owes := make(map[pair]grid.Time)      // since when three have
	type job struct {
		pair
		grid.JobID
	}
	sent := make(map[job]grid.Time) // when a job of such a home first left for a site
	late := make(map[pair]int)      // how many began that had left long after three had ended
	unsigned := func(home grid.SiteID) bool {
		kind, thief := does[home]
		return thief && kind <= signsLess
	}
	n.Observe(testnet.Observer{
		Start: func(_ grid.Time, x *testnet.Execution) {
			if p := (pair{x.Job.Home, n.ID(x.Site)}); p.payer != p.payee && unsigned(p.payer) {
				unpaid[p]++
				if since, owing := owes[p]; owing && sent[job{p, x.Job.ID}] > since.Add(told) {
					late[p]++
				}
			}
		},
		Send: func(now grid.Time, from int, to grid.SiteID, m grid.Message) {
			if m, ok := m.(*market.JobSubmission); ok && unsigned(n.ID(from)) {
				if at := (job{pair{n.ID(from), to}, m.Job.ID}); sent[at] == 0 {
					sent[at] = now
				}
			}
		},
		End: func(now grid.Time, x *testnet.Execution) {
			if p := (pair{x.Job.Home, n.ID(x.Site)}); p.payer != p.payee {
				s := &f.Sites[x.Site]
				computing := grid.Work{Instructions: x.Job.Work.Instructions}.At(s.Rating)
				share := float64(computing) / float64(x.Job.Work.At(s.Rating)) // eq. 3 charges for no more
				if ended[p]++; unsigned(p.payer) && ended[p] == 3 {
					owes[p] = now
				}
				worked[p] += grid.CostPaper.Cost(s.Price, 1, grid.Time(float64(x.End-x.Start)*share))
			}
		},
	})
	if err := n.Run(t.Context(), federation.Warmup+span+grid.Day, nil); err != nil {
		t.Fatal(err)
	}
	if err := watch.Violation(n.Now()); err != nil {
		t.Fatal(err)
	}
	var sum grid.Credits
	paid := make(map[pair]grid.Credits)
	for _, own := range money.own {
		for id, balance := range own.accounts {
			if id != bank.Issuer {
				sum += balance.Settled + balance.Committed
			}
		}
		for p, amount := range own.paid {
			paid[p] += amount
		}
	}
	if sum != granted {
		t.Errorf("accounts hold %v, %v were granted", sum, granted)
	}
	var fair, fromThieves, dueFromThieves, toThieves grid.Credits
	for i := range sites {
		for j := range sites {
			p := pair{n.ID(i), n.ID(j)}
			_, payerSteals := does[p.payer]
			_, payeeSteals := does[p.payee]
			got, due := paid[p], worked[p]
			switch tolerance := due/100 + grid.Credit/100; {
			case !payerSteals && got > due+tolerance:
				t.Errorf("%s has paid %v to %s (which %v) for work of %v", p.payer, got, p.payee, does[p.payee], due)
			case !payerSteals && !payeeSteals && got < due-tolerance:
				t.Errorf("%s has paid %v to %s for work of %v", p.payer, got, p.payee, due)
			}
			switch {
			case !payerSteals && !payeeSteals:
				fair += got
			case payerSteals && !payeeSteals:
				fromThieves += got
				dueFromThieves += due
			case payeeSteals:
				toThieves += got
			}
		}
	}
	most, after := 0, 0
	for p, jobs := range unpaid {
		most, after = max(most, jobs), max(after, late[p])
	}
	t.Logf("honest sites paid each other %v; thieves paid them %v for %v, and were paid %v; a home that does not sign had %d jobs at one site, %d of which had left for it after three had ended", fair, fromThieves, dueFromThieves, toThieves, most, after)
	if fair == 0 || toThieves == 0 || dueFromThieves <= fromThieves {
		t.Error("too little happened")
	}
	if after > 0 { // what was there already goes on
		t.Errorf("a site has worked for %d jobs of a home that came after three for which it had not signed", after)
	}
}
