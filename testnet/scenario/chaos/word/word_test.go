package word

import (
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/site"
	"gridnode/testnet"
)

// nobody is a site that does nothing.
type nobody struct{}

func (nobody) Step(grid.Time, grid.Input, *grid.Outbox) {}
func (nobody) NextTimer() grid.Time                     { return grid.Never }

// journal is what one bank has written down.
type journal struct {
	paid          grid.Credits
	written, open bool
	closed        grid.Time
	balance       bank.Balance
}

func (j *journal) Paid(int, grid.SiteID, grid.TaskID) (grid.Credits, bool, bool) {
	return j.paid, j.written, j.open
}
func (j *journal) Closed(int, grid.SiteID, grid.TaskID) grid.Time       { return j.closed }
func (j *journal) Account(int, grid.SiteID) bank.Balance                { return j.balance }
func (j *journal) Moved(grid.SiteID) (out, in grid.Credits, known bool) { return j.paid, j.paid, true }

// stage is a Watch that listens to sites a, which is home, borrower or payer, and b.
type stage struct {
	*Watch
	journal
	now grid.Time
}

var task = grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 1}, Epoch: 2}

func newStage(t *testing.T) *stage {
	t.Helper()
	n, err := testnet.New(testnet.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []grid.SiteID{"a", "b"} {
		if _, err := n.Add(testnet.Member{ID: id, New: func(int) (testnet.Site, error) { return nobody{}, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{now: grid.Hour, journal: journal{closed: -grid.Day}}
	s.Watch = New(Config{
		N: n, Checks: testnet.Check(n, []int64{1, 1}, nil), Books: &s.journal, Apart: func(int) bool { return false },
		Site: func(int) site.Config {
			return site.Config{
				Resources: grid.Resources{Processors: 2, Memory: 100}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Foreign: true,
				Bank: bank.Config{Accept: []grid.SiteID{"b"}}, Lease: site.LeaseConfig{Term: 2 * grid.Minute},
			}
		},
	})
	return s
}

// a says something to b, and b to a.
func (s *stage) a(m grid.Message) { s.send(s.now, 0, "b", m) }
func (s *stage) b(m grid.Message) { s.send(s.now, 1, "a", m) }

func receipt(signer grid.SiteID, amount grid.Credits) *bank.Receipt {
	return &bank.Receipt{Bank: "b", Payer: "a", Payee: "b", Task: task, Amount: amount, Signer: signer}
}

func (s *stage) ask() { s.wish(func(*market.Negotiate) {}) }

// wish asks for what costs 10 at a price of 3.
func (s *stage) wish(change func(m *market.Negotiate)) {
	m := &market.Negotiate{
		Task: task, Request: 5, Processors: 1, Work: grid.Work{Instructions: int64(200 * grid.Minute)}, Deadline: grid.Hour, CostMax: 10, Bank: "b",
		Lease: grid.Minute,
	}
	change(m)
	s.a(m)
}

// insist asks for processors after each of these pauses once more.
func (s *stage) insist(pauses ...grid.Time) {
	s.a(&lease.Request{Number: 1})
	for _, p := range pauses {
		s.now += p
		s.a(&lease.Request{Number: 1})
	}
}

func promise() *market.Reply {
	return &market.Reply{Task: task, Request: 5, Hold: 7, HoldSpan: 10 * grid.Second, Price: 3, Cost: 10, Start: grid.Minute, Finish: grid.Hour, Lease: grid.Minute}
}

func (s *stage) promise(change func(m *market.Reply)) {
	m := promise()
	change(m)
	s.b(m)
}

// refuse asks, and is refused for what would take an hour.
func (s *stage) refuse(change func(m *market.Negotiate), why market.Refusal) {
	s.wish(change)
	s.b(&market.Reply{Task: task, Request: 5, Refusal: why, Price: 3, Start: grid.Never, Finish: grid.Hour})
}

func (s *stage) submit(change func(m *market.JobSubmission)) {
	s.ask()
	s.b(promise())
	s.now += grid.Second
	m := &market.JobSubmission{
		Job: &grid.Job{ID: task.Job, Home: "a", Submit: s.now - grid.Minute, Deadline: s.now + grid.Hour}, Epoch: task.Epoch, Hold: 7, Price: 3, Cost: 10,
		Age: grid.Minute, Deadline: grid.Hour, Cheque: &bank.Cheque{Bank: "b", Payer: "a", Payee: "b", Task: task, Ceiling: 10},
	}
	change(m)
	s.a(m)
}

// deny asks for two processors, at 5 at most, and does not get them.
func (s *stage) deny(why lease.Reason, price grid.Price, lends int64) {
	s.a(&lease.Request{Number: 1, Processors: 2, Span: grid.Hour, Most: 5, Bank: "b", Sink: "a"})
	s.b(&lease.Refuse{Number: 1, Reason: why, Price: price, Lends: lends})
}

// undrawn draws 3, and gets nothing.
func (s *stage) undrawn(why bank.Refusal) {
	s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 3})
	s.b(&bank.Drawn{Task: task, Refusal: why, Settled: s.balance.Settled, Committed: s.balance.Committed})
}

// run has an execution run for a minute, and its site say so a minute later.
func (s *stage) run(change func(m *market.JobCompletion)) {
	x := &testnet.Execution{ID: task, Job: &grid.Job{ID: task.Job}, Site: 1}
	s.start(s.now-2*grid.Minute, x)
	s.end(s.now-grid.Minute, x)
	m := &market.JobCompletion{Task: task, Run: grid.Minute, Ago: grid.Minute, Cost: 4, Claim: receipt("b", 4)}
	change(m)
	s.b(m)
}

func (s *stage) lend(change func(m *lease.Grant)) {
	s.a(&lease.Request{Number: 1, Processors: 2, Span: grid.Hour, Hold: grid.Minute, Most: 5, Bank: "b"})
	m := &lease.Grant{Number: 1, Epoch: 9, Stamp: s.now, Hold: grid.Minute, Span: grid.Hour, Gone: 6 * grid.Minute, Price: 5}
	change(m)
	s.b(m)
}

// own lends processors of b itself for nothing, and renews that for as long as is wanted.
func (s *stage) own(span grid.Time, change func(m *lease.Renewed)) {
	s.lend(func(m *lease.Grant) { m.Source, m.Price = "b", 0 })
	s.renewed(func(*lease.Renewed) {})
	s.a(&lease.Renew{Number: 1, Epoch: 9, Sequence: 2, Stamp: s.now, Span: span})
	s.renewed(func(m *lease.Renewed) { m.Sequence = 2; change(m) })
}

// parts has two parts of a job be asked for, one after the other, with something between.
func (s *stage) parts(first, second grid.Time, between func()) {
	s.a(&lease.Request{Number: 1, Span: grid.Hour, Hold: first, Subject: task.Job})
	s.b(&lease.Grant{Number: 1, Epoch: 9, Span: grid.Hour, Hold: first, Gone: 6 * grid.Minute})
	s.now += grid.Second
	if between != nil {
		between()
	}
	s.a(&lease.Request{Number: 2, Span: grid.Hour, Hold: second, Subject: task.Job})
}

func (s *stage) renewed(change func(m *lease.Renewed)) {
	m := &lease.Renewed{Number: 1, Epoch: 9, Stamp: s.now, Term: 2 * grid.Minute, Limit: grid.Hour, Gone: 5 * grid.Minute}
	change(m)
	s.b(m)
}

// TestWatch: who says another thing than before, or than is so, is seen, and who says it again is not.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  func(s *stage)
		want string // in the violation; empty: there is none
	}{
		{"a promise, twice", func(s *stage) { s.ask(); s.b(promise()); s.b(promise()) }, ""},
		{"for more than is paid", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Cost = 11 }) }, "which would pay"},
		{"for too late", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Finish++ }) }, "wanted was within"},
		{"with another lease", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Lease++ }) }, "a lease of"},
		{"for another price", func(s *stage) { s.b(promise()); s.promise(func(m *market.Reply) { m.Price++ }) }, "says now"},
		{"that lasts longer", func(s *stage) { s.b(promise()); s.now += grid.Minute; s.b(promise()) }, "says now"},
		{"under the name of another", func(s *stage) { s.b(promise()); s.promise(func(m *market.Reply) { m.Task.Job.Lo++ }) }, "names a guarantee"},

		{"a job that goes", func(s *stage) { s.submit(func(*market.JobSubmission) {}) }, ""},
		{"for another price", func(s *stage) { s.submit(func(m *market.JobSubmission) { m.Cost--; m.Cheque.Ceiling-- }) }, "and gets it for"},
		{"after its guarantee", func(s *stage) { s.submit(func(*market.JobSubmission) { s.now += 20 * grid.Second }) }, "which has ended at"},
		{"with the cheque of another", func(s *stage) { s.submit(func(m *market.JobSubmission) { m.Cheque.Payer = "b" }) }, "for something else"},
		{"with a later deadline", func(s *stage) { s.submit(func(m *market.JobSubmission) { m.Deadline++ }) }, "until its deadline"},
		{"without its deadline", func(s *stage) { s.submit(func(m *market.JobSubmission) { m.Deadline = grid.Never }) }, "until its deadline"},
		{"that is older", func(s *stage) { s.submit(func(m *market.JobSubmission) { m.Age++ }) }, "old; it is"},

		{"a result", func(s *stage) { s.run(func(*market.JobCompletion) {}) }, ""},
		{"of a longer run", func(s *stage) { s.run(func(m *market.JobCompletion) { m.Run *= 2 }) }, "has run for"},
		{"that ended before", func(s *stage) { s.run(func(m *market.JobCompletion) { m.Ago *= 2 }) }, "has run for"},
		{"of what never began", func(s *stage) { s.b(&market.JobCompletion{Task: task, Run: 1}) }, "never began"},
		{"that claims more", func(s *stage) { s.run(func(m *market.JobCompletion) { m.Claim.Amount++ }) }, "and claims"},
		{"that costs more than before", func(s *stage) {
			s.run(func(*market.JobCompletion) {})
			s.run(func(m *market.JobCompletion) { m.Cost, m.Claim = 5, nil })
		}, "and has said"},
		{"one that starts after it was given up", func(s *stage) {
			s.b(&market.JobCompletion{Task: task, Abandoned: true})
			s.start(s.now, &testnet.Execution{ID: task, Job: &grid.Job{ID: task.Job}, Site: 1})
		}, "that it never will"},

		{"what was claimed is agreed to", func(s *stage) { s.b(&fee.Bill{Claim: receipt("b", 4)}); s.a(&fee.Agreed{Agreement: receipt("a", 4)}) }, ""},
		{"more is", func(s *stage) { s.b(&fee.Bill{Claim: receipt("b", 4)}); s.a(&fee.Agreed{Agreement: receipt("a", 5)}) }, "has claimed"},
		{"less is the second time", func(s *stage) {
			s.a(&market.Acknowledge{Agreement: receipt("a", 4)})
			s.a(&market.Acknowledge{Agreement: receipt("a", 3)})
		}, "has signed for"},
		{"more is claimed than was drawn", func(s *stage) {
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 3})
			s.b(&bank.Redeem{Claim: receipt("b", 4)})
		}, "is over"},
		{"a claim is given up", func(s *stage) { s.b(&bank.Redeem{Claim: receipt("b", 4)}); s.b(&bank.Redeem{Claim: receipt("b", 0)}) }, ""},

		{"a lease is given back", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.a(&lease.Release{Number: 1, Epoch: 9})
			s.b(&lease.Released{Number: 1, Epoch: 9, Cause: lease.Freed})
		}, ""},
		{"one is wanted back", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.b(&lease.Released{Number: 1, Epoch: 9, Cause: lease.Revoked})
		}, ""},
		{"one counts as given back that was not", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.b(&lease.Released{Number: 1, Epoch: 9, Cause: lease.Freed})
		}, "which has not said so"},

		{"a promise of what is not run", func(s *stage) { s.wish(func(m *market.Negotiate) { m.Module = true }); s.b(promise()) }, "runs none of it"},
		{"of what does not fit", func(s *stage) { s.wish(func(m *market.Negotiate) { m.Processors = 3 }); s.b(promise()) }, "which needs 3 processors"},
		{"for less than its price", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Cost = 9 }) }, "that is"},
		{"for a cheque that is not accepted", func(s *stage) { s.wish(func(m *market.Negotiate) { m.Bank = "a" }); s.b(promise()) }, "does not accept"},
		{"for nothing, unpaid", func(s *stage) {
			s.wish(func(m *market.Negotiate) { m.Bank = "" })
			s.promise(func(m *market.Reply) { m.Price, m.Cost = 0, 0 })
		}, ""},

		{"a refusal of what is too dear", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.CostMax = 9 }, market.PriceChanged) }, ""},
		{"of what is not", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.PriceChanged) }, "its price has changed"},
		{"of what is too wide", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.Memory = 101 }, market.TooWide) }, ""},
		{"of what fits", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.Memory = 100 }, market.TooWide) }, "is too small"},
		{"of what would be in time", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.TooLate) }, "in time"},
		{"of what would not", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.Deadline = grid.Minute }, market.TooLate) }, ""},
		{"of a module", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.Module = true }, market.NoModules) }, ""},
		{"of none, as one", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.NoModules) }, "runs no modules"},
		{"of foreign jobs where they run", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.NoForeign) }, "runs no jobs"},
		{"of GPUs", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.GPUs.Count = 1 }, market.NoGPUs) }, ""},
		{"of none", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.NoGPUs) }, "too few GPUs"},
		{"of a bank", func(s *stage) { s.refuse(func(m *market.Negotiate) { m.Bank = "a" }, market.Unpaid) }, ""},
		{"of one that is accepted", func(s *stage) { s.refuse(func(*market.Negotiate) {}, market.Unpaid) }, "wants to be paid"},

		{"a lender that is too dear", func(s *stage) { s.deny(lease.Dear, 6, 0) }, ""},
		{"that is not", func(s *stage) { s.deny(lease.Dear, 5, 0) }, "does not lend"},
		{"that accepts the bank", func(s *stage) { s.deny(lease.Unpaid, 0, 0) }, "does not lend"},
		{"that would borrow from itself", func(s *stage) { s.deny(lease.Loop, 0, 0) }, "does not lend"},
		{"that would be too late for what can wait", func(s *stage) { s.deny(lease.TooLate, 0, 0) }, "does not lend"},
		{"that does not lend", func(s *stage) { s.deny(lease.Denied, 0, 0) }, ""},
		{"that lends more", func(s *stage) { s.deny(lease.TooWide, 0, 2) }, "does not lend"},
		{"that lends less", func(s *stage) { s.deny(lease.TooWide, 0, 1) }, ""},
		{"that would lend all that it has", func(s *stage) { s.deny(lease.Denied, 0, 2) }, ""},
		{"and more", func(s *stage) { s.deny(lease.Denied, 0, 3) }, "at once at most 3"},

		{"all processors are idle", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Load.Free = 2 }) }, ""},
		{"and more", func(s *stage) { s.ask(); s.promise(func(m *market.Reply) { m.Load.Free = 3 }) }, "are idle"},

		{"a draw, twice", func(s *stage) {
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1})
			s.now += grid.Minute
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1})
		}, ""},
		{"over more", func(s *stage) {
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1})
			s.now += grid.Minute
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 2})
		}, "and has drawn"},
		{"after it was withdrawn", func(s *stage) {
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1, Withdrawn: true})
			s.now += grid.Minute
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1})
		}, "it has withdrawn"},
		{"over more than there is", func(s *stage) { s.balance.Settled = 2; s.undrawn(bank.NoFunds) }, ""},
		{"over what there is", func(s *stage) { s.balance.Settled = 3; s.undrawn(bank.NoFunds) }, "and it has"},
		{"of no account", func(s *stage) { s.undrawn(bank.NoAccount) }, ""},
		{"of an account", func(s *stage) { s.balance.Settled = 1; s.undrawn(bank.NoAccount) }, "and it has"},
		{"a cheque that is not written", func(s *stage) { s.b(&bank.Drawn{Task: task, Cheque: &bank.Cheque{}}) }, "holds nothing"},
		{"another than was drawn", func(s *stage) {
			s.written, s.open = true, true
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1})
			s.b(&bank.Drawn{Task: task, Cheque: &bank.Cheque{Bank: "b", Payer: "a", Payee: "b", Task: task, Ceiling: 2}})
		}, "drawn was"},
		{"a payment", func(s *stage) { s.paid, s.written = 3, true; s.b(&bank.Redeemed{Payer: "a", Task: task, Paid: 3}) }, ""},
		{"another one", func(s *stage) { s.paid, s.written = 3, true; s.b(&bank.Redeemed{Payer: "a", Task: task, Paid: 4}) }, "says to have paid"},
		{"a cheque that is open and unknown", func(s *stage) {
			s.written, s.open = true, true
			s.b(&bank.Redeemed{Payer: "a", Task: task, Refusal: bank.UnknownCheque})
		}, "does not know"},
		{"a cheque that was settled, and is unknown", func(s *stage) {
			s.closed = s.now - grid.Hour
			s.b(&bank.Redeemed{Payer: "a", Task: task, Refusal: bank.UnknownCheque})
		}, "which was settled lately"},
		{"a draw that is withdrawn, and may be written one day", func(s *stage) {
			s.a(&bank.Draw{Task: task, Payee: "b", Ceiling: 1, Withdrawn: true})
			s.now += 2 * grid.Minute
			s.b(&bank.Drawn{Task: task, Refusal: bank.NoFunds})
		}, "which is not wanted any more"},
		{"an account", func(s *stage) { s.balance.Settled = 3; s.b(&bank.TransferReply{Settled: 3}) }, ""},
		{"another one", func(s *stage) { s.balance.Settled = 3; s.b(&bank.TransferReply{Settled: 4}) }, "its journal says"},

		{"a lease", func(s *stage) { s.lend(func(*lease.Grant) {}); s.renewed(func(*lease.Renewed) {}) }, ""},
		{"that costs more", func(s *stage) { s.lend(func(m *lease.Grant) { m.Price = 6 }) }, "asked for was"},
		{"for longer", func(s *stage) { s.lend(func(m *lease.Grant) { m.Span++ }) }, "asked for was"},
		{"of which it is free too early", func(s *stage) { s.lend(func(m *lease.Grant) { m.Gone = 5 * grid.Minute }) }, "to be free"},
		{"that lasts longer than a term", func(s *stage) { s.renewed(func(m *lease.Renewed) { m.Term++ }) }, "its term is"},
		{"whose lender goes back", func(s *stage) { s.lend(func(*lease.Grant) {}); s.renewed(func(m *lease.Renewed) { m.Stamp-- }) }, "of its clock"},
		{"that is wanted back, and prolonged", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.renewed(func(*lease.Renewed) {})
			s.b(&lease.Revoke{Number: 1, Epoch: 9})
			s.now += grid.Minute
			s.renewed(func(*lease.Renewed) {})
		}, "wants lease 1"},
		{"that is wanted back, and ends", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.renewed(func(*lease.Renewed) {})
			s.b(&lease.Revoke{Number: 1, Epoch: 9})
			s.now += grid.Minute
			s.renewed(func(m *lease.Renewed) { m.Term, m.Limit = grid.Minute, 59*grid.Minute })
		}, ""},
		{"that is paid for, and prolonged", func(s *stage) {
			s.lend(func(*lease.Grant) {})
			s.renewed(func(*lease.Renewed) {})
			s.now += grid.Minute
			s.renewed(func(*lease.Renewed) {})
		}, "is paid for until"},
		{"that lasts for longer than it was granted", func(s *stage) {
			s.lend(func(m *lease.Grant) { m.Span = grid.Minute })
			s.a(&lease.Claim{Number: 1, Epoch: 9, Sequence: 1, Stamp: s.now})
			s.renewed(func(m *lease.Renewed) { m.Sequence = 1 })
		}, "asked for is"},
		{"that is renewed as wanted", func(s *stage) {
			s.own(2*grid.Hour, func(m *lease.Renewed) { m.Limit = 2 * grid.Hour })
		}, ""},
		{"for longer than wanted", func(s *stage) {
			s.own(2*grid.Hour, func(m *lease.Renewed) { m.Limit = 3 * grid.Hour })
		}, "asked for is"},
		{"for shorter than wanted", func(s *stage) { s.own(2*grid.Hour, func(*lease.Renewed) {}) }, "which is wanted for"},
		{"for less than a term", func(s *stage) { s.own(0, func(m *lease.Renewed) { m.Term = grid.Minute }) }, "and could for"},
		{"a part asked for after another", func(s *stage) { s.parts(grid.Minute, grid.Minute-grid.Second, nil) }, ""},
		{"to be held for as long", func(s *stage) { s.parts(grid.Minute, grid.Minute, nil) }, "and what is held since"},
		{"of another attempt", func(s *stage) {
			s.parts(grid.Minute, grid.Minute, func() { s.a(&lease.Release{Number: 1}) })
		}, ""},
		{"after a refusal", func(s *stage) {
			s.parts(grid.Minute, grid.Minute, func() { s.b(&lease.Refuse{Number: 1}) })
		}, ""},
		{"after its lender let it go", func(s *stage) {
			s.parts(grid.Minute, grid.Minute, func() { s.b(&lease.Released{Number: 1, Cause: lease.Revoked}) })
		}, ""},
		{"a question, again and again", func(s *stage) { s.insist(5*grid.Second, 10*grid.Second, 20*grid.Second) }, ""},
		{"too soon", func(s *stage) { s.insist(3 * grid.Second) }, "again after"},
		{"as soon as before", func(s *stage) { s.insist(5*grid.Second, 5*grid.Second) }, "again after"},
		{"a request, twice", func(s *stage) {
			s.a(&lease.Request{Number: 1})
			s.now += grid.Minute
			s.a(&lease.Request{Number: 1, Age: 1})
		}, ""},
		{"for more", func(s *stage) {
			s.a(&lease.Request{Number: 1})
			s.now += grid.Minute
			s.a(&lease.Request{Number: 1, Processors: 1})
		}, "has asked for"},
		{"renewals", func(s *stage) {
			s.a(&lease.Claim{Number: 1, Sequence: 1, Stamp: 1})
			s.now += grid.Minute
			s.a(&lease.Claim{Number: 1, Sequence: 1, Stamp: 1})
			s.a(&lease.Renew{Number: 1, Sequence: 2, Stamp: 1})
		}, ""},
		{"with the same number", func(s *stage) { s.a(&lease.Renew{Number: 1, Sequence: 2}); s.a(&lease.Renew{Number: 1, Sequence: 2}) }, "renews lease 1"},
		{"by an older word", func(s *stage) {
			s.a(&lease.Renew{Number: 1, Sequence: 1, Stamp: 2})
			s.a(&lease.Renew{Number: 1, Sequence: 2, Stamp: 1})
		}, "renews lease 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			tt.say(s)
			err := s.Checks.Violation(s.now)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
