package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridnode/node/api"
)

// Accounts of these tests, by number: the machine need not have them.
const (
	ann      = 710001
	ben      = 710002
	operator = 710003
	stranger = 710009
)

// openSite starts a site that others of this machine may use. Its home is where they could
// get at it if it were not closed. account is the daemon's, 0 for root.
func openSite(t *testing.T, account uint32, settings map[string]string) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root takes other accounts")
	}
	dir, err := os.MkdirTemp("", "gridnode-users") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "run"), int(account), int(account)); err != nil {
		t.Fatal(err)
	}
	s := &site{TB: t, home: filepath.Join(dir, "home"), port: freePort(t), account: account, env: []string{"GRIDNODE_USERS_ROOT=deny"}}
	s.init("open", "--processors", "4")
	t.Cleanup(func() { // with the shim, which has its lock there
		s.run("stop")
	})
	s.set("api.socket", filepath.Join(dir, "run", "api.sock")).set("api.mode", "0666").set("users.scratch", filepath.Join(dir, "scratch"))
	s.set("users.users", fmt.Sprintf("%d,%d", ann, ben)).set("users.operators", fmt.Sprint(operator))
	for key, value := range settings {
		s.set(key, value)
	}
	return s.start()
}

// as returns who asks the site as an account.
func (s *site) as(account uint32) *site {
	other := *s
	other.account, other.daemon = account, nil
	other.env = []string{"GRIDNODE_SOCKET=" + filepath.Join(filepath.Dir(s.home), "run", "api.sock"), "GRIDNODE_HOME="}
	other.home = filepath.Dir(s.home)
	return &other
}

// TestUsersOfASite: each user's job runs as that user, and nobody else gets at it.
func TestUsersOfASite(t *testing.T) {
	s := openSite(t, 0, map[string]string{"site.price": "3600"}) // a credit for a second
	script := fmt.Sprintf(`id -u; id -G; echo "$USER $LOGNAME"; cd "$TMPDIR"; stat -c '%%u %%a' .; touch file && stat -c %%u file; cat %s/key %s/config.yaml; true`, s.home, s.home)
	id := strings.TrimSpace(s.as(ann).ok("submit", "-q", "-W", "--", "sh", "-c", script))
	if out := s.as(ann).ok("logs", id); out != "710001\n710001\n710001 710001\n710001 700\n710001\n" {
		t.Errorf("the job prints %q", out)
	}
	if err := s.as(ann).ok("logs", id, "--stderr"); strings.Count(err, "Permission denied") != 2 {
		t.Errorf("the job gets at the home: %q", err)
	}
	outputs, _ := filepath.Glob(filepath.Join(s.home, "tasks", "*.std*"))
	for _, path := range outputs {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != ann {
			t.Errorf("output: %v, %v", info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.home), "scratch", "*.*")); len(outputs) != 2 || len(left) != 0 {
		t.Errorf("outputs %v, scratch directories %v", outputs, left)
	}

	runs := strings.TrimSpace(s.as(ann).ok("submit", "-n", "2", "-J", "secret", "--", "sleep", "1000"))
	for _, other := range []uint32{ben, operator} {
		if r := s.as(other).code(6, "logs", id); !strings.Contains(r.stderr, "another user") {
			t.Errorf("%d: %v", other, r)
		}
	}
	s.code(6, "logs", id) // root through the home's socket
	s.as(ben).code(6, "cancel", runs)
	s.as(ben).code(4, "cancel", "--name", "secret")
	s.as(ben).code(6, "why", runs)
	s.as(ben).code(6, "wait", runs)
	var seen []api.Job
	s.as(ben).json(&seen, "status", runs)
	if len(seen) != 1 || !seen[0].Brief || seen[0].Processors != 2 || seen[0].Name != "" || seen[0].User != "" || seen[0].Args != nil {
		t.Errorf("another user sees %+v", seen)
	}
	s.as(ben).json(&seen, "status", "--name", "secret")
	if len(seen) != 0 {
		t.Errorf("another user finds by name %+v", seen)
	}
	s.as(operator).json(&seen, "status", runs)
	if len(seen) != 1 || seen[0].Brief || seen[0].Name != "secret" || seen[0].User != "710001" {
		t.Errorf("an operator sees %+v", seen)
	}
	s.as(operator).ok("cancel", runs)
	s.as(ann).run("wait", runs) // until it has ended it counts

	if r := s.as(stranger).code(6, "status"); !strings.Contains(r.stderr, "no user here") {
		t.Errorf("a stranger: %v", r)
	}
	s.as(ann).code(6, "stop")
	s.as(operator).code(6, "token", "create", "710003", "--role", "admin")
	if r := s.code(6, "submit", "--", "id"); !strings.Contains(r.stderr, "users.root") {
		t.Errorf("root's job: %v", r)
	}
	if text, _ := os.ReadFile(filepath.Join(s.home, "daemon.log")); !strings.Contains(string(text), "as the account that submits") {
		t.Errorf("the log does not say whose jobs run: %s", text)
	}
	limitsOfUsers(t, s)
}

