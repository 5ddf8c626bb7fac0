package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/sandbox"
)

// walled starts sites that run jobs of others inside walls, and lend if asked to.
func walled(t *testing.T, names ...string) []*site {
	t.Helper()
	if _, err := sandbox.Find().Walls(sandbox.Auto); err != nil {
		t.Skipf("left out: %v", err)
	}
	var sites []*site
	for i, name := range names {
		flags := []string{"--processors", "2", "--foreign", "allow"}
		if i > 0 {
			flags = append(flags, "--join", sites[0].addr)
		}
		s := newSite(t, name, flags...)
		s.walls = "auto"
		sites = append(sites, s.set("leases.lend", "allow").start())
	}
	for _, s := range sites {
		s.sees(len(sites))
	}
	return sites
}

// TestGuestIsInsideWalls: a job of another site runs, and its owner gets its output and the
// reason of its end; but it does not find the key of the site, and leaves nothing behind.
func TestGuestIsInsideWalls(t *testing.T) {
	sites := walled(t, "home", "host")
	home, host := sites[0], sites[1]
	key := filepath.Join(host.home, "key")
	stays := fmt.Sprintf("sleep 4711.%d", os.Getpid()) // of this run of the tests
	script := fmt.Sprintf(`echo "at $GRIDNODE_SITE"; cat %s 2>/dev/null && echo "has the key"; ls %s 2>/dev/null | head -3
		echo kept > file && cat file; (setsid sh -c 'exec %s' &)`, key, host.home, stays)
	id := strings.TrimSpace(home.ok("submit", "--site", "host", "-q", "-W", "--", "sh", "-c", script))
	if out := home.ok("logs", id); out != "at host\nkept\n" {
		t.Errorf("the guest prints %q", out)
	}
	if r := home.runIn("hello\n", "submit", "--site", "host", "-W", "--", "cat"); r.stdout != "hello\n" {
		t.Errorf("the guest does not read what is piped to it: %v", r)
	}
	if out, _ := exec.Command("pgrep", "-f", stays).Output(); len(out) > 0 {
		t.Errorf("process %s lives on", out)
	}
	for _, name := range []string{"tasks", "foreign"} {
		left, _ := filepath.Glob(filepath.Join(host.home, name, "*", "*.scratch"))
		if len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}

	neighbour := strings.TrimSpace(home.ok("submit", "--site", "host", "--", "sh", "-c", "sleep 2; echo fine"))
	hog := home.run("submit", "--site", "host", "--mem", "64M", "-q", "-W", "--", "sh", "-c", "x=x; while :; do x=$x$x$x$x; done")
	if reason := home.status(strings.TrimSpace(hog.stdout)).Reason; hog.code == 0 || !strings.Contains(reason, "out of memory") {
		t.Errorf("the one that takes all memory ends with %v, because %q", hog, reason)
	}
	home.code(0, "wait", neighbour)
	if out := home.ok("logs", neighbour); out != "fine\n" {
		t.Errorf("its neighbour prints %q", out)
	}
}

// TestGangInsideWalls: tasks of one job at several sites reach each other at their
// addresses, though guests have no network.
func TestGangInsideWalls(t *testing.T) {
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("left out: no perl")
	}
	sites := walled(t, "home", "left", "right")
	script := `
		if [ $GRIDNODE_RANK = 0 ]; then perl -MIO::Socket::INET -e '
			$s = IO::Socket::INET->new(LocalAddr => $ENV{GRIDNODE_RENDEZVOUS}, Listen => 5, ReuseAddr => 1) or die "listen: $!";
			$c = $s->accept or die "accept: $!"; print scalar <$c>'
		else perl -MIO::Socket::INET -e '
			$c = IO::Socket::INET->new(PeerAddr => $ENV{GRIDNODE_RENDEZVOUS}, Timeout => 60) or die "connect: $!"; print $c "hello from the other site\n"; close $c'
		fi`
	r := sites[0].run("submit", "--components", "1@left,1@right", "-q", "-W", "-t", "5m", "--", "sh", "-c", script)
	out := sites[0].ok("logs", strings.TrimSpace(r.stdout))
	if r.code != 0 || !strings.Contains(out, "hello from the other site") {
		t.Errorf("%v; it prints %q: %s", r, out, sites[0].status(strings.TrimSpace(r.stdout)).Reason)
	}
}

// TestOpenHomeIsRefused: others could read the key.
func TestOpenHomeIsRefused(t *testing.T) {
	s := newSite(t, "open")
	for path, want := range map[string]string{s.home: "chmod 700", filepath.Join(s.home, "key"): "chmod 600"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o044); err != nil {
			t.Fatal(err)
		}
		if r := s.code(1, "start"); !strings.Contains(r.stderr, want) {
			t.Errorf("got %v, want the advice %q", r, want)
		}
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
}
