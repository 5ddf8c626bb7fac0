package page

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridnode/node/api/apitest"
)

// TestOutputGoesOn: what a job writes goes on where it was, when the connection breaks and when
// the daemon dies: nothing is missing, nothing comes twice.
func TestOutputGoesOn(t *testing.T) {
	tab := newTab(t)
	alpha := newSite(t, "alpha", "--create", "campus", "--processors", "2")
	alpha.ok("config", "set", "web.listen", "127.0.0.1:"+freePort(t))
	alpha.start()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	gate, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for the job
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	open := func() {
		t.Helper()
		if _, err := gate.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
	job := alpha.ok("submit", "--policy", "local", "--", "sh", "-c",
		`exec 3<"$0"; printf 'one\ntw\303'; read x <&3; printf '\266\n'; read x <&3; echo three`, path)
	address, err := url.Parse(alpha.ok("web"))
	if err != nil {
		t.Fatal(err)
	}
	relay := apitest.NewRelay(t, "tcp", address.Host)
	address.Host = relay.Address
	shown := func(want string) {
		t.Helper()
		tab.await("pre.output", want)
		if text, err := tab.text("pre.output"); err != nil || strings.TrimSpace(text) != want {
			t.Errorf("the page has %q (%v), want %q", text, err, want)
		}
	}
	tab.run("open the page", chromedp.Navigate(address.String()))
	tab.await("main", "campus")
	tab.view("jobs/" + job)
	shown("one\ntw") // and half a letter
	before := relay.Cut()
	open()
	shown("one\ntwö")
	if relay.Cut() == before {
		t.Error("the page has not come back")
	}
	alpha.kill()
	tab.await("[role=status]", "does not answer")
	open()
	alpha.start()
	shown("one\ntwö\nthree")
	tab.await("main h1", "done")
}

// TestForgottenJob: the page has what the job log says of a job that the daemon keeps no longer.
func TestForgottenJob(t *testing.T) {
	tab := newTab(t)
	alpha := newSite(t, "alpha", "--create", "campus", "--processors", "2", "--price", "0.5")
	alpha.ok("config", "set", "limits.retention", "1s")
	alpha.start()
	job := alpha.ok("submit", "--policy", "local", "--job-name", "ephemera", "--", "sh", "-c", "exit 7")
	for deadline := time.Now().Add(patience); strings.Contains(alpha.ok("status", "--all", "-o", "name"), job); <-time.After(look) {
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not forget the job")
		}
	}
	tab.run("open the page", chromedp.Navigate(alpha.ok("web")))
	tab.await("main", "campus")
	tab.view("jobs/" + job)
	tab.await("main h1", "ephemera", "failed")
	tab.await("dl.facts", job, "alpha", "Ended", "Processor time", "Price per hour\n0.5", "Exit code\n7")
	tab.accessible("job of the log")
	tab.view("jobs/" + strings.Repeat("0", len(job)))
	tab.await("main [role=alert]", "no job")
}
