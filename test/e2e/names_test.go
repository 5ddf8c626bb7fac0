package e2e

import (
	"strings"
	"testing"
)

// TestSitesAreFoundByName: a site is found by its name and its ID, a name that two claim
// stands for neither, and who is nobody is that for every command.
func TestSitesAreFoundByName(t *testing.T) {
	t.Parallel()
	hill := newLoner(t, "hill", "--processors", "4").set("site.authority", "tudelft").start()
	vale := newLoner(t, "vale", "--processors", "1", "--join", hill.addr).start()
	first := newLoner(t, "twin", "--processors", "1", "--join", hill.addr).start()
	second := newLoner(t, "twin", "--processors", "1", "--join", hill.addr).start()
	for _, s := range []*site{hill, vale, first, second} {
		s.sees(4)
	}
	type found struct {
		ID        string   `json:"id"`
		Name      string   `json:"name"`
		Source    string   `json:"source"`
		Authority string   `json:"authority"`
		Addresses []string `json:"addresses"`
	}
	for _, text := range []string{"hill", hill.id} {
		var list []found
		vale.eventually("the record of hill", func() bool {
			list = nil
			vale.json(&list, "sites", text)
			return len(list) == 1 && list[0].Source == "record"
		})
		if got := list[0]; got.ID != hill.id || got.Name != "hill" || got.Authority != "tudelft" || len(got.Addresses) == 0 {
			t.Errorf("%s is found as %+v", text, got)
		}
	}
	var list []found
	vale.json(&list, "sites", "twin")
	if len(list) != 2 {
		t.Errorf("two sites claim a name, %d are listed", len(list))
	}
	if r := vale.code(0, "sites", "twin"); !strings.Contains(r.stderr, "stands for none") {
		t.Errorf("%v, want that the name stands for none of them", r)
	}
	if r := vale.code(2, "submit", "--site", "twin", "true"); !strings.Contains(r.stderr, "say which by its ID") || !strings.Contains(r.stderr, first.id) || !strings.Contains(r.stderr, second.id) {
		t.Errorf("%v, want both IDs", r)
	}
	var said string
	for _, args := range [][]string{{"sites", "nobody"}, {"submit", "--site", "nobody", "true"}, {"status", "--site", "nobody"}, {"lease", "request", "nobody", "-n", "1", "-t", "10m"}, {"link", "invite", "nobody"}} {
		_, text, _ := strings.Cut(vale.code(4, args...).stderr, ": ")
		if said == "" {
			said = text
		}
		if !strings.HasPrefix(text, `no site is called "nobody"`) || text != said {
			t.Errorf("%q says %q, want %q", args, text, said)
		}
	}
}
