package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// account is a line of bank balance.
type account struct {
	Name      string  `json:"accountName"`
	Account   string  `json:"account"`
	Settled   float64 `json:"settled"`
	InFlight  float64 `json:"inFlight"`
	Committed float64 `json:"committed"`
}

// entry is a line of bank statement.
type entry struct {
	Kind    string  `json:"kind"`
	Settled float64 `json:"settled"`
	Job     string  `json:"job"`
	ID      string  `json:"id"`
}

// bank prints with -o json behind the verbs and decodes.
func (s *site) bank(into any, args ...string) {
	s.Helper()
	text := s.ok(append(append([]string{"bank"}, args...), "-o", "json")...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.Fatalf("gridnode bank %q: %v in %s", args, err, text)
	}
}

// accounts returns every account of the bank at s by its site's ID.
func (s *site) accounts() map[string]account {
	s.Helper()
	var list []account
	s.bank(&list, "balance", "--all")
	byID := make(map[string]account)
	for _, a := range list {
		byID[a.Account] = a
	}
	return byID
}

// settled waits until nothing is committed at the bank at s, and checks that all
// accounts sum to zero meanwhile.
func (s *site) settled() map[string]account {
	s.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(look) {
		all := s.accounts()
		sum, committed := 0.0, 0.0
		for _, a := range all {
			sum += a.Settled + a.Committed
			committed += a.Committed
		}
		if sum > 1e-7 || sum < -1e-7 {
			s.Fatalf("the accounts sum to %v: %+v", sum, all)
		}
		if committed == 0 {
			return all
		}
		if time.Now().After(deadline) {
			s.Fatalf("something is committed still: %+v", all)
		}
	}
}

