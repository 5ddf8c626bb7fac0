package lease

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// clan is some sites with their kinships and a network between them.
type clan struct {
	t       *testing.T
	now     grid.Time
	members map[grid.SiteID]*Kinship
	configs map[grid.SiteID]KinshipConfig
	stored  map[grid.SiteID]map[string][]byte
	locals  map[grid.SiteID][]grid.Input
	flight  []clanMail
	rng     *rand.Rand // if not nil, mail is lost, doubled and delayed
	sent    int
	relinks int
}

type clanMail struct {
	at       grid.Time
	from, to grid.SiteID
	message  grid.Message
}

func newClan(t *testing.T, configs ...KinshipConfig) *clan {
	c := &clan{
		t: t, now: grid.Hour, members: map[grid.SiteID]*Kinship{}, configs: map[grid.SiteID]KinshipConfig{},
		stored: map[grid.SiteID]map[string][]byte{}, locals: map[grid.SiteID][]grid.Input{},
	}
	for _, cfg := range configs {
		c.configs[cfg.Site] = cfg
		c.stored[cfg.Site] = map[string][]byte{}
		c.restart(cfg.Site)
	}
	return c
}

// restart begins a site anew from what it has stored.
func (c *clan) restart(site grid.SiteID) {
	c.t.Helper()
	f, err := NewKinship(c.configs[site])
	if err != nil {
		c.t.Fatal(err)
	}
	c.members[site] = f
	var records iter.Seq2[string, []byte] = func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(c.stored[site])) {
			if !yield(key, c.stored[site][key]) {
				return
			}
		}
	}
	c.act(site, func(f *Kinship, out *grid.Outbox) error { return f.Recover(c.now, records, out) })
}

// act has a site do something and carries out its effects.
func (c *clan) act(site grid.SiteID, do func(f *Kinship, out *grid.Outbox) error) error {
	var out grid.Outbox
	err := do(c.members[site], &out)
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			r := out.Records[e.Index]
			c.stored[site][r.RecordKey()] = r.AppendRecord(nil)
		case grid.EffectDelete:
			delete(c.stored[site], out.Records[e.Index].RecordKey())
		case grid.EffectSend:
			c.mail(site, out.Sends[e.Index])
		}
	}
	c.locals[site] = append(c.locals[site], out.Locals...)
	c.relinks += len(out.Locals)
	return err
}

func (c *clan) mail(from grid.SiteID, s grid.Send) {
	c.sent++
	m := clanMail{c.now + 10*grid.Millisecond, from, s.To, s.Message}
	copies := 1
	if c.rng != nil {
		copies = []int{0, 0, 1, 1, 1, 1, 2}[c.rng.IntN(7)]
	}
	for range copies {
		if c.rng != nil {
			m.at = c.now + grid.Time(c.rng.Int64N(int64(5*grid.Second)))
		}
		at, _ := slices.BinarySearchFunc(c.flight, m.at, func(m clanMail, at grid.Time) int { return int(m.at - at) })
		for at < len(c.flight) && c.flight[at].at == m.at {
			at++
		}
		c.flight = slices.Insert(c.flight, at, m)
	}
}

// run lets time pass.
func (c *clan) run(span grid.Time) {
	for until := c.now + span; ; {
		next := until
		if len(c.flight) > 0 {
			next = min(next, c.flight[0].at)
		}
		for _, f := range c.members {
			next = min(next, f.NextTimer())
		}
		c.now = max(c.now, next)
		if next >= until {
			return
		}
		for len(c.flight) > 0 && c.flight[0].at <= c.now {
			m := c.flight[0]
			c.flight = c.flight[1:]
			if c.members[m.to] != nil {
				c.act(m.to, func(f *Kinship, out *grid.Outbox) error {
					f.Step(c.now, &grid.Delivery{From: m.from, Message: m.message}, out)
					return nil
				})
			}
		}
		for _, site := range slices.Sorted(maps.Keys(c.members)) {
			c.act(site, func(f *Kinship, out *grid.Outbox) error { f.Step(c.now, grid.Tick{}, out); return nil })
		}
	}
}

func (c *clan) invite(from, to grid.SiteID) error {
	return c.act(from, func(f *Kinship, out *grid.Outbox) error { return f.Invite(c.now, to, out) })
}

func (c *clan) accept(site, parent grid.SiteID) error {
	return c.act(site, func(f *Kinship, out *grid.Outbox) error { return f.Accept(c.now, parent, out) })
}

