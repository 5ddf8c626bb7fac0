package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// A user says how often a request of a job may be delegated: with --ttl 0 it waits at its
// own site although another has room, with the site's setting it runs there.
func TestSubmitTTL(t *testing.T) {
	t.Parallel()
	lender := newSite(t, "hill", "--processors", "4").set("leases.lend", "allow", "leases.term", "20s").start()
	borrower := newSite(t, "vale", "--processors", "1", "--join", lender.addr).
		set("leases.term", "20s", "delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+lender.id).start()
	borrower.sees(2)
	borrower.ok("submit", "-q", "-t", "1h", "--", "sleep", "1000")
	stays := strings.TrimSpace(borrower.ok("submit", "-q", "-t", "1h", "--ttl", "0", "--", "sleep", "1000"))
	goes := strings.TrimSpace(borrower.ok("submit", "-q", "-t", "1h", "--", "sleep", "1000"))
	borrower.eventually("the job behind it runs on borrowed processors", func() bool { return borrower.status(goes).State == "running" })
	if state := borrower.status(stays).State; state != "queued" {
		t.Errorf("the job that may not be delegated is %s, want queued", state)
	}
	for id, want := range map[string]string{stays: "delegation time-to-live 0", goes: "delegation time-to-live 6"} {
		if text := borrower.ok("why", id); !strings.Contains(text, want) {
			t.Errorf("why says %q, want %q", text, want)
		}
	}
	if text := borrower.ok("status", "-o", "csv", stays); !strings.Contains(text, "TTL") || !strings.Contains(text, "local,0,") {
		t.Errorf("status prints %q", text)
	}
	for _, ttl := range []string{"-1", "17"} {
		if r := borrower.code(2, "submit", "--ttl", ttl, "--", "true"); !strings.Contains(r.stderr, "want 0 to 16") {
			t.Errorf("--ttl %s: %v", ttl, r)
		}
	}
	if r := borrower.code(5, "submit", "-n", "3", "--ttl", "0", "--", "true"); !strings.Contains(r.stderr, "may not be delegated") {
		t.Errorf("wider than the site: %v", r)
	}
}

// statement is a line of bank statement.
type statement struct {
	Kind    string  `json:"kind"`
	Settled float64 `json:"settled"`
	Lease   uint64  `json:"lease"`
}

// A lease has a price: it is agreed before, held at the bank, and paid for the time that
// it was held, whoever of the two is killed meanwhile. A delegated job's lease is paid as
// well, also when its user cancels it; and without funds there is no lease.
func TestLeasePrice(t *testing.T) {
	t.Parallel()
	bank := newSite(t, "bank", "--processors", "1").set("bank.offer", "true", "bank.site", "self").start()
	lender := newSite(t, "hill", "--processors", "4", "--join", bank.addr).
		set("leases.lend", "allow", "leases.term", "20s", "leases.price", "36", "bank.site", bank.addr, "bank.accept", bank.id).start()
	borrower := newSite(t, "vale", "--processors", "1", "--join", bank.addr).
		set("leases.term", "20s", "leases.pay", "100", "bank.site", bank.addr, "delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+lender.id).start()
	borrower.sees(3)
	bank.ok("bank", "grant", borrower.id, "100")

	if r := borrower.code(5, "lease", "request", "hill", "-n", "2", "-t", "1h", "--max-price", "1"); !strings.Contains(r.stderr, "36 credits a processor-hour") {
		t.Errorf("above the limit: %v", r)
	}
	if r := borrower.code(5, "lease", "request", "hill", "-n", "2", "-t", "10h"); !strings.Contains(r.stderr, "insufficient funds") {
		t.Errorf("without funds: %v", r)
	}
	if r := bank.code(5, "lease", "request", "hill", "-n", "2", "-t", "1h", "--max-price", "20"); !strings.Contains(r.stderr, "higher price") {
		t.Errorf("above the limit: %v", r)
	}
	var made leaseInfo
	borrower.json(&made, "lease", "request", "hill", "-n", "2", "-t", "1h")
	if made.Price != 36 || made.Ceiling != 72 {
		t.Errorf("%+v, want a price of 36 and at most 72 credits", made)
	}
	if all := bank.accounts(); all[borrower.id].Committed < 72 || all[borrower.id].Settled > 28 {
		t.Errorf("accounts %+v: the price of the whole time is not held", all)
	}
	for _, s := range []*site{borrower, lender} { // both find what is paid for after a restart
		s.kill()
		s.start()
	}
	borrower.eventually("the lease goes on, or is over", func() bool {
		l := borrower.leases()
		return len(l) == 0 || l[0].State == "active"
	})
	r := borrower.run("lease", "release", strconv.FormatUint(made.Number, 10))
	if r.code != 0 && !strings.Contains(r.stderr, "no such lease") { // it may be over by itself
		t.Errorf("the lease is not given back: %v", r)
	}
	all := bank.settled()
	paid := borrower.fees()[made.Number]
	if len(paid) != 1 || paid[0] >= 0 || paid[0] < -5 || !near(all[lender.id].Settled, -paid[0]) || !near(all[borrower.id].Settled, 100+paid[0]) {
		t.Errorf("the borrower has paid %v for the lease, accounts %+v", paid, all)
	}

	// By load, for a job that is cancelled: what was held until then is paid.
	borrower.ok("submit", "-q", "-t", "1h", "--", "sleep", "1000")
	job := strings.TrimSpace(borrower.ok("submit", "-q", "-t", "10m", "--", "sleep", "1000"))
	var number uint64
	borrower.eventually("the job runs on borrowed processors", func() bool {
		l := borrower.leases()
		if len(l) == 1 {
			number = l[0].Number
		}
		return len(l) == 1 && borrower.status(job).State == "running"
	})
	borrower.ok("cancel", job)
	borrower.eventually("the lease is over", func() bool { return len(borrower.leases()) == 0 })
	bank.settled()
	if paid := borrower.fees()[number]; len(paid) != 1 || paid[0] >= 0 || paid[0] < -1 {
		t.Errorf("the borrower has paid %v for the job's lease", paid)
	}
}

// fees returns what the account of a site was charged for leases, by their numbers.
func (s *site) fees() map[uint64][]float64 {
	s.Helper()
	var lines []statement
	s.bank(&lines, "statement", "--limit", "100")
	held, paid := make(map[uint64]float64), make(map[uint64][]float64)
	for i := len(lines) - 1; i >= 0; i-- { // the oldest first
		switch l := lines[i]; {
		case l.Lease == 0:
		case l.Kind == "cheque":
			held[l.Lease] = l.Settled
		default:
			paid[l.Lease] = append(paid[l.Lease], held[l.Lease]+l.Settled)
		}
	}
	return paid
}

// A job whose deadline no queue keeps runs on borrowed processors if those keep it; else it
// is refused, with what the lender has said.
func TestDeadlineByLease(t *testing.T) {
	t.Parallel()
	lender := newSite(t, "hill", "--processors", "2").set("leases.lend", "allow", "leases.term", "20s").start()
	borrower := newSite(t, "vale", "--processors", "1", "--join", lender.addr).
		set("leases.term", "20s", "delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+lender.id).start()
	borrower.sees(2)
	borrower.ok("submit", "-q", "-t", "3h", "--", "sleep", "1000")
	job := strings.TrimSpace(borrower.ok("submit", "-q", "-t", "30m", "--deadline", "1h", "--policy", "local", "-n", "1", "--", "sleep", "1000"))
	borrower.eventually("it runs on borrowed processors", func() bool {
		l := borrower.leases()
		return len(l) == 1 && l[0].Used == 1 && borrower.status(job).State == "running"
	})
	r := borrower.code(5, "submit", "-q", "-t", "30m", "--deadline", "40m", "--policy", "local", "-n", "2", "--", "sleep", "1000")
	if !strings.Contains(r.stderr, "refused") {
		t.Errorf("a job that nobody can have done in time: %v", r)
	}
	late := strings.Fields(r.stdout)[0]
	if text := borrower.ok("why", late); !strings.Contains(text, "no lease keeps the deadline") || !strings.Contains(text, "ready in") {
		t.Errorf("why says %q", text)
	}
}
