package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// A site that is drained finishes what it has, for its users and for another site, takes
// nothing new from anybody, also after a restart, and stops once it is empty.
func TestDrain(t *testing.T) {
	alpha, beta := newSite(t, "alpha", "--processors", "1"), newSite(t, "beta", "--processors", "2", "--foreign", "allow")
	alpha.start()
	beta.start("--join", alpha.addr)
	alpha.sees(2)
	began, ends := newGate(t), newGate(t)
	guest := strings.TrimSpace(alpha.ok("submit", "--site", "beta", "--", "sh", "-c", "echo here >"+string(began)+"; read x <"+string(ends)))
	began.await(t)
	beta.ok("drain")
	if r := beta.code(5, "submit", "--", "true"); !strings.Contains(r.stderr, "drained") {
		t.Errorf("a submission is refused with %s", r)
	}
	if status, text := beta.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz of a drained site: %d %s", status, text)
	}
	alpha.code(5, "submit", "-W", "--site", "beta", "--", "true")
	beta.code(124, "drain", "--wait", "--timeout", "1s")
	beta.ok("stop")
	beta.start("--join", alpha.addr)
	beta.code(5, "submit", "--", "true") // it is still
	ends.open(t)
	alpha.ok("wait", guest)
	beta.ok("drain", "--stop")
	beta.start("--join", alpha.addr)
	beta.ok("drain", "--undo")
	beta.ok("submit", "-W", "--", "true")
	alpha.sees(2)
	if r := beta.run("doctor"); !strings.Contains(r.stdout, "membership") || !strings.Contains(r.stdout, "disk") {
		t.Errorf("doctor says %s", r)
	}
}
