package coalloc

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/lease"
)

// TestTranscripts runs testdata/*.txt: each command is followed by everything that
// happened because of it. Commands of placements:
//
//	sites free=16+16+16 [das3] [groups=500us]    sites a, b, … with 100 processors, or DAS-3's as table II has them
//	wait a=1h b=2h …                             how long a component waits for a site that is not idle
//	place policy=wf components=8+8@b+8 | processors=24 [count=2..4] [min=8] [each=4] [max-sites=2] [ccr=250] [for=1h] [input=1000000000@b+c]
//
// of claims, by homes that place jobs at lenders:
//
//	lender name=a processors=4
//	home name=x processors=2 sites=a+b+c policy=fcm [hold=20s]
//	submit home=x job=1 …                        a request as of place; [policy=…] of its own
//	withdraw | finish | vacated home=x job=1     view home=x a=4 b=0
//	report home=x site=a free=4 [age=5s]         as a quote or gossip, issued so long ago by the site's clock
//	busy | idle site=a processors=2              something else runs there, or has ended
//	deliver [count=1] | drop | copy | last | advance for=5s | wait for=5s
//	crash | restart site=x
//	state                                        what every site has, and every home waits for
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the fuzzer's corpus
		}
		x := &script{sites: map[grid.SiteID]*scriptSite{}, names: map[lease.ID]string{}, waits: map[grid.SiteID]grid.Time{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.t, x.d, x.trace, x.told = t, d, strings.Builder{}, x.now
			x.command()
			return x.trace.String()
		})
	})
}

// script is a view to place on, and some sites with messages between them.
type script struct {
	t      *testing.T
	d      *datadriven.TestData
	trace  strings.Builder
	view   *View
	waits  map[grid.SiteID]grid.Time
	now    grid.Time
	told   grid.Time
	sites  map[grid.SiteID]*scriptSite
	flight []scriptMail
	names  map[lease.ID]string
	others uint64 // tasks that fill a site
}

type scriptMail struct {
	from, to grid.SiteID
	message  grid.Message
}

type scriptSite struct {
	x       *script
	id      grid.SiteID
	make    func()
	cluster *lrms.Cluster
	book    *lease.Book
	match   *lease.Matchmaker
	home    *Home
	coord   *Coordinator // nil: it only lends
	saved   map[string][]byte
	down    bool
	fills   []grid.TaskID
}

