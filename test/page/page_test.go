package page

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestPageOfVisitor: somebody of another member's site is shown the federation, is told as whose
// visitor, and nothing more once that site is banned.
func TestPageOfVisitor(t *testing.T) {
	tab := newTab(t, chromedp.IgnoreCertErrors)
	alpha := newSite(t, "alpha", "--create", "campus").start()
	beta := newSite(t, "beta", "--join", alpha.ok("invite"), "--price", "0.25")
	certificate, key := certify(t)
	for setting, value := range map[string]string{
		"api.certificate": certificate, "api.key": key, "web.listen": "0.0.0.0:" + freePort(t), "web.members": "allow",
	} {
		beta.ok("config", "set", setting, value)
	}
	beta.start()
	alpha.sees("beta")
	tab.run("open the page of another site", chromedp.Navigate(alpha.ok("web", "--at", "beta")))
	tab.await("header", "beta", "you are a visitor from alpha", "Federation", "Prices")
	tab.await("main", "alpha", "beta", "0.25")
	if text, err := tab.text("header"); err != nil || strings.Contains(text, "Jobs") || strings.Contains(text, "Owner") {
		t.Errorf("a visitor is offered %q, %v", text, err)
	}
	tab.accessible("the page of another site")
	beta.ok("guests", "ban", "alpha")
	tab.await("main", "Who are you?")
}

// certify makes a certificate of localhost and its key, and returns their files.
func certify(tb testing.TB) (certificate, key string) {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // browsers know no Ed25519
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		tb.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	write := func(name, kind string, raw []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	return write("site.pem", "CERTIFICATE", raw), write("site.key", "PRIVATE KEY", secret)
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
