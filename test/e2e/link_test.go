package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linkInfo is what the tests look at in a link.
type linkInfo struct {
	Site     string `json:"site"`
	Relation string `json:"relation"`
	Standing string `json:"standing"`
	Reason   string `json:"reason"`
}

// links prints the links of a site, by the names of the others.
func (s *site) links(names map[string]string) string {
	s.Helper()
	var all []linkInfo
	s.json(&all, "links")
	var list []string
	for _, l := range all {
		list = append(list, fmt.Sprint(names[l.Site], " ", l.Relation, " ", l.Standing))
	}
	return strings.Join(list, ", ")
}

// TestInvitations: a parent invites two sites, one of which agrees by a command and the
// other by its configuration; they borrow by these links, and part again.
func TestInvitations(t *testing.T) {
	t.Parallel()
	hill := newSite(t, "hill", "--processors", "4").set("leases.lend", "allow").start()
	vale := newSite(t, "vale", "--processors", "1", "--join", hill.addr).set("delegation.threshold", "1", "delegation.cycle", "1s").start()
	dale := newSite(t, "dale", "--processors", "1", "--join", hill.addr).set("delegation.invitations", "allow").start()
	moor := newSite(t, "moor", "--processors", "1", "--join", hill.addr).set("delegation.invitations", "deny").start()
	names := map[string]string{hill.id: "hill", vale.id: "vale", dale.id: "dale", moor.id: "moor"}
	for _, s := range []*site{hill, vale, dale, moor} {
		s.sees(4)
	}
	if text := hill.ok("link", "invite", "vale"); !strings.Contains(text, "invited") {
		t.Errorf("%q, want that it waits for its users", text)
	}
	if text := hill.ok("link", "invite", "dale"); !strings.Contains(text, "linked as child") {
		t.Errorf("%q, want that it is linked", text)
	}
	if r := hill.code(5, "link", "invite", "moor"); !strings.Contains(r.stderr, "does not want") {
		t.Errorf("%v, want the reason", r)
	}
	if got := vale.links(names); got != "hill parent offered" {
		t.Errorf("vale: %s", got)
	}
	vale.kill() // the offer is kept
	vale.start()
	for _, tt := range []struct {
		s    *site
		code int
		word string
		args []string
	}{
		{hill, 5, "own parent", []string{"invite", "hill"}},
		{hill, 4, "no site is called", []string{"invite", "down"}},
		{hill, 5, "child by invitation", []string{"invite", "dale"}},
		{dale, 5, "above this site", []string{"invite", "hill"}},
		{dale, 4, "has not invited", []string{"accept", "hill"}},
		{dale, 4, "no link", []string{"drop", "moor"}},
		{dale, 2, "wants SITE", []string{"drop"}},
		{dale, 2, "unknown verb", []string{"leave", "hill"}},
	} {
		if r := tt.s.code(tt.code, append([]string{"link"}, tt.args...)...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("link %q: %v, want %q", tt.args, r, tt.word)
		}
	}
	if text := vale.ok("link", "accept", hill.id); !strings.Contains(text, "linked as parent") {
		t.Errorf("%q", text)
	}
	vale.eventually("the children are siblings", func() bool { return vale.links(names) == "hill parent linked, dale sibling linked" })
	hill.eventually("hill has both", func() bool {
		text := hill.links(names)
		return strings.Contains(text, "vale child linked") && strings.Contains(text, "dale child linked")
	})

	first := strings.TrimSpace(vale.ok("submit", "--", "sleep", "1000"))
	second := strings.TrimSpace(vale.ok("submit", "--", "sh", "-c", "echo $GRIDNODE_SITE; sleep 1000"))
	vale.eventually("a job runs at the parent", func() bool { return vale.ok("logs", second) == "hill\n" })
	vale.ok("cancel", first, second)

	vale.ok("link", "drop", "hill")
	vale.eventually("vale has no parent", func() bool { return vale.links(names) == "" })
	hill.eventually("hill has one child", func() bool { return !strings.Contains(hill.links(names), "vale") })
	hill.ok("link", "drop", "dale")
	dale.eventually("dale has no parent", func() bool { return dale.links(names) == "" })
}

// TestLoopOfSites: the configurations of three sites say that each is above the next.
// One of them says so, and does not use its link.
func TestLoopOfSites(t *testing.T) {
	t.Parallel()
	a := newSite(t, "a", "--processors", "1")
	b := newSite(t, "b", "--processors", "1").set("delegation.links", "parent:"+a.id)
	c := newSite(t, "c", "--processors", "1").set("delegation.links", "parent:"+b.id)
	a.set("delegation.links", "parent:"+c.id).start()
	all := []*site{a, b, c}
	for _, s := range all[1:] {
		s.set("network.join", a.addr).start()
	}
	first := all[0]
	for _, s := range all {
		if s.id < first.id {
			first = s
		}
	}
	first.eventually("the first of the loop has noticed it", func() bool {
		return strings.Contains(first.ok("links"), "suspended") && strings.Contains(first.ok("links"), "above itself")
	})
	if log, err := os.ReadFile(filepath.Join(first.home, "daemon.log")); !strings.Contains(string(log), "the link to a parent is not used") {
		t.Errorf("it is not in the log: %v, %s", err, log)
	}
	for _, s := range all {
		if text := s.ok("links"); s != first && strings.Contains(text, "suspended") {
			t.Errorf("a second link is suspended:\n%s", text)
		}
	}
}
