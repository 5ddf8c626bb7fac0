package chaos

import (
	"slices"
	"strings"
	"testing"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/site"
	"gridnode/testnet"
)

// bent is a site with a defect: what it orders is changed before anybody sees it.
type bent struct {
	*site.Site
	bend func(out *grid.Outbox)
}

// Core returns the site itself.
func (b *bent) Core() *site.Site { return b.Site }

// Step implements testnet.Site.
func (b *bent) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	b.Site.Step(now, in, out)
	b.bend(out)
}

// dropped takes those effects out of what a step orders that are unwanted.
func dropped(unwanted func(out *grid.Outbox, e grid.Effect) bool) func(out *grid.Outbox) {
	return func(out *grid.Outbox) {
		out.Effects = slices.DeleteFunc(out.Effects, func(e grid.Effect) bool { return unwanted(out, e) })
	}
}

// unsaved drops what is saved under keys that begin so, whenever it is the first time.
func unsaved(prefix string) func() func(out *grid.Outbox) {
	return func() func(out *grid.Outbox) {
		return dropped(func(out *grid.Outbox, e grid.Effect) bool {
			return e.Kind == grid.EffectSave && strings.HasPrefix(out.Records[e.Index].RecordKey(), prefix)
		})
	}
}

// stated changes what users are told of accounts.
func stated(change func(s *bank.Statement)) func() func(out *grid.Outbox) {
	return func() func(out *grid.Outbox) {
		return func(out *grid.Outbox) {
			for i := range out.Answers {
				if s, yes := out.Answers[i].Value.(*bank.Statement); yes && out.Answers[i].Token > 0 {
					change(s)
				}
			}
		}
	}
}

// informed changes what sites say of data sets.
func informed(change func(m *dataset.Inform)) func() func(out *grid.Outbox) {
	return func() func(out *grid.Outbox) {
		return func(out *grid.Outbox) {
			for i := range out.Sends {
				if m, yes := out.Sends[i].Message.(*dataset.Inform); yes {
					change(m)
				}
			}
		}
	}
}

// TestSquads: parts of gangs that fail, and some that are not ready in time, end the others.
func TestSquads(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features, cfg.Faults = 3, 5, 2, "break=0.5,unready=0.3", "loss"
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if gangs := result.Config.(*chaosReport).Gangs; gangs.Broken == 0 || gangs.Whole == 0 {
		t.Errorf("%+v: want some that are broken, and some that are whole", gangs)
	}
}

