package page

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestManualSite reads the site of the manual as a person does who has no server and no
// network: it searches by the keyboard, follows what is found, and changes the theme.
func TestManualSite(t *testing.T) {
	tab := newTab(t)
	out := filepath.Join(t.TempDir(), "docs")
	make := exec.Command("go", "run", "./internal/manual", "-out", out)
	make.Dir = "../.."
	if said, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make docs: %v: %s", err, said)
	}
	chromedp.ListenTarget(tab.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, "file://"+out) && !strings.HasPrefix(e.Request.URL, "data:") {
			t.Errorf("the browser is to load %s", e.Request.URL)
		}
	})
	tab.run("open", network.Enable(), chromedp.Navigate("file://"+filepath.Join(out, "index.html")))
	tab.await("nav.pages", "Tutorial", "How-to guides", "Reference", "Explanation")
	tab.accessible("contents")
	tab.shoot("manual")

	// Slash begins a search, an arrow leads into what was found, Enter opens it.
	// (The driver types the slash besides, which a browser does not.)
	tab.run("search", chromedp.KeyEvent("/"), chromedp.Evaluate(`query.value = ""`, nil), chromedp.KeyEvent("guests ban"))
	tab.await("#results a", "Command line: guests")
	tab.accessible("search")
	tab.run("leave the search", chromedp.SendKeys("#query", kb.Escape), chromedp.WaitNotVisible("#results"))
	tab.run("search for another", chromedp.Evaluate(`query.value = ""`, nil), chromedp.SendKeys("#query", "TestNothingHasThisName"))
	tab.await("#results", "Nothing has all of these words.")
	tab.run("search for a verb", chromedp.Evaluate(`query.value = ""`, nil), chromedp.SendKeys("#query", "drain"))
	tab.await("#results a", "drain")
	tab.run("open what was found", chromedp.SendKeys("#query", kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	tab.await("main h1", "Command line")
	var address string
	tab.run("address", chromedp.Location(&address))
	if !strings.HasSuffix(address, "cli.html#drain") {
		t.Errorf("drain is found at %s", address)
	}

	tab.run("open the tutorial", chromedp.Click(`//nav[@aria-label="Pages"]//a[starts-with(., "A federation of two")]`))
	tab.await("main", "A federation of two in ten minutes", "alpha$ gridnode sites")
	tab.accessible("tutorial")
	theme := func(want string) {
		t.Helper()
		var ground string
		tab.run("colours", chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &ground))
		if dark := ground == "rgb(20, 24, 28)"; dark != (want == "dark") {
			t.Errorf("the page is %s, want it %s", ground, want)
		}
	}
	tab.run("at night", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	theme("dark")
	tab.accessible("tutorial at night")
	tab.shoot("manual-tutorial")
	tab.run("choose light", chromedp.Reload(), chromedp.Click("#theme"))
	theme("light")
	tab.run("the choice lasts", chromedp.Reload())
	theme("light")
}