// TestJobsOfRoot run as root only where that is said, and not by a daemon that is not root.
func TestJobsOfRoot(t *testing.T) {
	s := openSite(t, 0, nil)
	s.ok("stop")
	s.env = []string{"GRIDNODE_USERS_ROOT=allow"}
	s.start()
	id := strings.TrimSpace(s.ok("submit", "-q", "-W", "--", "id", "-u"))
	if out := s.ok("logs", id); out != "0\n" {
		t.Errorf("root's job prints %q", out)
	}
	id = strings.TrimSpace(s.as(ann).ok("submit", "-q", "-W", "--", "id", "-u"))
	if out := s.as(ann).ok("logs", id); out != "710001\n" {
		t.Errorf("a user's job prints %q", out)
	}
}

// TestDaemonOfAPlainAccount runs jobs of that account, and says so to others.
func TestDaemonOfAPlainAccount(t *testing.T) {
	s := openSite(t, ann, nil)
	id := strings.TrimSpace(s.ok("submit", "-q", "-W", "--", "id", "-u"))
	if out := s.ok("logs", id); out != "710001\n" {
		t.Errorf("its own job prints %q", out)
	}
	for _, other := range []uint32{0, ben, operator} {
		if r := s.as(other).code(6, "submit", "--", "id"); !strings.Contains(r.stderr, "runs as account 710001 and runs jobs of that account only") {
			t.Errorf("%d submits: %v", other, r)
		}
	}
	if r := s.as(ben).code(0, "status"); !strings.Contains(r.stderr, "jobs of account 710001 only") {
		t.Errorf("status does not say whose jobs run: %v", r)
	}
	if text, _ := os.ReadFile(filepath.Join(s.home, "daemon.log")); !strings.Contains(string(text), "only that account may submit") {
		t.Errorf("the log does not say whose jobs run: %s", text)
	}
}

// limitsOfUsers: over a limit a user's jobs wait or are refused, and no other user's; limits
// change without a restart, and what was spent outlives a crash.
func limitsOfUsers(t *testing.T, s *site) {
	t.Helper()
	s.below("  root: deny\n", "  everyone:\n    max-jobs: 2\n  accounts:\n    \"710001\":\n      processors: 2\n")
	s.ok("reload")
	first := strings.TrimSpace(s.as(ann).ok("submit", "-n", "2", "--", "sleep", "1000"))
	second := strings.TrimSpace(s.as(ann).ok("submit", "--", "sleep", "1000"))
	others := strings.TrimSpace(s.as(ben).ok("submit", "-n", "2", "--", "sleep", "1000"))
	if j := s.as(ben).status(others); j.State == "waiting" {
		t.Errorf("another user's job waits: %+v", j)
	}
	if why := s.as(ann).ok("why", second); s.as(ann).status(second).State != "waiting" || !strings.Contains(why, "710001 has 2 processors, this job needs 1, and 2 at a time are allowed") {
		t.Errorf("why: %s", why)
	}
	if r := s.as(ann).code(5, "submit", "--", "id"); !strings.Contains(r.stderr, "max-jobs") {
		t.Errorf("a job too many: %v", r)
	}
	if r := s.as(ann).code(5, "submit", "-n", "3", "--", "id"); !strings.Contains(r.stderr, "max-jobs") {
		t.Errorf("a job too wide: %v", r)
	}
	var users []api.User
	s.as(ann).json(&users, "users")
	if len(users) != 1 || users[0].User != "710001" || users[0].Jobs != 2 || users[0].Running != 1 || users[0].Processors != 2 || users[0].MaxJobs != 2 || users[0].MaxProcessors != 2 || users[0].Spent == 0 {
		t.Errorf("a user sees of users %+v", users)
	}
	before := users[0].Total
	s.kill()
	s.start()
	if table := s.as(operator).ok("users", "-o", "csv"); strings.Count(table, "\n") != 4 || !strings.Contains(table, "\n710001,2,1,2,") || !strings.Contains(table, "\n710002,1,1,2,") {
		t.Errorf("an operator sees of users %s", table)
	}
	s.below("  root: deny\n", "")
	s.set("users.half-life", "1h")
	s.ok("reload")
	// Both have their processors; behind them ann's two wait first, and then ben's. He has used less.
	var queue []string
	for _, user := range []uint32{ann, ann, ben} {
		queue = append(queue, strings.TrimSpace(s.as(user).ok("submit", "-n", "4", "--", "true")))
	}
	s.as(ben).ok("cancel", others)
	s.as(ann).ok("cancel", first, second)
	s.as(ann).run("wait", first, second, queue[0], queue[1])
	s.as(ben).run("wait", queue[2])
	var jobs []api.Job
	s.as(operator).json(&jobs, "status", queue[0], queue[2])
	if len(jobs) != 2 || jobs[0].Start == 0 || jobs[1].Start == 0 || (jobs[1].Start < jobs[0].Start) != (jobs[1].ID == queue[2]) {
		t.Errorf("ben, who has used less, did not go first: %+v", jobs)
	}
	users = nil
	s.as(ann).json(&users, "users")
	var lines []api.HistoryLine
	s.as(ann).json(&lines, "history", "-u", "710001")
	var cost api.Amount
	for _, l := range lines {
		cost += l.Cost
	}
	if len(users) != 1 || users[0].Total != cost || users[0].Total < before || users[0].Jobs != 0 || users[0].MayCost != 0 || users[0].MaxJobs != 0 {
		t.Errorf("after a crash %+v, %v were spent before, %v by the job log", users, before, cost)
	}
}