func (x *script) command() {
	d := x.d
	home := x.sites[grid.SiteID(x.arg("home", ""))]
	switch d.Cmd {
	case "sites":
		x.makeView()
	case "wait":
		if x.view == nil {
			x.advance(x.span("for", 0), false)
			return
		}
		for _, arg := range d.CmdArgs {
			x.waits[grid.SiteID(arg.Key)] = x.span(arg.Key, 0)
		}
	case "place":
		x.place()
	case "lender", "home":
		x.add()
	case "submit":
		r := x.request()
		home.act(func(out *grid.Outbox) {
			home.coord.Step(x.now, &Submit{Task: x.task(), Request: &r, Estimate: x.span("for", grid.Hour)}, out)
		})
	case "withdraw":
		home.act(func(out *grid.Outbox) { home.coord.Step(x.now, &Withdraw{Job: x.task().Job}, out) })
	case "finish":
		home.act(func(out *grid.Outbox) {
			home.coord.Step(x.now, &Finish{Job: x.task().Job}, out)
			home.home.Vacated(x.now, x.task().Job, out)
		})
	case "vacated":
		home.act(func(out *grid.Outbox) { home.home.Vacated(x.now, x.task().Job, out) })
	case "view":
		for i := range home.coord.View().Sites {
			if v := x.arg(string(home.coord.View().Sites[i].ID), ""); v != "" {
				home.coord.View().SetFree(i, x.number(string(home.coord.View().Sites[i].ID), 0))
			}
		}
	case "report":
		site := grid.SiteID(x.arg("site", ""))
		view := home.coord.View()
		free := home.coord.Reported(x.now, site, x.number("free", 0), x.now-x.span("age", 0))
		view.SetFree(view.Index(site), free)
		x.printf("of %s %d count as idle", site, view.Sites[view.Index(site)].Free)
	case "busy", "idle":
		x.fill()
	case "deliver":
		for range x.number("count", 1000) {
			x.deliver()
		}
	case "drop":
		x.flight = x.flight[1:]
	case "copy":
		x.flight = append(x.flight[:1:1], x.flight...)
	case "last":
		x.flight = append(x.flight[1:], x.flight[0])
	case "advance":
		x.advance(x.span("for", 0), true)
	case "crash":
		x.sites[grid.SiteID(x.arg("site", ""))].down = true
	case "restart":
		x.restart(x.sites[grid.SiteID(x.arg("site", ""))])
	case "state":
		x.state()
	default:
		x.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

// makeView makes what placements are made on.
func (x *script) makeView() {
	var free []int64
	for _, v := range x.values("free") {
		n, err := strconv.ParseInt(v, 10, 64)
		x.must(err)
		free = append(free, n)
	}
	var network Network
	if x.d.HasArg("das3") {
		network = table2(x.t)
	}
	x.view = viewOf(network, free...)
	x.view.Penalty = wave
	clear(x.waits)
	for i := range x.view.Sites {
		id := x.view.Sites[i].ID
		x.view.Sites[i].Wait = func(int64) grid.Time {
			if w, known := x.waits[id]; known {
				return w
			}
			return grid.Never
		}
	}
	if radius := x.span("groups", 0); radius > 0 {
		x.printf("%d groups", Groups(x.view, radius))
	}
}

// request returns the request that a command describes.
func (x *script) request() Request {
	var r Request
	var err error
	if components := x.values("components"); components != nil {
		r, err = ParseComponents(strings.Join(components, ","))
	} else {
		r, err = ParseFlexible(x.arg("count", "1.."), x.number("processors", 1), x.number("min", 0))
	}
	x.must(err)
	r.Each, r.ClustersMax, r.CCR = x.number("each", 0), int(x.number("max-sites", 0)), x.number("ccr", CCRUnknown)
	if input := x.arg("input", ""); input != "" {
		bytes, holders, _ := strings.Cut(input, "@")
		n, err := strconv.ParseInt(bytes, 10, 64)
		x.must(err)
		in := Input{Bytes: n}
		for _, h := range strings.Split(holders, "+") {
			in.Holders = append(in.Holders, grid.SiteID(h))
		}
		r.Inputs = append(r.Inputs, in)
	}
	if p := x.arg("policy", ""); p != "" {
		policy, err := ParsePolicy(p)
		x.must(err)
		r.Policy = &policy
	}
	return r
}

func (x *script) place() {
	r := x.request()
	if err := r.Validate(); err != nil {
		x.printf("error: %v", err)
		return
	}
	if err := r.PlaceableBy(*r.Policy, x.view, x.span("for", grid.Hour)); err != nil {
		x.printf("never: %v", err)
		return
	}
	parts, ok := r.Policy.Place(nil, &r, x.view, x.span("for", grid.Hour))
	slowdown := ""
	if ok && x.view.Network != nil {
		slowdown = fmt.Sprintf(", %d thousandths longer", x.view.Slowdown(&r, parts))
	}
	x.printf("%s%s", text(x.view, parts, ok), slowdown)
}

// add adds a site that lends, or one that places jobs, too.
func (x *script) add() {
	s := &scriptSite{x: x, id: grid.SiteID(x.arg("name", "")), saved: map[string][]byte{}}
	processors, hold, names := x.number("processors", 0), x.span("hold", 20*grid.Second), x.values("sites")
	places := x.d.Cmd == "home"
	policy, err := ParsePolicy(x.arg("policy", "fcm"))
	x.must(err)
	s.make = func() {
		s.cluster, err = lrms.New(lrms.Config{Processors: processors})
		x.must(err)
		s.book, err = lease.New(lease.Config{Site: s.id, Term: grid.Minute, Retry: grid.Second}, s.cluster)
		x.must(err)
		s.match, err = lease.NewMatchmaker(lease.MatchConfig{Lend: true}, s.cluster, s.book, nil, rand.New(rand.NewPCG(1, 1)))
		x.must(err)
		if !places {
			return
		}
		sites := []Site{{ID: s.id, Processors: processors, Free: processors}}
		for _, name := range names {
			n := x.sites[grid.SiteID(name)].cluster.Processors()
			sites = append(sites, Site{ID: grid.SiteID(name), Processors: n, Free: n})
		}
		s.home = NewHome(s.id, s.cluster, s.book, 0)
		cfg := CoordinatorConfig{Queue: QueueConfig{Policy: policy, Interval: 10 * grid.Second}, Hold: hold}
		s.coord, err = NewCoordinator(cfg, NewView(sites, nil), s.home, rand.New(rand.NewPCG(uint64(s.id[0]), 2)))
		x.must(err)
	}
	s.make()
	x.sites[s.id] = s
}

// fill has something else run at a site, or ends all that does.
func (x *script) fill() {
	s := x.sites[grid.SiteID(x.arg("site", ""))]
	if x.d.Cmd == "idle" {
		for _, id := range s.fills {
			s.cluster.Ended(x.now, id)
		}
		s.fills = nil
		return
	}
	x.others++
	id := grid.TaskID{Job: grid.JobID{Hi: 99, Lo: x.others}, Epoch: 1}
	x.must(s.cluster.Adopt(x.now, lrms.Request{ID: id, Processors: x.number("processors", 1), Estimate: grid.Hour}, x.now))
	s.fills = append(s.fills, id)
}

func (x *script) task() grid.TaskID {
	return grid.TaskID{Job: jobID(int(x.number("job", 1))), Epoch: uint32(x.number("epoch", 1))}
}

// act has a site do something, and carries out what it orders.
func (s *scriptSite) act(do func(out *grid.Outbox)) {
	var out grid.Outbox
	carried := 0
	carry := func() {
		for _, e := range out.Effects[carried:] {
			s.carry(e, &out)
		}
		carried = len(out.Effects)
	}
	do(&out)
	carry()
	for i := 0; i < len(out.Locals); i++ {
		s.local(out.Locals[i], &out)
		carry()
	}
	if s.coord != nil {
		if err := Audit(s.x.now, s.coord, s.home, s.book); err != nil {
			s.x.t.Errorf("%s: %s: %v", s.id, s.x.d.Cmd, err)
		}
	}
}

func (s *scriptSite) carry(e grid.Effect, out *grid.Outbox) {
	x := s.x
	switch e.Kind {
	case grid.EffectSend:
		m := out.Sends[e.Index]
		x.printf("%s -> %s: %s", s.id, m.To, x.describe(s.id, m))
		x.flight = append(x.flight, scriptMail{s.id, m.To, m.Message})
	case grid.EffectSave:
		r := out.Records[e.Index]
		s.saved[r.RecordKey()] = r.AppendRecord(nil)
		if d, ok := r.(*decision); ok {
			x.printf("%s: save decision of job %d, started %t", s.id, d.task.Job.Lo, d.phase == phaseStarted)
		}
	case grid.EffectDelete:
		delete(s.saved, out.Records[e.Index].RecordKey())
		if d, ok := out.Records[e.Index].(*decision); ok {
			x.printf("%s: forget decision of job %d", s.id, d.task.Job.Lo)
		}
	}
}

// local is what the cores of a site tell each other, and their owner.
func (s *scriptSite) local(in grid.Input, out *grid.Outbox) {
	x := s.x
	switch in := in.(type) {
	case *Start:
		var parts []string
		for _, p := range in.Parts {
			parts = append(parts, fmt.Sprintf("%d at %s", p.Processors, p.Site))
		}
		x.printf("%s: start job %d: %s, again %t", s.id, in.Task.Job.Lo, strings.Join(parts, ", "), in.Again)
	case *Rejected:
		x.printf("%s: rejected job %d: %v", s.id, in.Task.Job.Lo, in.Err)
	case *Aborted:
		x.printf("%s: aborted job %d", s.id, in.Task.Job.Lo)
		s.home.Vacated(x.now, in.Task.Job, out)
	case *Broken:
		x.printf("%s: broken job %d at %s: %s, started %t, gone at %v", s.id, in.Task.Job.Lo, in.Site, in.Cause, in.Started, in.Gone)
		s.home.Vacated(x.now, in.Task.Job, out)
	default:
		if s.coord != nil && !s.coord.Has(leaseIn(in)) {
			s.match.Step(x.now, in, out)
		} else if s.coord != nil {
			s.coord.Step(x.now, in, out)
		} else {
			s.match.Step(x.now, in, out)
		}
	}
}

// leaseIn returns the lease that a local of a book is about.
func leaseIn(in grid.Input) lease.ID {
	switch in := in.(type) {
	case *lease.Granted:
		return in.ID
	case *lease.Refused:
		return in.ID
	case *lease.Claimed:
		return in.ID
	case *lease.Recalled:
		return in.ID
	case *lease.Ended:
		if !in.Lent {
			return in.ID
		}
	}
	return lease.ID{}
}

func (x *script) deliver() {
	if len(x.flight) == 0 {
		return
	}
	m := x.flight[0]
	x.flight = x.flight[1:]
	if s := x.sites[m.to]; !s.down {
		s.act(func(out *grid.Outbox) { s.book.Step(x.now, &grid.Delivery{From: m.from, Message: m.message}, out) })
	}
}

func (s *scriptSite) next() grid.Time {
	switch {
	case s.down:
		return grid.Never
	case s.coord == nil:
		return s.book.NextTimer()
	}
	return min(s.book.NextTimer(), s.home.NextTimer(), s.coord.NextTimer())
}

func (s *scriptSite) tick() {
	s.act(func(out *grid.Outbox) {
		s.book.Step(s.x.now, grid.Tick{}, out)
		if s.coord != nil {
			s.home.Tick(s.x.now, out)
			s.coord.Step(s.x.now, grid.Tick{}, out)
		}
	})
}

// advance lets time pass.
func (x *script) advance(span grid.Time, deliver bool) {
	for until := x.now + span; ; {
		for deliver && len(x.flight) > 0 {
			x.deliver()
		}
		next := until
		for _, s := range x.sites {
			next = min(next, max(s.next(), x.now))
		}
		x.now = next
		due := false
		for _, id := range slices.Sorted(maps.Keys(x.sites)) {
			if s := x.sites[id]; s.next() <= x.now {
				due = true
				s.tick()
			}
		}
		if !due && (!deliver || len(x.flight) == 0) {
			return
		}
	}
}

// restart takes up what a site had saved.
func (x *script) restart(s *scriptSite) {
	s.down = false
	s.make()
	s.act(func(out *grid.Outbox) {
		if s.coord != nil {
			x.must(s.coord.Recover(maps.All(s.saved), out))
			x.must(s.home.Recover(x.now, sorted(s.saved), out))
		}
		x.must(s.book.Recover(x.now, sorted(s.saved), out))
	})
}

// state prints what every site has.
func (x *script) state() {
	for _, id := range slices.Sorted(maps.Keys(x.sites)) {
		s := x.sites[id]
		t := s.book.Totals()
		line := fmt.Sprintf("%s: idle %d, held %d, lent %d, borrowed %d", id, s.cluster.Idle(x.now), t.Held, t.Lent, t.Borrowed)
		if s.coord != nil {
			line += fmt.Sprintf("; %d wait, %d are claimed or run", s.coord.Queue().Len(), s.coord.Claiming())
		}
		x.printf("%s", line)
	}
}

// describe says what a message says.
func (x *script) describe(from grid.SiteID, s grid.Send) string {
	kind := wire.KindName(s.Message.MessageKind())
	switch m := s.Message.(type) {
	case *lease.Request:
		return fmt.Sprintf("%s %s: %d processors", kind, x.name(from, m.Number), m.Processors)
	case *lease.Grant:
		return fmt.Sprintf("%s %s, held for %v", kind, x.name(s.To, m.Number), m.Hold)
	case *lease.Refuse:
		return fmt.Sprintf("%s %s: %s, free %d", kind, x.name(s.To, m.Number), m.Reason, m.Free)
	case *lease.Claim:
		return kind + " " + x.name(from, m.Number)
	case *lease.Renewed:
		return kind + " " + x.name(s.To, m.Number)
	case *lease.Release:
		return kind + " " + x.name(from, m.Number)
	case *lease.Released:
		return fmt.Sprintf("%s %s: %s", kind, x.name(s.To, m.Number), m.Cause)
	}
	return kind
}

// name returns a lease's short name: borrower and age.
func (x *script) name(borrower grid.SiteID, number uint64) string {
	id := lease.ID{Borrower: borrower, Number: number}
	if x.names[id] == "" {
		n := 1
		for other := range x.names {
			if other.Borrower == borrower {
				n++
			}
		}
		x.names[id] = fmt.Sprintf("%s#%d", borrower, n)
	}
	return x.names[id]
}

func (x *script) printf(format string, args ...any) {
	if x.now != x.told {
		fmt.Fprintf(&x.trace, "%s\n", time.Unix(0, 0).UTC().Add(x.now.Duration()).Format("15:04:05.999"))
		x.told = x.now
	}
	fmt.Fprintf(&x.trace, format+"\n", args...)
}

func (x *script) must(err error) {
	if err != nil {
		x.t.Fatalf("%s: %v", x.d.Pos, err)
	}
}

func (x *script) values(key string) []string {
	for _, arg := range x.d.CmdArgs {
		if arg.Key == key {
			return strings.Split(strings.Join(arg.Vals, ","), "+")
		}
	}
	return nil
}

func (x *script) arg(key, def string) string {
	for _, arg := range x.d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return def
}

func (x *script) number(key string, def int64) int64 {
	v, err := strconv.ParseInt(x.arg(key, strconv.FormatInt(def, 10)), 10, 64)
	x.must(err)
	return v
}

func (x *script) span(key string, def grid.Time) grid.Time {
	v := x.arg(key, "")
	if v == "" {
		return def
	}
	span, err := time.ParseDuration(v)
	x.must(err)
	return grid.FromDuration(span)
}
