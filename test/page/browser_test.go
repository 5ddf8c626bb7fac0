package page

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "directory to write screenshots to")

// patience bounds what must happen.
const patience = 3 * time.Minute

// look is the pause before a test looks again at what it waits for: each look is a process.
const look = 50 * time.Millisecond

func browserPath() string {
	for _, name := range []string{os.Getenv("GRIDNODE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// tab is one tab of a browser.
type tab struct {
	testing.TB
	ctx context.Context
}

// newTab opens a browser, or leaves the test out and says why. What the page's scripts fail
// at fails the test.
func newTab(tb testing.TB, options ...chromedp.ExecAllocatorOption) *tab {
	tb.Helper()
	path := browserPath()
	if path == "" {
		if os.Getenv("GRIDNODE_BROWSER") == "must" {
			tb.Fatal("no chromium: make browser")
		}
		tb.Skip("needs chromium: make browser")
	}
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1200, 900),
		chromedp.WSURLReadTimeout(patience)), options...)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	tb.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	tb.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			tb.Errorf("a script of the page fails: %s", e.ExceptionDetails.Error())
		case *page.EventJavascriptDialogOpening: // "are you sure?"
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(true)) }()
		}
	})
	if err := chromedp.Run(ctx); err != nil {
		tb.Fatal(err)
	}
	return &tab{tb, ctx}
}

func (t *tab) run(what string, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		text, _ := t.text("body")
		t.Fatalf("%s: %v; the page says:\n%s", what, err, text)
	}
}

func (t *tab) text(selector string) (text string, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, 30*time.Second)
	defer cancel()
	err = chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`((e) => e?.innerText ?? e?.textContent ?? "")(document.querySelector(%q))`, selector), &text))
	return text, err
}

// await waits until the text of what a selector finds has all words.
func (t *tab) await(selector string, words ...string) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(patience); ; <-time.After(look) {
		var err error
		text, err = t.text(selector)
		if err == nil && !errors.Is(t.ctx.Err(), context.Canceled) && containsAll(text, words) {
			return
		}
		if time.Now().After(deadline) {
			body, _ := t.text("body")
			t.Fatalf("%s has %q (%v), want %q; the page says:\n%s", selector, text, err, words, body)
		}
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// view opens one of the page's views.
func (t *tab) view(path string) {
	t.Helper()
	t.run("open "+path, chromedp.Evaluate("location.hash = '#/"+path+"'", nil))
}

// press clicks the button with a text.
func (t *tab) press(text string) {
	t.Helper()
	button := `//main//button[normalize-space()="` + text + `"]`
	t.run("press "+text, chromedp.WaitEnabled(button), chromedp.Click(button))
}

// choose picks an option of a list of the page.
func (t *tab) choose(name, value string) {
	t.Helper()
	t.run("choose "+value, chromedp.Evaluate(fmt.Sprintf(`(() => {
		const list = document.querySelector("[name=%s]");
		list.value = %q;
		list.dispatchEvent(new Event("change", {bubbles: true}));
	})()`, name, value), nil))
}

func (t *tab) shoot(name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	var png []byte
	t.run("screenshot", chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// axe is the accessibility checker, which `make web` installs; empty if it did not.
func axe() string {
	text, err := os.ReadFile(filepath.FromSlash("../../node/web/page/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return ""
	}
	return string(text)
}

// accessible fails for what keeps people with other means than eyes and mice from the view.
func (t *tab) accessible(view string) {
	t.Helper()
	script := axe()
	if script == "" {
		t.Log("no axe-core: make web")
		return
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string
			FailureSummary string
		}
	}
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	t.run("axe", chromedp.Evaluate(script+";0", nil), chromedp.Evaluate(`axe.run().then((r) => r.violations.map((v) => ({
		id: v.id, impact: v.impact ?? "", help: v.help, nodes: v.nodes.map((n) => ({html: n.html, failureSummary: n.failureSummary}))})))`, &found, wait))
	for _, v := range found {
		t.Errorf("%s: %s (%s): %s: %.300s %.300s", view, v.ID, cmp.Or(v.Impact, "?"), v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
}