func (c *clan) drop(site, other grid.SiteID) error {
	return c.act(site, func(f *Kinship, out *grid.Outbox) error { return f.Drop(c.now, other, out) })
}

// links prints those of a site that are used.
func (c *clan) links(site grid.SiteID) string {
	var list []string
	for _, l := range c.members[site].Links() {
		list = append(list, fmt.Sprintf("%s:%s", l.Relation, l.Site))
	}
	return strings.Join(list, " ")
}

// kin prints how a site's link to another stands.
func (c *clan) kin(site, other grid.SiteID) string {
	k, ok := c.members[site].Get(other)
	if !ok {
		return "none"
	}
	text := fmt.Sprint(k.Relation, " ", k.Standing)
	if k.Reason != NoObjection {
		text += ": " + k.Reason.String()
	}
	return text
}

func (c *clan) want(site grid.SiteID, links string) {
	c.t.Helper()
	if got := c.links(site); got != links {
		c.t.Errorf("%s is linked to %q, want %q", site, got, links)
	}
}

func (c *clan) wantKin(site, other grid.SiteID, how string) {
	c.t.Helper()
	if got := c.kin(site, other); got != how {
		c.t.Errorf("%s's link to %s: %q, want %q", site, other, got, how)
	}
}

func TestInvitation(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "p"}, KinshipConfig{Site: "a"}, KinshipConfig{Site: "b", Consent: ConsentAllow}, KinshipConfig{Site: "d", Consent: ConsentDeny},
		KinshipConfig{Site: "e", Links: []Link{{"p", Parent}}})
	for _, site := range []grid.SiteID{"a", "b", "d", "e"} {
		if err := c.invite("p", site); err != nil {
			t.Fatal(err)
		}
	}
	c.run(grid.Second)
	c.wantKin("a", "p", "parent offered")
	c.wantKin("p", "a", "child invited")
	c.wantKin("p", "d", "child declined: the site does not want it")
	c.wantKin("d", "p", "none")
	c.want("p", "child:b child:e")
	c.want("a", "")
	if n := 0; true {
		for _, in := range c.locals["p"] {
			if _, ok := in.(*Answered); ok {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%d answers, want one of each site", n)
		}
	}
	c.restart("p") // invitations survive on both sides
	c.restart("a")
	c.wantKin("a", "p", "parent offered")
	c.wantKin("p", "a", "child invited")
	if err := c.accept("a", "p"); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Minute)
	c.want("p", "child:a child:b child:e")
	c.want("a", "parent:p sibling:b sibling:e")
	c.want("b", "parent:p sibling:a sibling:e")
	c.want("e", "parent:p") // by configuration: which has no siblings

	c.restart("a")
	c.restart("p")
	c.run(grid.Minute)
	c.want("a", "parent:p sibling:b sibling:e")
	c.want("p", "child:a child:b child:e")

	if err := c.drop("a", "p"); err != nil { // a child leaves
		t.Fatal(err)
	}
	c.run(grid.Minute)
	c.want("a", "")
	c.want("p", "child:b child:e")
	c.want("b", "parent:p sibling:e")
	c.wantKin("a", "p", "none")
	if err := c.drop("p", "b"); err != nil { // a parent lets one go
		t.Fatal(err)
	}
	c.run(grid.Minute)
	c.want("b", "")
	c.want("p", "child:e")
	if left := len(c.stored["a"]) + len(c.stored["b"]) + len(c.stored["d"]); left != 0 {
		t.Errorf("%d records are left", left)
	}
}

