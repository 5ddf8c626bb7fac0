package guest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// The sites of these tests: two of one organisation, and one of none.
var sites = map[grid.SiteID]Who{
	"id-b": {"id-b", "beta", "Institute"}, "id-c": {"id-c", "gamma", "Institute"}, "id-d": {"id-d", "delta", ""},
}

func knows(id grid.SiteID) Who {
	if w, known := sites[id]; known {
		return w
	}
	return Who{Site: id}
}

func newDesk(uses map[grid.SiteID]Use, rules ...Rule) *Desk {
	return NewDesk(Config{Rules: rules}, 16, knows, Uses(maps.All(uses)))
}

func TestAdmit(t *testing.T) {
	everyone, beta, byID, org := Partner{}, Partner{Site, "beta"}, Partner{Site, "id-b"}, Partner{Organisation, "Institute"}
	uses := map[grid.SiteID]Use{"id-b": {Jobs: 1, Processors: 2}, "id-c": {Jobs: 2, Processors: 3, Lent: 1}, "id-d": {Lent: 4, GPUs: 3}}
	b := Ask{Site: "id-b", Processors: 2, Memory: 1 << 30, Span: grid.Hour}
	lease := Ask{Site: "id-b", Lease: true, Processors: 2, Span: grid.Hour}
	for _, tt := range []struct {
		name  string
		rules []Rule
		ask   Ask
		want  Cause
	}{
		{"without rules", nil, b, Admitted},
		{"denied", []Rule{{Partner: beta, Access: Deny}}, b, Denied},
		{"denied by ID", []Rule{{Partner: byID, Access: Deny}}, b, Denied},
		{"its organisation is denied", []Rule{{Partner: org, Access: Deny}}, b, Denied},
		{"everyone is denied", []Rule{{Partner: everyone, Access: Deny}}, b, Denied},
		{"the narrower rule lets it in", []Rule{{Partner: everyone, Access: Deny}, {Partner: org, Access: Allow}}, b, Admitted},
		{"the narrowest keeps it out", []Rule{{Partner: org, Access: Allow}, {Partner: beta, Access: Deny}}, b, Denied},
		{"somebody else is denied", []Rule{{Partner: Partner{Site, "gamma"}, Access: Deny}}, b, Admitted},
		{"as many processors as it may", []Rule{{Partner: beta, Processors: 4}}, b, Admitted},
		{"one too many", []Rule{{Partner: beta, Processors: 3}}, b, OverProcessors},
		{"as many as its organisation may", []Rule{{Partner: org, Processors: 8}}, b, Admitted},
		{"too many of its organisation", []Rule{{Partner: org, Processors: 7}}, b, OverProcessors},
		{"its own rule allows more than is left", []Rule{{Partner: org, Processors: 7}, {Partner: beta, Processors: 7}}, b, OverProcessors},
		{"as many as all may", []Rule{{Partner: everyone, Share: 750}}, b, Admitted},
		{"too many of all", []Rule{{Partner: everyone, Share: 700}}, b, OverProcessors},
		{"one job more", []Rule{{Partner: beta, Jobs: 2}}, b, Admitted},
		{"no job more", []Rule{{Partner: beta, Jobs: 1}}, b, OverJobs},
		{"jobs do not count for leases", []Rule{{Partner: beta, Jobs: 1}}, lease, Admitted},
		{"leases", []Rule{{Partner: org, Lent: 3}}, lease, Admitted},
		{"too many leases", []Rule{{Partner: org, Lent: 2}}, lease, OverLeases},
		{"no leases", []Rule{{Partner: beta, Lent: None}}, lease, OverLeases},
		{"no leases, but jobs", []Rule{{Partner: beta, Lent: None}}, b, Admitted},
		{"as long as it may", []Rule{{Partner: everyone, Time: grid.Hour}}, b, Admitted},
		{"too long", []Rule{{Partner: everyone, Time: grid.Hour - 1}}, b, TooLong},
		{"its own rule allows longer", []Rule{{Partner: everyone, Time: grid.Minute}, {Partner: org, Time: 2 * grid.Hour}}, b, Admitted},
		{"a job that counts already", []Rule{{Partner: beta, Jobs: 1, Processors: 2}}, Ask{Site: "id-b", Processors: 2, Mine: Use{Jobs: 1, Processors: 2}}, Admitted},
		{"a lease that counts already", []Rule{{Partner: everyone, Lent: 5}}, Ask{Site: "id-d", Lease: true, Processors: 4, Mine: Use{Lent: 4}}, Admitted},
		{"as many GPUs as it may", []Rule{{Partner: everyone, GPUs: 4}}, Ask{Site: "id-b", Processors: 1, GPUs: 1}, Admitted},
		{"too many GPUs", []Rule{{Partner: everyone, GPUs: 4}}, Ask{Site: "id-b", Processors: 1, GPUs: 2}, OverGPUs},
		{"no GPUs", []Rule{{Partner: beta, GPUs: None}}, Ask{Site: "id-b", Processors: 1, GPUs: 1}, OverGPUs},
		{"GPUs that count already", []Rule{{Partner: everyone, GPUs: 4}}, Ask{Site: "id-d", Processors: 1, GPUs: 3, Mine: Use{GPUs: 3}}, Admitted},
		{"too much memory", []Rule{{Partner: org, Memory: 1<<30 - 1}}, b, OverMemory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(uses, tt.rules...)
			ask := tt.ask
			if got := d.Admit(grid.Hour, &ask); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if counted := d.Refused()[tt.want]; tt.want != Admitted && (counted != 1 || len(d.Refusals()) != 1) {
				t.Errorf("counted %d refusals, %v", counted, d.Refusals())
			}
		})
	}
}

