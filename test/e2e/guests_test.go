package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridnode/node/api"
)

// rules writes the owner's rules for guests into the settings of a site, in place of
// those that were there.
func (s *site) rules(text string) {
	s.Helper()
	s.below("  zone: local\n", text)
}

// below writes lines into the settings of a site below one that is there, in place of those
// that were written so before.
func (s *site) below(mark, text string) {
	s.Helper()
	path := filepath.Join(s.home, "config.yaml")
	old, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	before, after, found := strings.Cut(string(old), mark)
	if !found {
		s.Fatalf("no %q in %s", mark, old)
	}
	if _, rest, there := strings.Cut(after, "  # end of it\n"); there {
		after = rest
	}
	if err := os.WriteFile(path, []byte(before+mark+text+"  # end of it\n"+after), 0o600); err != nil {
		s.Fatal(err)
	}
}

// TestGuests: an owner denies one site and limits another, changes its mind without a
// restart, sees who is there, ends a job and bans a site.
func TestGuests(t *testing.T) {
	t.Parallel()
	host := newSite(t, "host", "--processors", "4", "--foreign", "allow", "--price", "2")
	host.rules("  sites:\n    beta:\n      access: deny\n    gamma:\n      processors: 2\n      time: 2h\n      price: 0.5\n")
	host.ok("config", "validate")
	host.start()
	join := func(name string) *site {
		return newSite(t, name, "--join", host.addr, "--processors", "1").start()
	}
	beta, gamma := join("beta"), join("gamma")
	beta.sees(3)
	gamma.sees(3)
	refused := func(s *site, args ...string) {
		t.Helper()
		args = append(append([]string{"submit", "--site", "host", "-W"}, args...), "--", "true")
		if r := s.code(5, args...); !strings.Contains(r.stderr, "no site") {
			t.Errorf("%q: %v", args, r)
		}
	}
	refused(beta)
	refused(gamma, "-n", "3")
	refused(gamma, "-t", "3h")
	gamma.ok("submit", "--site", "host", "-n", "2", "-t", "1h", "-W", "--", "true")

	// The daemon knows of the change after 'reload', and of another after SIGHUP.
	host.rules("  sites:\n    beta:\n      processors: 2\n    gamma:\n      processors: 3\n")
	if text := host.ok("reload", "-o", "csv"); !strings.Contains(text, "guests.sites.beta.access,deny,,now") || !strings.Contains(text, "guests.sites.gamma.processors,2,3,now") {
		t.Errorf("reload: %s", text)
	}
	gate := newGate(t)
	id := strings.TrimSpace(beta.ok("submit", "--site", "host", "-n", "2", "-t", "1h", "--", "sh", "-c", fmt.Sprintf("read x < %s", gate)))
	beta.eventually("the job runs", func() bool { return strings.Contains(host.ok("guests"), "running") })
	if text := host.ok("guests", "-o", "csv", "--no-headers"); !strings.Contains(text, id+",job,beta,"+beta.id) {
		t.Errorf("guests: %s", text)
	}
	if text := host.ok("guests", "--refused", "-o", "csv"); !strings.Contains(text, "gamma,"+gamma.id+",2,time") || !strings.Contains(text, "beta,"+beta.id+",1,access") {
		t.Errorf("refused: %s", text)
	}
	refused(beta)
	host.rules("  everyone:\n    access: deny\n    jobs: 3\n")
	if r := host.code(2, "reload"); !strings.Contains(r.stderr, "guests.everyone.jobs") || !strings.Contains(r.stderr, "config.yaml:") {
		t.Errorf("rules that contradict themselves: %v", r)
	}
	wrong{"config validate", 2, "guests.everyone.jobs"}.check(t, host)
	host.rules("  everyone:\n    jobs: 7\n")
	if err := host.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	host.eventually("the rules are read again", func() bool {
		text, _ := os.ReadFile(filepath.Join(host.home, "daemon.log"))
		return strings.Contains(string(text), "key=guests.everyone.jobs")
	})
	beta.ok("submit", "--site", "host", "-W", "--", "true")

	// The owner ends a job, and its home is told why.
	host.code(4, "guests", "cancel", "zzzz")
	host.ok("guests", "cancel", id[:8], "--reason", "too loud")
	beta.eventually("the job is over", func() bool { return beta.status(id).State == "failed" })
	if text := beta.ok("why", id); !strings.Contains(text, "too loud") {
		t.Errorf("why: %s", text)
	}

	// A ban outlives a restart, and is lifted.
	host.ok("guests", "ban", "beta", "--for", "1d", "--reason", "noise")
	refused(beta)
	host.kill()
	host.start()
	if text := host.ok("guests", "--bans", "-o", "csv", "--no-headers"); !strings.HasPrefix(text, "beta,,") || !strings.Contains(text, "noise") {
		t.Errorf("bans: %s", text)
	}
	beta.eventually("host is there again", func() bool { return strings.Contains(beta.ok("peers"), "host") })
	refused(beta)
	gamma.eventually("host takes what is not banned", func() bool { return gamma.run("submit", "--site", "host", "-W", "--", "true").code == 0 })
	host.ok("guests", "unban", "beta")
	host.code(4, "guests", "unban", "beta")
	beta.ok("submit", "--site", "host", "-W", "--", "true")
	jobLog(t, host, beta, id)
}

// jobLog: what ended is in the log of both sites, once, whoever was killed meanwhile.
func jobLog(t *testing.T, host, beta *site, cancelled string) {
	t.Helper()
	lines := func(s *site, args ...string) (list []api.HistoryLine) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.ok(append([]string{"history", "-o", "json"}, args...)...)), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, s := range []*site{host, beta} {
		s.kill()
		s.start()
		all := lines(s)
		seen := map[string]bool{}
		for i, l := range all {
			if l.Seq != uint64(i+1) || seen[l.ID] {
				t.Errorf("%s: line %d: %+v", s.name(), i, l)
			}
			seen[l.ID] = true
		}
		if !seen[cancelled] {
			t.Errorf("%s has no line of job %s: %+v", s.name(), cancelled, all)
		}
		if text, err := os.ReadFile(filepath.Join(s.home, "history", "00000000000000000001.jsonl")); err != nil || strings.Count(string(text), "\n") != len(all) {
			t.Errorf("%s: %d lines, %v in %s", s.name(), len(all), err, text)
		}
	}
	here := lines(host, "--foreign", "--site", "beta", "--job", cancelled)
	if len(here) != 1 || here[0].Origin != "foreign" || here[0].HomeName != "beta" || here[0].Used == 0 || here[0].Processors != 2 || here[0].Cost == 0 || !strings.Contains(here[0].Reason, "too loud") {
		t.Errorf("at the host: %+v", here)
	}
	if home := lines(beta, "--own", "--site", "host", "--since", "1h", "--job", cancelled); len(home) != 1 || home[0].SiteName != "host" || home[0].Cost != here[0].Cost || home[0].State != "failed" {
		t.Errorf("at its home: %+v", home)
	}
	if got := lines(host, "--until", "1h"); len(got) != 0 {
		t.Errorf("an hour ago: %+v", got)
	}
	if text := host.ok("history", "-o", "name", "--last", "1", "--own"); text != "" {
		t.Errorf("own jobs of the host: %s", text)
	}
	host.code(2, "history", "--own", "--foreign")
	host.code(2, "history", "--since", "soon")
}