// TestInvitedAnew: what a site has said to an invitation does not count for the next
// one, and whoever waits for an answer to one that is dropped learns that none comes.
func TestInvitedAnew(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "a"}, KinshipConfig{Site: "b"})
	invite := func(f *Kinship, out *grid.Outbox) error { return f.Invite(c.now, "b", out) }
	drop := func(f *Kinship, out *grid.Outbox) error { return f.Drop(c.now, "b", out) }
	stands := func(what string, want Standing) {
		t.Helper()
		if k, there := c.members["a"].Get("b"); !there || k.Standing != want {
			t.Errorf("%s: %v, %v; want %v", what, k.Standing, there, want)
		}
	}
	must := func(site grid.SiteID, do func(f *Kinship, out *grid.Outbox) error) {
		t.Helper()
		if err := c.act(site, do); err != nil {
			t.Fatal(err)
		}
	}
	must("a", invite)
	c.run(grid.Second)
	must("b", func(f *Kinship, out *grid.Outbox) error { return f.Accept(c.now, "a", out) })
	old := *c.flight[len(c.flight)-1].message.(*Join)
	c.run(grid.Second)
	stands("accepted", Linked)
	must("a", drop)
	c.run(grid.Second)
	must("a", invite)
	c.run(grid.Second)
	must("a", func(f *Kinship, out *grid.Outbox) error {
		f.Step(c.now, &grid.Delivery{From: "b", Message: &old}, out)
		return nil
	})
	stands("b was invited anew, and a late copy of its first answer came", Invited)
	must("b", func(f *Kinship, out *grid.Outbox) error { return f.Accept(c.now, "a", out) })
	c.run(grid.Second)
	stands("accepted again", Linked)

	must("a", func(f *Kinship, out *grid.Outbox) error { return f.Invite(c.now, "nobody", out) })
	c.locals["a"] = nil
	must("a", func(f *Kinship, out *grid.Outbox) error { return f.Drop(c.now, "nobody", out) })
	answers := 0
	for _, in := range c.locals["a"] {
		if said, is := in.(*Answered); is && said.Site == "nobody" && said.Standing == Declined && said.Reason == Parted {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d answers to an invitation that was dropped, want 1", answers)
	}
}

// TestBadLinksAreRefused: with a reason, and nothing changes.
func TestBadLinksAreRefused(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "p"}, KinshipConfig{Site: "a", Consent: ConsentAllow}, KinshipConfig{Site: "b", Consent: ConsentAllow},
		KinshipConfig{Site: "s", Links: []Link{{"p", Sibling}}}, KinshipConfig{Site: "q"})
	if err := errors.Join(c.invite("p", "a"), c.invite("a", "b")); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Minute)
	state := func() string {
		text := ""
		for _, site := range slices.Sorted(maps.Keys(c.members)) {
			text += fmt.Sprint(site, c.members[site].Kin(), len(c.stored[site]), ";")
		}
		return text
	}
	before := state()
	for i, tt := range []struct {
		got  error
		want error
		word string
	}{
		{c.invite("p", "p"), ErrLoop, "own parent"},
		{c.invite("p", ""), ErrBounds, "without a name"},
		{c.invite("p", grid.SiteID(strings.Repeat("x", siteIDMax+1))), ErrBounds, "without a name"},
		{c.invite("p", "a"), ErrLinked, "child by invitation"},
		{c.invite("a", "p"), ErrLoop, "above"},
		{c.invite("b", "p"), ErrLoop, "above"},
		{c.invite("s", "p"), ErrLinked, "sibling by configuration"},
		{c.accept("a", "p"), ErrUnknown, "has not invited"},
		{c.accept("q", "p"), ErrUnknown, "has not invited"},
		{c.drop("q", "p"), ErrUnknown, "no link"},
		{c.drop("s", "p"), ErrLinked, "delegation.links"},
	} {
		if !errors.Is(tt.got, tt.want) || !strings.Contains(tt.got.Error(), tt.word) {
			t.Errorf("case %d: %v, want %v with %q", i, tt.got, tt.want, tt.word)
		}
	}
	if state() != before {
		t.Errorf("refused calls changed\n%s to\n%s", before, state())
	}

	// What the other side refuses.
	if err := errors.Join(c.invite("q", "a"), c.invite("p", "s"), c.invite("q", "p")); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Minute)
	c.wantKin("q", "a", "child declined: the site has a parent")
	c.wantKin("p", "s", "child declined: the two sites are linked in another way")
	c.wantKin("p", "q", "parent offered")
	c.want("a", "child:b parent:p")
	if err := c.invite("p", "q"); !errors.Is(err, ErrLinked) {
		t.Errorf("invited the one that invites: %v", err)
	}
	// Forged words: of sites that are nothing to p, or with another's path.
	before = state()
	for _, m := range []grid.Message{
		&Join{Number: 9}, &Join{Answer: AnswerNo, Reason: AboveItself}, &Family{Number: 9, Path: []grid.SiteID{"z"}, Siblings: []grid.SiteID{"y"}},
		&Family{Path: []grid.SiteID{"y"}}, &Invite{Number: 1, Path: []grid.SiteID{"y"}}, &Family{Number: 9, Path: []grid.SiteID{"z"}, Reason: Parted},
	} {
		for _, site := range []grid.SiteID{"p", "a"} {
			c.act(site, func(f *Kinship, out *grid.Outbox) error {
				f.Step(c.now, &grid.Delivery{From: "z", Message: m}, out)
				return nil
			})
		}
	}
	if state() != before {
		t.Errorf("words of strangers changed\n%s to\n%s", before, state())
	}
}