// redeemed returns what the bank at s has paid to an account for a job, by entry.
func (s *site) redeemed(account, job string) (amounts []float64) {
	s.Helper()
	var entries []entry
	s.bank(&entries, "statement", account, "--limit", "100")
	for _, e := range entries {
		if e.Kind == "redeem" && e.Job == job {
			amounts = append(amounts, e.Settled)
		}
	}
	return amounts
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// Three daemons bank with one of them. Jobs are paid, whatever is killed meanwhile:
// nothing is paid twice, and nothing is lost.
func TestBank(t *testing.T) {
	t.Parallel()
	bank := newSite(t, "bank", "--processors", "1", "--price", "9")
	bank.ok("config", "set", "bank.offer", "true")
	bank.ok("config", "set", "bank.site", "self")
	bank.start()
	home := newSite(t, "home", "--processors", "1", "--price", "5", "--join", bank.addr)
	home.ok("config", "set", "bank.site", bank.addr)
	home.start()
	work := newSite(t, "work", "--processors", "4", "--price", "1", "--foreign", "allow", "--join", bank.addr)
	work.ok("config", "set", "bank.accept", bank.id)
	work.start()
	sites := []*site{bank, home, work}
	for _, s := range sites {
		s.sees(3)
	}
	step := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			for _, s := range sites {
				s.TB = t
			}
			do(t)
		})
		for _, s := range sites {
			s.TB = t
		}
	}

	step("no funds", func(t *testing.T) {
		if r := home.code(5, "submit", "--site", "work", "-t", "1h", "--", "true"); !strings.Contains(r.stderr, "no account") {
			t.Errorf("without an account: %v", r)
		}
		home.code(4, "bank", "balance")
		bank.ok("bank", "grant", "home", "0.5")
		r := home.code(5, "submit", "--site", "work", "-t", "1h", "--", "true")
		for _, text := range []string{"insufficient funds", "balance 0.5 credits", "0 are held", "1 needed"} {
			if !strings.Contains(r.stderr, text) {
				t.Errorf("%q does not say %q", r.stderr, text)
			}
		}
		bank.settled()
	})
	step("transfers", func(t *testing.T) {
		grant := "0123456789abcdefghjkmnpqrs"
		for range 2 { // the same ID grants once
			bank.ok("bank", "grant", home.id, "20", "--id", grant)
		}
		bank.ok("bank", "grant", "work", "1")
		for range 2 {
			home.ok("bank", "transfer", "work", "2.25", "--id", grant)
		}
		if all := bank.settled(); !near(all[home.id].Settled, 18.25) || !near(all[work.id].Settled, 3.25) || !near(all["(issuer)"].Settled, -21.5) {
			t.Errorf("accounts %+v", all)
		}
		for _, tt := range []struct {
			code int
			text string
			args []string
		}{
			{5, "insufficient funds at bank bank: balance", []string{"transfer", "work", "18.250001"}},
			{5, "the same", []string{"transfer", "home", "1"}},
			{4, "no account", []string{"transfer", "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", "1"}},
			{4, "nowhere", []string{"transfer", "nowhere", "1"}},
			{2, "more than 0", []string{"transfer", "work", "0"}},
			{2, "want 0 to", []string{"transfer", "work", "99999999999"}},
			{5, "other terms", []string{"transfer", "work", "3", "--id", grant}},
			{5, "site home keeps no bank", []string{"grant", "work", "1"}},
			{5, "keeps no bank", []string{"balance", "--all"}},
		} {
			if r := home.code(tt.code, append([]string{"bank"}, tt.args...)...); !strings.Contains(r.stderr, tt.text) {
				t.Errorf("bank %v: %v, want %q", tt.args, r, tt.text)
			}
		}
		if all := bank.settled(); !near(all[home.id].Settled, 18.25) {
			t.Errorf("what was refused has moved credits: %+v", all)
		}
		if r := work.code(5, "bank", "transfer", "home", "1"); !strings.Contains(r.stderr, "banks nowhere") {
			t.Errorf("a site without a bank: %v", r)
		}
	})
	step("paid", func(t *testing.T) {
		before := bank.settled()
		g := submitGated(t, home, "--site", "work", "-t", "1h")
		var mine []account
		home.bank(&mine, "balance")
		if len(mine) != 1 || !near(mine[0].Committed, 1) || !near(mine[0].Settled, before[home.id].Settled-1) {
			t.Errorf("while it runs: %+v", mine)
		}
		if a := bank.accounts()[work.id]; !near(a.InFlight, 1) {
			t.Errorf("while it runs there is %+v at work's", a)
		}
		g.release.open(t)
		g.over.await(t)
		g.check(t, home, "work")
		cost := home.status(g.id).Cost
		after := bank.settled()
		if cost <= 0 || cost > 1 || !near(after[work.id].Settled, before[work.id].Settled+cost) || !near(after[home.id].Settled, before[home.id].Settled-cost) {
			t.Errorf("it cost %v: %+v became %+v", cost, before, after)
		}
		if table := home.ok("bank", "statement"); !strings.Contains(table, "redeem") || !strings.Contains(table, "KIND") {
			t.Errorf("statement:\n%s", table)
		}
	})
	step("bank and payee are killed", func(t *testing.T) {
		before := bank.settled()
		var jobs []gatedJob
		for range 3 {
			jobs = append(jobs, submitGated(t, home, "--site", "work", "-t", "1h"))
		}
		bank.kill()
		for i := range jobs {
			jobs[i].release.open(t)
			jobs[i].over.await(t)
			jobs[i].check(t, home, "work") // an unpaid bill kills no paid work
		}
		work.kill() // while it presents its cheques in vain
		work.start()
		bank.start()
		after := bank.settled()
		total := 0.0
		for i := range jobs {
			cost := home.status(jobs[i].id).Cost
			total += cost
			if paid := bank.redeemed(work.id, jobs[i].id); len(paid) != 1 || !near(paid[0], cost) {
				t.Errorf("job %d cost %v, paid were %v", i, cost, paid)
			}
		}
		if !near(after[work.id].Settled, before[work.id].Settled+total) {
			t.Errorf("%v earned: %+v became %+v", total, before, after)
		}
	})
	step("bank is killed while it pays", func(t *testing.T) {
		before := bank.settled()
		const n = 12
		ids := strings.Fields(home.ok("submit", "--site", "work", "-t", "1h", "-a", fmt.Sprintf("1-%d", n), "--", "true"))
		for range 3 { // wherever it stands
			bank.kill()
			bank.start()
		}
		home.run(append([]string{"wait", "--timeout", waitMost}, ids...)...)
		after := bank.settled()
		total := 0.0
		for _, id := range ids {
			j := home.status(id)
			if j.State != "done" {
				t.Fatalf("%+v, want it done", j)
			}
			total += j.Cost
			if paid := bank.redeemed(work.id, id); len(paid) != 1 || !near(paid[0], j.Cost) {
				// An execution that never began costs nothing, and another may be under a later epoch.
				sum := 0.0
				for _, p := range paid {
					sum += p
				}
				if !near(sum, j.Cost) {
					t.Errorf("job %s cost %v, paid were %v", id, j.Cost, paid)
				}
			}
		}
		if !near(after[work.id].Settled, before[work.id].Settled+total) {
			t.Errorf("%v earned: %+v became %+v", total, before, after)
		}
	})
	step("a job waits for the bank", func(t *testing.T) {
		bank.kill()
		id := strings.TrimSpace(home.ok("submit", "--site", "work", "-t", "1h", "--", "true"))
		home.eventually("it waits, and says for whom", func() bool {
			j := home.status(id)
			return j.State == "placing" && strings.Contains(j.Reason, "does not answer")
		})
		if r := home.code(1, "bank", "balance"); !strings.Contains(r.stderr, "does not answer") {
			t.Errorf("balance: %v", r)
		}
		bank.start()
		if r := home.run("wait", "--timeout", waitMost, id); r.code != 0 {
			t.Errorf("wait: %v", r)
		}
		bank.settled()
	})
	step("nobody pays", func(t *testing.T) {
		home.code(0, "stop")
		_ = home.daemon.Wait()
		home.ok("config", "set", "bank.site", "")
		home.start()
		home.sees(3)
		if r := home.code(5, "submit", "--site", "work", "--", "true"); !strings.Contains(r.stderr, "refused") {
			t.Errorf("work takes a job that nobody pays for: %v", r)
		}
	})
}