// TestChains: sites that borrow in a line lend on what they have borrowed.
func TestChains(t *testing.T) {
	lentOn := 0
	for seed := range uint64(3) {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features = seed+1, 6, 2, "chain=1"
		cfg.Watch = func(n *testnet.Network, _ *testnet.Checker) {
			n.Observe(testnet.Observer{Send: func(_ grid.Time, _ int, _ grid.SiteID, m grid.Message) {
				if g, yes := m.(*lease.Grant); yes && g.Hops > 1 {
					lentOn++
				}
			}})
		}
		if _, err := Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	if lentOn == 0 {
		t.Error("nobody has lent on what he has borrowed")
	}
}

// TestCheckersSee: a defect in all sites of a run is seen, and by the checker that is for it.
func TestCheckersSee(t *testing.T) {
	for _, tt := range []struct {
		name     string
		features string
		bend     func() func(out *grid.Outbox)
		want     string // in the violation
	}{
		{"a lease is not saved", "none", unsaved(lease.RecordPrefix), "has not saved what it is: lease"},
		{"what is asked for fits no message", "none", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Sends {
					if m, yes := out.Sends[i].Message.(*lease.Request); yes {
						m.TTL = -1
					}
				}
			}
		}, "what does not arrive"},
		{"a bill is not saved", "none", unsaved("bank/bill/"), "has not saved what it is: bank/bill/"},
		{"a decision is not saved", "none", unsaved("coalloc/"), "is not saved"},
		{"a claim at home is not saved", "none", unsaved("coalloc-home/"), "is not saved"},
		{"a record is not forgotten", "none", func() func(out *grid.Outbox) {
			return dropped(func(out *grid.Outbox, e grid.Effect) bool {
				return e.Kind == grid.EffectDelete && strings.HasPrefix(out.Records[e.Index].RecordKey(), "coalloc/")
			})
		}, "is over, and saved still"},
		{"a job is told to be done that has failed", "fail=0.5", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Events {
					if e := &out.Events[i]; e.Kind == grid.JobFinished && e.Result.Reason == testnet.TimeLimit {
						e.Result.Reason, e.Result.ExitCode = "", 0
					}
				}
			}
		}, "of which no execution has ended by itself"},
		{"a job waits for nobody", "after=0.6", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Events {
					if e := &out.Events[i]; e.Kind == grid.JobFinished {
						e.Kind = grid.EventKinds - 1 // nobody is told that it has ended
					}
				}
			}
		}, "what it was to wait for has not happened"},
		{"a cheque is not presented", "none", func() func(out *grid.Outbox) {
			return dropped(func(out *grid.Outbox, e grid.Effect) bool {
				if e.Kind != grid.EffectSend {
					return false
				}
				_, yes := out.Sends[e.Index].Message.(*bank.Redeem)
				return yes
			})
		}, "after the last job and the last fault"},
		{"a job that is cancelled goes on", "cancel=0.8", func() func(out *grid.Outbox) {
			return dropped(func(_ *grid.Outbox, e grid.Effect) bool { return e.Kind == grid.EffectKill })
		}, "goes on at home"},
		{"a job that is cancelled goes on elsewhere", "cancel=0.8", func() func(out *grid.Outbox) {
			return dropped(func(out *grid.Outbox, e grid.Effect) bool {
				if e.Kind != grid.EffectSend {
					return false
				}
				_, yes := out.Sends[e.Index].Message.(*market.Cancel)
				return yes
			})
		}, "and its user was told before"},
		{"a page has a quote that has run out", "none", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Sends {
					if p, yes := out.Sends[i].Message.(*directory.Page); yes && len(p.Quotes) > 0 {
						old := *p.Quotes[0]
						old.Issued, old.Lifetime = 0, 1
						p.Quotes = append([]*directory.Quote{&old}, p.Quotes[1:]...)
					}
				}
			}
		}, "which has run out at"},
		{"a user is told half of what there is", "ask=60", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Answers {
					if f, yes := out.Answers[i].Value.(*directory.Found); yes {
						f.Quotes = f.Quotes[len(f.Quotes)/2:]
					}
				}
			}
		}, "is told for certain of"},
		{"a user is told of a site twice", "ask=60", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Answers {
					if f, yes := out.Answers[i].Value.(*directory.Found); yes && len(f.Quotes) > 0 {
						f.Quotes = append(f.Quotes, f.Quotes[0])
					}
				}
			}
		}, "is told two quotes of"},
		{"a user is told of a transfer that is none", "account=60", stated(func(s *bank.Statement) {
			if len(s.Transactions) == 0 {
				s.Refusal = bank.Done
			}
		}), "the journal of its bank has no such transaction"},
		{"a user is told that credits have stayed which have not", "account=60", stated(func(s *bank.Statement) {
			if len(s.Transactions) == 0 {
				s.Refusal = bank.NoFunds
			}
		}), "and transaction"},
		{"a statement is of before", "account=60", stated(func(s *bank.Statement) {
			if len(s.Transactions) > 1 {
				s.Transactions = s.Transactions[1:]
			}
		}), "its account"},
		{"a job is placed for more than was promised", "none", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Events {
					if e := &out.Events[i]; e.Kind == grid.JobPlaced && e.Cost > 0 {
						e.Cost++
					}
				}
			}
		}, "which has not promised that"},
		{"a guarantee is denied", "none", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Sends {
					if m, yes := out.Sends[i].Message.(*market.Reply); yes && m.Hold > 0 {
						m.Hold++ // by which it does not know it
					}
				}
			}
		}, "and does not know of it"},
		{"a stranger is asked again and again", "gossip", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Sends {
					if _, yes := out.Sends[i].Message.(*market.Negotiate); yes {
						out.Send(out.Sends[i].To, &sibling.Greet{Authority: "another"})
					}
				}
			}
		}, "to be its sibling, and did at"},
		{"a payment is not saved", "none", unsaved("bank/payment/"), "has not saved what it is: bank/payment/"},
		{"a data set is not saved", "data=20", unsaved(dataset.RecordPrefix), "was to hold"},
		{"a holder of a data set denies it", "data=60", informed(func(m *dataset.Inform) { m.Held = false }), "which has held it since"},
		{"a site says to hold what it does not", "data=60", informed(func(m *dataset.Inform) { m.Held = true }), "and it has had"},
		{"a user is told of sites that are called otherwise", "find=60", func() func(out *grid.Outbox) {
			return func(out *grid.Outbox) {
				for i := range out.Answers {
					if f, yes := out.Answers[i].Value.(*record.Found); yes {
						for j, r := range f.Records {
							other := *r
							other.Name, other.Site, f.Records[j] = "nobody", "site-1", &other
						}
					}
				}
			}
		}, "and is told of"},
		{"a release does not leave", "none", func() func(out *grid.Outbox) {
			return dropped(func(out *grid.Outbox, e grid.Effect) bool {
				if e.Kind != grid.EffectSend {
					return false
				}
				_, yes := out.Sends[e.Index].Message.(*lease.Release)
				return yes
			})
		}, "which does not know"},
		{"that a lease is wanted back is not saved", "return=60", func() func(out *grid.Outbox) {
			return dropped(func(out *grid.Outbox, e grid.Effect) bool {
				return e.Kind == grid.EffectSave && strings.HasPrefix(out.Records[e.Index].RecordKey(), lease.RecordPrefix) &&
					slices.ContainsFunc(out.Sends, func(s grid.Send) bool { _, yes := s.Message.(*lease.Revoke); return yes })
			})
		}, "wanted back: false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Default()
			cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features, cfg.Faults = 3, 5, 2, tt.features, "loss,daemon"
			run := &trial{script: scriptOf(cfg)}
			run.wrap = func(_ grid.SiteID, s *site.Site) testnet.Site { return &bent{s, tt.bend()} }
			if _, err := run.run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want a violation: %s", err, tt.want)
			}
		})
	}
}

// TestNamesSee: where nothing is wrong for long, whoever is not told of a site that is there is seen.
func TestNamesSee(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features, cfg.Faults = 3, 5, 2, "find=10", "none"
	for _, tells := range []bool{true, false} {
		run := &trial{script: scriptOf(cfg)}
		run.wrap = func(_ grid.SiteID, s *site.Site) testnet.Site {
			return &bent{s, func(out *grid.Outbox) {
				for i := range out.Answers {
					if f, yes := out.Answers[i].Value.(*record.Found); yes && !tells {
						f.Records = nil
					}
				}
			}}
		}
		if _, err := run.run(t.Context()); (err == nil) != tells || err != nil && !strings.Contains(err.Error(), "which has been there for long") {
			t.Errorf("%v, users are told: %t", err, tells)
		}
	}
}
