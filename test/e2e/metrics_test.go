package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// get reads what a daemon's own socket answers.
func (s *site) get(path string) (status int, text string) {
	s.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.home, "api.sock"))
	}}}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://gridnode" + path)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

// Two sites run jobs, one for the other. Monitoring is told of what both have done, in the
// numbers that users see, with libp2p's and Go's own.
func TestMonitoring(t *testing.T) {
	alpha, beta := newSite(t, "alpha", "--price", "9"), newSite(t, "beta", "--price", "1", "--foreign", "allow")
	alpha.code(2, "config", "set", "metrics.listen", "0.0.0.0:7533") // it is for this machine
	port := freePort(t)
	alpha.ok("config", "set", "metrics.listen", fmt.Sprintf("127.0.0.1:%d", port))
	alpha.start()
	beta.start("--join", alpha.addr)
	alpha.sees(2)
	alpha.ok("submit", "-W", "--site", "beta", "--", "true")
	alpha.code(3, "submit", "-W", "--policy", "local", "--", "sh", "-c", "exit 3")
	for _, tt := range []struct {
		of   *site
		line string
	}{
		{alpha, `gridnode_jobs{owner="own",state="done"} 1`},
		{alpha, `gridnode_jobs{owner="own",state="failed"} 1`},
		{alpha, `gridnode_job_events_total{event="submitted"} 2`},
		{alpha, `gridnode_executions_total{outcome="failure"} 1`},
		{alpha, `gridnode_market_answers_total{code="granted",direction="received"} 1`},
		{alpha, `gridnode_members 1`},
		{alpha, `gridnode_price_credits 9`},
		{beta, `gridnode_market_answers_total{code="granted",direction="given"} 1`},
		{beta, `gridnode_executions_total{outcome="success"} 1`},
		{beta, `gridnode_messages_total{direction="received",kind="market.job-submission"} 1`},
		{beta, `libp2p_swarm_connections_opened_total{`},
		{beta, `go_goroutines `},
		{beta, `process_resident_memory_bytes `},
	} {
		tt.of.eventually("there is "+tt.line, func() bool {
			_, text := tt.of.get("/metrics")
			return strings.Contains(text, "\n"+tt.line)
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := alpha.get(path); status != http.StatusOK || text != "ok\n" {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	// The port for monitoring answers that and nothing else.
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200, "/v1/jobs": 404} {
		reply, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, reply.Status, want)
		}
	}
}
