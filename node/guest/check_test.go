package guest

import (
	"strings"
	"testing"

	"gridnode/grid"
)

// Rules that contradict themselves, each other or the site, and rules that could never
// count, are found, each at the key that says it.
func TestContradictions(t *testing.T) {
	everyone, beta, org := Partner{}, Partner{Site, "beta"}, Partner{Organisation, "Institute"}
	usual := Around{Self: "self-id", Name: "alpha", Processors: 16, Jobs: true, Lends: true}
	with := func(change func(*Around)) Around {
		a := usual
		change(&a)
		return a
	}
	for _, tt := range []struct {
		name   string
		around Around
		rules  []Rule
		want   string // partner.key: words; empty: nothing is wrong
	}{
		{"none", usual, nil, ""},
		{"good ones", usual, []Rule{{Partner: everyone, Processors: 8, Jobs: 4, Hours: Hours{{1200, 360}}, Time: 10 * grid.Hour}, {Partner: beta, Processors: 8, Lent: 4}, {Partner: org, Access: Deny}}, ""},
		{"deny with a limit", usual, []Rule{{Partner: beta, Access: Deny, Memory: 1 << 30}}, "sites.beta.memory: never counts"},
		{"processors and share", usual, []Rule{{Partner: beta, Processors: 2, Share: 500}}, "sites.beta.share: processors says the same"},
		{"more leases than processors", usual, []Rule{{Partner: beta, Processors: 2, Lent: 3}}, "sites.beta.leases: 3 is never reached"},
		{"more leases than its share", usual, []Rule{{Partner: beta, Share: 125, Lent: 3}}, "sites.beta.leases: 3 is never reached"},
		{"longer than the hours", usual, []Rule{{Partner: beta, Hours: Hours{{1200, 360}}, Time: 11 * grid.Hour}}, "sites.beta.time: 11h0m0s is never reached"},
		{"more than everyone", usual, []Rule{{Partner: everyone, Processors: 4}, {Partner: org, Processors: 5}}, "orgs.Institute.processors: 5 processors are never reached"},
		{"a share of more than everyone", usual, []Rule{{Partner: beta, Share: 500}, {Partner: everyone, Processors: 4}}, "sites.beta.share: 8 processors are never reached"},
		{"more jobs than everyone", usual, []Rule{{Partner: everyone, Jobs: 4}, {Partner: org, Jobs: 5}}, "orgs.Institute.jobs: 5 is never reached"},
		{"leases where everyone has none", usual, []Rule{{Partner: everyone, Lent: None}, {Partner: org, Lent: 1}}, "orgs.Institute.leases: 1 is never reached"},
		{"more than everyone, who is denied", usual, []Rule{{Partner: everyone, Access: Deny}, {Partner: org, Access: Allow, Processors: 5}}, ""},
		{"the site itself", usual, []Rule{{Partner: Partner{Site, "alpha"}, Access: Deny}}, "sites.alpha.: this is the site itself"},
		{"the site itself by ID", usual, []Rule{{Partner: Partner{Site, "self-id"}, Access: Deny}}, "sites.self-id.: this is the site itself"},
		{"data sets alone", usual, []Rule{{Partner: beta, Runs: DataSets}}, "sites.beta.run: data sets are read by jobs"},
		{"twice", usual, []Rule{{Partner: beta, Jobs: 1}, {Partner: beta, Jobs: 2}}, "sites.beta.: there is a rule for it already"},
		{"nobody is let in", with(func(a *Around) { a.Jobs, a.Lends = false, false }), []Rule{{Partner: beta, Access: Allow}}, "sites.beta.: never counts"},
		{"leases of who lends none", with(func(a *Around) { a.Lends = false }), []Rule{{Partner: beta, Lent: 2}}, "sites.beta.leases: never counts"},
		{"no leases of who lends none", with(func(a *Around) { a.Lends = false }), []Rule{{Partner: beta, Lent: None}}, ""},
		{"jobs of who lends none", with(func(a *Around) { a.Lends = false }), []Rule{{Partner: beta, Jobs: 2}}, ""},
		{"jobs of who runs none", with(func(a *Around) { a.Jobs = false }), []Rule{{Partner: beta, Jobs: 2}}, "sites.beta.jobs: never counts"},
		{"a head that is denied", with(func(a *Around) { a.Head = "head-id" }), []Rule{{Partner: Partner{Site, "head-id"}, Access: Deny}}, "sites.head-id.access: muscle.head"},
		{"in an open federation", with(func(a *Around) { a.Open = true }), []Rule{{Partner: org, Access: Deny}}, "orgs.Institute.: never counts: the federation is open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Rules: tt.rules}
			var found []string
			for _, p := range c.Check(tt.around) {
				found = append(found, p.Partner.String()+"."+p.Key+": "+p.Text)
			}
			if text := strings.Join(found, "\n"); !strings.HasPrefix(text, tt.want) || (tt.want == "") != (text == "") || len(found) > 1 {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}