// loops returns the sites that are above themselves over links that are used.
func (c *clan) loops() (list []grid.SiteID) {
	parent := map[grid.SiteID]grid.SiteID{}
	for site, f := range c.members {
		for _, l := range f.Links() {
			switch l.Relation {
			case Parent:
				parent[site] = l.Site
			case Child:
				if _, own := parent[l.Site]; !own {
					parent[l.Site] = site
				}
			}
		}
	}
	for site := range c.members {
		at := parent[site]
		for steps := 0; at != "" && at != site && steps < 100; steps++ {
			at = parent[at]
		}
		if at == site {
			list = append(list, site)
		}
	}
	return list
}

// TestLoopOfConfigurations: three sites, each configured above the next, notice; one of
// them does not use its link, and uses it again when another has mended the loop.
func TestLoopOfConfigurations(t *testing.T) {
	for name, links := range map[string]map[grid.SiteID][]Link{
		"parents":  {"a": {{"c", Parent}}, "b": {{"a", Parent}}, "c": {{"b", Parent}}},
		"children": {"a": {{"b", Child}}, "b": {{"c", Child}}, "c": {{"a", Child}}},
		"both":     {"a": {{"b", Child}, {"c", Parent}}, "b": {{"a", Parent}, {"c", Child}}, "c": {{"b", Parent}, {"a", Child}}},
		"two":      {"a": {{"b", Child}}, "b": {{"a", Child}}, "c": nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClan(t, KinshipConfig{Site: "a", Links: links["a"]}, KinshipConfig{Site: "b", Links: links["b"]}, KinshipConfig{Site: "c", Links: links["c"]})
			c.run(3 * grid.Minute)
			suspended := 0
			for _, f := range c.members {
				for _, k := range f.Kin() {
					if k.Standing == Suspended {
						suspended++
						if k.Reason != AboveItself {
							t.Errorf("%+v", k)
						}
					}
				}
			}
			if suspended == 0 || suspended > 2 { // one link, at one end or both
				t.Errorf("%d links are suspended", suspended)
			}
			if loops := c.loops(); len(loops) > 0 {
				t.Errorf("%v are above themselves", loops)
			}
			mended := c.configs["b"]
			mended.Links = nil
			c.configs["b"] = mended
			c.restart("b")
			c.run(10 * grid.Minute)
			for site, f := range c.members {
				for _, k := range f.Kin() {
					if k.Standing != Linked && name != "both" { // there, a is still told that b is below it
						t.Errorf("%s after the loop is gone: %+v", site, k)
					}
				}
			}
		})
	}
}

// TestLoopOfInvitations: three sites accept each other at the same moment.
func TestLoopOfInvitations(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "a"}, KinshipConfig{Site: "b"}, KinshipConfig{Site: "c"})
	if err := errors.Join(c.invite("a", "b"), c.invite("b", "c"), c.invite("c", "a")); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Second)
	if err := errors.Join(c.accept("b", "a"), c.accept("c", "b"), c.accept("a", "c")); err != nil {
		t.Fatal(err)
	}
	c.run(5 * grid.Minute)
	if loops := c.loops(); len(loops) > 0 {
		t.Errorf("%v are above themselves", loops)
	}
	c.wantKin("a", "c", "parent suspended: a site would be above itself")
	c.wantKin("c", "a", "child suspended: a site would be above itself")
	c.want("b", "parent:a child:c")
	if err := c.drop("a", "c"); err != nil {
		t.Fatal(err)
	}
	c.run(5 * grid.Minute)
	c.want("a", "child:b")
	c.want("c", "parent:b")

	// In a line there is no room for a loop at all.
	if err := c.invite("c", "a"); !errors.Is(err, ErrLoop) {
		t.Errorf("the last invites the first: %v", err)
	}
}