// What the owner says of jobs themselves, prices and limits: the narrowest rule counts.
func TestTerms(t *testing.T) {
	d := newDesk(nil,
		Rule{Price: 1500, Disk: 1 << 20, Runs: Programs, Network: Deny},
		Rule{Partner: Partner{Organisation, "Institute"}, Price: 500, Network: Allow},
		Rule{Partner: Partner{Site, "beta"}, Disk: 1 << 30})
	for _, tt := range []struct {
		site  grid.SiteID
		price grid.Price
		disk  int64
		net   Answer
	}{{"id-b", 500_001, 1 << 30, Allow}, {"id-c", 500_001, 1 << 20, Allow}, {"id-d", 1_500_004, 1 << 20, Deny}} {
		if p := d.Price(tt.site, 1_000_003); p != tt.price {
			t.Errorf("%s pays %d, want %d", tt.site, p, tt.price)
		}
		if l := d.Limits(tt.site); l.Disk != tt.disk || l.Network != tt.net {
			t.Errorf("%s: %+v", tt.site, l)
		}
	}
	if p := d.Price("id-d", grid.CreditsMax-1); p != grid.CreditsMax {
		t.Errorf("a price beyond the greatest is %d", p)
	}
	if got := d.Runs(0, "id-d", &grid.Job{Inputs: []grid.DataSet{{}}}); got != NotRun {
		t.Errorf("a job that reads data sets: %v", got)
	}
	if got := d.Runs(0, "id-d", &grid.Job{Command: &grid.Command{Module: &grid.Module{}}}); got != NotRun {
		t.Errorf("a module: %v", got)
	}
	if got := d.Admit(0, &Ask{Site: "id-d", Needs: Modules}); got != NotRun {
		t.Errorf("a module that is asked for: %v", got)
	}
	if got := d.Runs(0, "id-d", &grid.Job{}); got != Admitted {
		t.Errorf("a program: %v", got)
	}
}

// TestShuns: the owner wants nothing of whom a ban or a rule keeps out.
func TestShuns(t *testing.T) {
	d := newDesk(nil, Rule{Partner: Partner{Organisation, "Institute"}, Access: Deny}, Rule{Partner: Partner{Site, "gamma"}, Access: Allow})
	if err := d.Ban(Ban{Partner: Partner{Site, "delta"}, Since: 1, Until: grid.Hour}, new(grid.Outbox)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		now  grid.Time
		site grid.SiteID
		want bool
	}{{1, "id-b", true}, {1, "id-c", false}, {1, "id-d", true}, {grid.Hour, "id-d", false}, {1, "id-e", false}} {
		if got := d.Shuns(tt.now, tt.site); got != tt.want {
			t.Errorf("%s at %v: %v", tt.site, tt.now, got)
		}
	}
}

// A ban keeps out until it ends, by ID, name and organisation, and outlives a restart.
func TestBans(t *testing.T) {
	for _, p := range []Partner{{Site, "id-b"}, {Site, "beta"}, {Organisation, "Institute"}} {
		t.Run(p.String(), func(t *testing.T) {
			var out grid.Outbox
			d := newDesk(nil)
			if err := d.Ban(Ban{Partner: p, Since: 1, Until: grid.Hour, Reason: "noise"}, &out); err != nil {
				t.Fatal(err)
			}
			again := newDesk(nil)
			if _, err := again.Recover(out.Records[0].RecordKey(), out.Records[0].AppendRecord(nil)); err != nil {
				t.Fatal(err)
			}
			for _, d := range []*Desk{d, again} {
				for _, tt := range []struct {
					now  grid.Time
					site grid.SiteID
					want Cause
				}{{grid.Minute, "id-b", Banned}, {grid.Minute, "id-d", Admitted}, {grid.Hour, "id-b", Admitted}} {
					if got := d.Welcome(tt.now, tt.site); got != tt.want {
						t.Errorf("%s at %v: %v, want %v", tt.site, tt.now, got, tt.want)
					}
				}
				out.Reset()
				if d.NextTimer() != grid.Hour {
					t.Errorf("next at %v", d.NextTimer())
				}
				d.Tick(grid.Hour-1, &out)
				if len(d.Bans()) != 1 || len(out.Effects) != 0 {
					t.Error("lifted before its end")
				}
				d.Tick(grid.Hour, &out)
				if len(d.Bans()) != 0 || len(out.Records) != 1 || out.Effects[0].Kind != grid.EffectDelete {
					t.Errorf("after its end: %v, %v", d.Bans(), out.Effects)
				}
			}
			if err := d.Unban(p, &out); err == nil {
				t.Error("a ban that is over can be lifted")
			}
		})
	}
	d := newDesk(nil)
	for _, text := range []string{"", "{", `{"scope":0,"name":"x"}`, `{"scope":2}`, `{"scope":9,"name":"x"}`} {
		if _, err := d.Recover(BanPrefix+"x", []byte(text)); err == nil {
			t.Errorf("%q is taken for a ban", text)
		}
	}
}

