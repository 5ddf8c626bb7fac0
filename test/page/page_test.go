package page

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPage does by clicks what a user does: look at the federation, submit a job and see it
// end at another site, end one, and go on when the daemon dies under the page.
func TestPage(t *testing.T) {
	tab := newTab(t)
	alpha, beta := federation(t)

	tab.run("open the page", chromedp.Navigate(alpha.ok("web")))
	tab.await("main", "campus", "alpha (here)", "beta")
	tab.await(".map", "alpha", "beta")
	var address string
	tab.run("address", chromedp.Location(&address))
	if containsAll(address, []string{"key"}) {
		t.Errorf("the key is still in the address: %s", address)
	}

	tab.view("submit")
	tab.run("describe a job", chromedp.SendKeys(`[name=command]`, "for i in 1 2 3; do echo step $i; sleep 0.2; done; echo all done >&2"), chromedp.SendKeys(`[name=name]`, "steps"))
	tab.choose("policy", "cheapest")
	tab.await("section", "What it would get now", "beta", "chosen")
	tab.shoot("page-submit")
	tab.accessible("submit")
	tab.press("Submit")
	tab.await("main h1", "steps", "done")
	tab.await("dl.facts", "beta", "Exit code")
	tab.await("pre.output", "step 1", "step 3")
	tab.shoot("page-job")
	tab.accessible("job")
	tab.press("stderr")
	tab.await("pre.output", "all done")

	tab.view("submit")
	tab.run("describe a long job", chromedp.SendKeys(`[name=command]`, "sleep 600"), chromedp.SendKeys(`[name=name]`, "sleeper"))
	tab.choose("policy", "local")
	tab.await("section", "chosen")
	tab.press("Submit")
	tab.await("main h1", "sleeper", "running")
	tab.view("site")
	tab.await("main", "alpha", "Processors over time")
	tab.view("jobs")
	tab.await(".table", "steps", "done", "sleeper", "running")
	tab.run("open by the keyboard", chromedp.Focus(`[data-row]`), chromedp.SendKeys(`[data-row]`, kb.Enter))
	tab.await("main h1", "sleeper")

	alpha.kill()
	tab.await("[role=status]", "does not answer")
	tab.shoot("lost")
	alpha.start()
	tab.await("main h1", "sleeper", "running")
	tab.run("the page is told that the daemon is back", chromedp.WaitNotPresent(`.lost:not(:empty)`))
	tab.press("Cancel")
	tab.await("main h1", "sleeper", "cancelled")

	for _, view := range []struct{ path, words string }{
		{"", "campus"}, {"jobs", "sleeper"}, {"site", "Price"}, {"prices", "Credits"}, {"bank", "Bank"}, {"owner", "Peers"}, {"reports", "Open what"},
	} {
		tab.view(view.path)
		tab.await("main", view.words)
		tab.accessible("view " + view.path)
		tab.shoot("view-" + view.path)
	}
	_ = beta
}

// TestPageKnowsNobody: without a key, or with a wrong one, the page shows nothing.
func TestPageKnowsNobody(t *testing.T) {
	tab := newTab(t)
	alpha := newSite(t, "alpha", "--create", "campus").start()
	url := alpha.ok("web")
	tab.run("open with a wrong key", chromedp.Navigate(url+"x"))
	tab.await("main", "Who are you?", "gridnode web")
	tab.accessible("login")
}

// TestPageOfNetwork: a network of testnet shows its federation while it is up, and lets nobody
// change it.
func TestPageOfNetwork(t *testing.T) {
	tab := newTab(t)
	network := exec.Command(program, "testnet", "up", "-n", "8", "--jobs", "80", "--transport", "memory", "--web", "--stay")
	said, err := network.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Start(); err != nil {
		t.Fatal(err)
	}
	replayed := make(chan bool)
	t.Cleanup(func() {
		<-replayed
		_ = network.Process.Signal(os.Interrupt)
		if err := network.Wait(); err != nil {
			t.Errorf("testnet up: %v", err)
		}
	})
	lines, address := bufio.NewScanner(said), ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "the page of the first site is at ")
	}
	go func() {
		defer close(replayed)
		for lines.Scan() && !strings.Contains(lines.Text(), "the nodes stay up until Ctrl-C") {
		}
	}()
	tab.run("open the page", chromedp.Navigate(address))
	tab.await("main", "testnet", "8 sites", "(here)")
	tab.await(".map", "LANL-Origin")
	tab.shoot("page-federation")
	tab.view("submit")
	tab.run("describe a job", chromedp.SendKeys(`[name=command]`, "true"))
	tab.await("section", "What it would get now")
	tab.press("Submit")
	tab.await("main", "it can be looked at, and nothing changed")
}