func TestHierarchiesAreBounded(t *testing.T) {
	var configs []KinshipConfig
	name := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprintf("s%02d", i)) }
	for i := range DepthMax + 1 {
		configs = append(configs, KinshipConfig{Site: name(i), Consent: ConsentAllow})
	}
	c := newClan(t, configs...)
	for i := range DepthMax {
		if err := c.invite(name(i), name(i+1)); err != nil {
			t.Fatal(err)
		}
		c.run(grid.Minute)
	}
	c.wantKin(name(DepthMax-1), name(DepthMax), "child declined: the hierarchy would be too deep")
	c.wantKin(name(DepthMax-2), name(DepthMax-1), "child linked")

	f := newClan(t, KinshipConfig{Site: "a"})
	for i := range offersMax + 1 {
		f.act("a", func(k *Kinship, out *grid.Outbox) error {
			from := grid.SiteID(fmt.Sprint("x", i))
			k.Step(f.now, &grid.Delivery{From: from, Message: &Invite{Number: 1, Path: []grid.SiteID{from}}}, out)
			return nil
		})
		f.act("a", func(k *Kinship, out *grid.Outbox) error {
			from := grid.SiteID(fmt.Sprint("y", i))
			k.Step(f.now, &grid.Delivery{From: from, Message: &Family{Path: []grid.SiteID{from}}}, out)
			return nil
		})
	}
	if m := f.members["a"]; len(m.kin) != offersMax || len(m.claims) != claimsMax {
		t.Errorf("%d invitations and %d claims are kept, want %d and %d", len(m.kin), len(m.claims), offersMax, claimsMax)
	}
	f.run(offerSpan + grid.Hour)
	if m := f.members["a"]; len(m.kin)+len(m.claims)+len(f.stored["a"]) != 0 || m.NextTimer() != grid.Never {
		t.Errorf("after a week %d invitations, %d claims and %d records are left, next timer %v", len(m.kin), len(m.claims), len(f.stored["a"]), m.NextTimer())
	}
}

// TestKinshipUnderFaults: with messages lost, doubled and reordered, and restarts, both
// ends of every link agree in the end, and nobody is above itself.
func TestKinshipUnderFaults(t *testing.T) {
	linked, suspended := 0, 0
	for seed := range uint64(60) {
		sites := []grid.SiteID{"a", "b", "c", "d", "e", "f"}
		var configs []KinshipConfig
		for i, s := range sites {
			configs = append(configs, KinshipConfig{Site: s, Consent: Consent(i % 3 % 2)})
		}
		c := newClan(t, configs...)
		c.rng = rand.New(rand.NewPCG(seed, 1))
		for range 40 {
			a, b := sites[c.rng.IntN(len(sites))], sites[c.rng.IntN(len(sites))]
			switch c.rng.IntN(8) {
			case 0, 1, 2:
				_ = c.invite(a, b)
			case 3, 4, 5:
				_ = c.accept(a, b)
			case 6:
				_ = c.drop(a, b)
			case 7:
				c.restart(a)
			}
			c.run(grid.Time(c.rng.Int64N(int64(30 * grid.Second))))
		}
		c.rng = nil
		c.run(20*grid.Minute + inviteMax)
		if loops := c.loops(); len(loops) > 0 {
			t.Fatalf("seed %d: %v are above themselves", seed, loops)
		}
		for site, f := range c.members {
			if err := CheckLinks(site, f.Links()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, k := range f.Kin() {
				there, _ := c.members[k.Site].Get(site)
				switch {
				case k.Standing == Leaving:
					t.Fatalf("seed %d: %s is still leaving %s", seed, site, k.Site)
				case k.Standing == Invited && there.Standing != Offered:
					t.Fatalf("seed %d: %s has invited %s, which has %+v", seed, site, k.Site, there)
				case k.Origin == ByParent:
				case k.Standing != Linked && k.Standing != Suspended:
				case there.Standing != k.Standing || k.Relation == there.Relation:
					t.Fatalf("seed %d: %s has %+v, %s has %+v", seed, site, k, k.Site, there)
				case k.Standing == Linked:
					linked++
				default:
					suspended++
				}
			}
		}
	}
	t.Logf("%d ends of links, %d suspended", linked, suspended)
	if linked < 60 {
		t.Errorf("only %d ends of links: nothing was tested", linked)
	}
}

// TestKinIsBounded: a site that has as many links as it keeps makes no further one, whoever asks.
func TestKinIsBounded(t *testing.T) {
	for _, full := range []bool{false, true} {
		c := newClan(t, KinshipConfig{Site: "a"}, KinshipConfig{Site: "b", Consent: ConsentAllow}, KinshipConfig{Site: "c"})
		for _, site := range []grid.SiteID{"a", "b"} {
			ks := c.members[site]
			for i := len(ks.kin); i < LinksMax; i++ {
				if full || i > 0 {
					ks.kin[grid.SiteID(fmt.Sprint("x", i))] = nil
				}
			}
		}
		if err := c.invite("a", "c"); errors.Is(err, ErrBounds) != full || (err == nil) == full {
			t.Errorf("full %t: %v", full, err)
		}
		if err := c.invite("c", "b"); err != nil {
			t.Fatal(err)
		}
		c.run(grid.Second)
		want := "child linked"
		if full {
			want = "child declined"
		}
		if got := c.kin("c", "b"); !strings.HasPrefix(got, want) {
			t.Errorf("full %t: %s, want %s", full, got, want)
		}
	}
}

// TestInvitationIsAnsweredInTime: whoever invites a site that says nothing learns that after a while,
// once; the invitation is sent again, ever more rarely, and ends after a week.
func TestInvitationIsAnsweredInTime(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "p"})
	if err := c.invite("p", "a"); err != nil {
		t.Fatal(err)
	}
	from, sent, answered := c.now, []grid.Time{0}, []grid.Time{}
	for ks := c.members["p"]; ks.NextTimer() != grid.Never; {
		c.now = ks.NextTimer()
		c.locals["p"], c.flight = nil, nil
		if c.act("p", func(k *Kinship, out *grid.Outbox) error { k.Step(c.now, grid.Tick{}, out); return nil }); len(c.flight) > 0 {
			sent = append(sent, c.now-from)
		}
		for _, in := range c.locals["p"] {
			if _, is := in.(*Answered); is {
				answered = append(answered, c.now-from)
			}
		}
		if len(sent) > 1000 {
			t.Fatal("it is sent for ever")
		}
	}
	if !slices.Equal(answered, []grid.Time{inviteWait}) {
		t.Errorf("it is told after %v, want %v", answered, inviteWait)
	}
	for i := 2; i < len(sent); i++ {
		if pause := sent[i] - sent[i-1]; pause > inviteMax || i > 20 && i < len(sent)-1 && pause != inviteMax {
			t.Fatalf("it is sent again after %v: %v", pause, sent)
		}
	}
	if last := sent[len(sent)-1]; last < offerSpan-inviteMax || c.now-from != offerSpan || len(c.stored["p"]) > 0 {
		t.Errorf("it is sent until %v, and ends after %v with %d records", last, c.now-from, len(c.stored["p"]))
	}
}