// Whatever rules there are and whoever asks: what is admitted never has more, by any rule
// that fits, than the rule says; and there is not a refusal more than that needs.
func TestRulesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uses := make(map[grid.SiteID]Use)
		partners := []Partner{{}, {Organisation, "Institute"}, {Site, "beta"}, {Site, "gamma"}, {Site, "delta"}}
		var rules []Rule
		for _, p := range partners {
			if rapid.Bool().Draw(t, "rule") {
				rules = append(rules, Rule{Partner: p, Processors: rapid.Int64Range(0, 12).Draw(t, "processors"), Jobs: rapid.Int64Range(0, 4).Draw(t, "jobs"), Lent: rapid.Int64Range(-1, 6).Draw(t, "lent")})
			}
		}
		d := newDesk(uses, rules...)
		ids := slices.Sorted(maps.Keys(sites))
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			ask := Ask{Site: rapid.SampledFrom(ids).Draw(t, "site"), Processors: rapid.Int64Range(1, 4).Draw(t, "width"), Lease: rapid.Bool().Draw(t, "lease")}
			after := maps.Clone(uses)
			u := after[ask.Site]
			if ask.Lease {
				u.Lent += ask.Processors
			} else {
				u.Jobs, u.Processors = u.Jobs+1, u.Processors+ask.Processors
			}
			after[ask.Site] = u
			why := broken(rules, after, &ask)
			got := d.Admit(0, &ask)
			if (got == Admitted) != (why == "") {
				t.Fatalf("%+v with %v here: %v, but %q", ask, uses, got, why)
			}
			if got == Admitted {
				uses[ask.Site] = u
			}
		}
	})
}

// broken says which rule would not hold, by hand.
func broken(rules []Rule, uses map[grid.SiteID]Use, ask *Ask) string {
	for _, r := range rules {
		asker := sites[ask.Site]
		if !asker.Is(r.Partner) {
			continue
		}
		var sum Use
		for id, u := range uses {
			if who := sites[id]; who.Is(r.Partner) {
				sum.add(u)
			}
		}
		switch {
		case r.Processors > 0 && sum.Processors+sum.Lent > r.Processors:
			return fmt.Sprintf("%v: processors", r.Partner)
		case ask.Lease && r.Lent != 0 && sum.Lent > max(r.Lent, 0):
			return fmt.Sprintf("%v: leases", r.Partner)
		case !ask.Lease && r.Jobs > 0 && sum.Jobs > r.Jobs:
			return fmt.Sprintf("%v: jobs", r.Partner)
		}
	}
	return ""
}

// Refusals of more sites than are remembered one by one, the latest of them, are counted all the same.
func TestRefusalsAreBounded(t *testing.T) {
	d := newDesk(nil, Rule{Access: Deny})
	for i := range refusalsMax + 10 {
		d.Welcome(grid.Time(i), grid.SiteID(fmt.Sprint("site-", i)))
	}
	all := d.Refusals()
	if n := len(all); n != refusalsMax || d.Refused()[Denied] != refusalsMax+10 || all[0].At != refusalsMax+9 || all[n-1].At != 10 {
		t.Errorf("%d remembered, the first at %v, %v counted", n, all[n-1].At, d.Refused())
	}
}

// What a site may be lent at most is what the narrowest bound on its processors leaves, of several rules.
func TestLends(t *testing.T) {
	everyone, beta := Partner{}, Partner{Site, "beta"}
	for _, tt := range []struct {
		rules []Rule
		want  int64
	}{
		{nil, 0},
		{[]Rule{{Partner: beta, Processors: 4, Lent: 6}}, 4},
		{[]Rule{{Partner: beta, Processors: 6, Lent: 4}}, 4},
		{[]Rule{{Partner: everyone, Share: 250}, {Partner: beta, Lent: 5}}, 4},
		{[]Rule{{Partner: everyone, Lent: None}, {Partner: beta, Processors: 4}}, 0},
		{[]Rule{{Partner: Partner{Site, "gamma"}, Lent: 1}}, 0},
	} {
		if got := newDesk(nil, tt.rules...).Lends("id-b"); got != tt.want {
			t.Errorf("%+v: lends %d, want %d", tt.rules, got, tt.want)
		}
	}
}
