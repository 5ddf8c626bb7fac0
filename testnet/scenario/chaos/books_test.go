package chaos

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/testnet/draw"
)

var bankRuns = flag.Int("bank-runs", 100, "seeded runs of sites that pay each other under faults")

// bankChaos is a small federation with more faults than a day usually has, other
// ones with every seed.
func bankChaos(seed uint64) Config {
	cfg := Default()
	pcg := draw.PCG(seed, "bank", draw.ForFaults)
	draw := func(most uint64) uint64 { return draw.Uniform(pcg, most+1) }
	cfg.Seed, cfg.Sites, cfg.Hours = seed, int(2+draw(3)), 1
	cfg.Faults = fmt.Sprintf("loss=0.%02d,duplicate=0.%02d,reorder=0.%02d,drift=%d,daemon=%d,torn=%d,machine=%d,partition=%d",
		draw(20), draw(30), draw(30), draw(500), draw(8), draw(8), draw(2), draw(8))
	return cfg
}

// TestMoneyUnderFaults: whatever fails, no credit is made or lost, every cheque is
// paid at most once, and at rest the books of homes and banks agree (see books); a lease is
// paid once, for the time that it was held (see feeWatch).
func TestMoneyUnderFaults(t *testing.T) {
	if testing.Short() {
		*bankRuns = min(*bankRuns, 10)
	}
	total := make(map[string]int64)
	refused, leases := 0, int64(0)
	for seed := range uint64(*bankRuns) {
		r, err := Run(context.Background(), bankChaos(seed))
		if err != nil {
			t.Fatal(err)
		}
		report := r.Config.(*chaosReport)
		for kind, n := range report.Transactions {
			total[kind] += n
		}
		leases += report.Leases.Paid
		if r.Total.Rejected > 0 {
			refused++
		}
	}
	t.Logf("%d runs: transactions %v, %d leases paid for", *bankRuns, total, leases)
	if runs := int64(*bankRuns); total["cheque"] < 2*runs || total["redeem"] < 2*runs || total["grant"] < 4*runs || refused == 0 || leases < runs {
		t.Errorf("transactions %v, %d leases paid for in %d runs: too few to mean anything", total, leases, runs)
	}
}

// The books of the checker refuse what a bank must not do.
func TestBooksSeeViolations(t *testing.T) {
	task := grid.TaskID{Job: grid.JobID{Lo: 9}, Epoch: 1}
	draw := bank.Transaction{Kind: bank.KindDraw, Payer: "a", Payee: "b", Task: task, Amount: 5, Expires: 100}
	redeem := bank.Transaction{At: 50, Kind: bank.KindRedeem, Payer: "a", Payee: "b", Task: task, Amount: 3, Refund: 2}
	expire := bank.Transaction{At: 100, Kind: bank.KindExpire, Payer: "a", Payee: "b", Task: task, Amount: 5}
	move := bank.Transaction{Kind: bank.KindTransfer, Payer: "a", Payee: "b", Task: grid.TaskID{Job: grid.JobID{Lo: 7}}, Amount: 2}
	with := func(t bank.Transaction, f func(t *bank.Transaction)) bank.Transaction { f(&t); return t }
	for _, tt := range []struct {
		want string // empty: fine
		list []bank.Transaction
	}{
		{"", []bank.Transaction{draw, redeem}},
		{"", []bank.Transaction{draw, with(expire, func(t *bank.Transaction) { t.Refund = 0 })}},
		{"second cheque", []bank.Transaction{draw, draw}},
		{"closed already", []bank.Transaction{redeem}},
		{"closed already", []bank.Transaction{draw, redeem, redeem}},
		{"closed already", []bank.Transaction{draw, redeem, expire}},
		{"cheque over", []bank.Transaction{draw, with(redeem, func(t *bank.Transaction) { t.Payee = "c" })}},
		{"cheque over", []bank.Transaction{draw, with(redeem, func(t *bank.Transaction) { t.Amount = 4 })}},
		{"that expires", []bank.Transaction{draw, with(redeem, func(t *bank.Transaction) { t.At = 100 })}},
		{"that expires", []bank.Transaction{draw, with(expire, func(t *bank.Transaction) { t.At = 99 })}},
		{"", []bank.Transaction{move, with(move, func(t *bank.Transaction) { t.Task.Job.Lo = 8 })}},
		{"second transfer", []bank.Transaction{move, move}},
		{"settled", []bank.Transaction{with(draw, func(t *bank.Transaction) { t.Amount = 11 })}},
		{"follows", []bank.Transaction{with(draw, func(t *bank.Transaction) { t.Sequence = 7 })}},
	} {
		own := newBankBooks()
		own.accounts["a"] = bank.Balance{Settled: 10}
		var err error
		for i := range tt.list {
			if tt.list[i].Sequence == 0 {
				tt.list[i].Sequence = uint64(i + 1)
			}
			if err == nil {
				err = own.apply(&tt.list[i])
			}
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.list, err, tt.want)
		}
	}
}