// TestClaimsOfParents: of several sites that say to be above this one the first by name counts, in
// whatever order they say so, until it has said nothing for long.
func TestClaimsOfParents(t *testing.T) {
	for _, order := range [][]grid.SiteID{{"x", "y", "z"}, {"z", "y", "x"}, {"y", "x", "z"}} {
		c := newClan(t, KinshipConfig{Site: "a"})
		for _, from := range order {
			c.act("a", func(k *Kinship, out *grid.Outbox) error {
				k.Step(c.now, &grid.Delivery{From: from, Message: &Family{Path: []grid.SiteID{from}}}, out)
				return nil
			})
		}
		if got := c.members["a"].path(); !slices.Equal(got, []grid.SiteID{"x", "a"}) {
			t.Errorf("after %v its path is %v", order, got)
		}
		c.run(grid.Hour)
		if ks := c.members["a"]; len(ks.claims) > 0 || !slices.Equal(ks.path(), []grid.SiteID{"a"}) {
			t.Errorf("after an hour its path is %v", ks.path())
		}
	}
}

// TestConfiguredParentIsNotPestered: a parent whose child speaks says no more than that needs.
func TestConfiguredParentIsNotPestered(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "p", Links: []Link{{"a", Child}}}, KinshipConfig{Site: "a", Links: []Link{{"p", Parent}}})
	c.run(10 * grid.Minute)
	before := c.sent
	c.run(10 * grid.Minute)
	if sent := c.sent - before; sent > 22 {
		t.Errorf("%d messages in ten minutes, want a word and its answer each", sent)
	}
}

// TestOfferIsDropped: who invites hears that the other site does not want it.
func TestOfferIsDropped(t *testing.T) {
	c := newClan(t, KinshipConfig{Site: "p"}, KinshipConfig{Site: "a"})
	if err := c.invite("p", "a"); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Second)
	c.wantKin("a", "p", "parent offered")
	if err := c.drop("a", "p"); err != nil {
		t.Fatal(err)
	}
	c.run(grid.Minute)
	if got := c.kin("p", "a"); !strings.HasPrefix(got, "child declined") {
		t.Errorf("who has invited it says %q", got)
	}
	c.wantKin("a", "p", "none")
	if len(c.stored["a"]) > 0 {
		t.Errorf("%d records are left", len(c.stored["a"]))
	}
}
