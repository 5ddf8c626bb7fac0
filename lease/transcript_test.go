package lease

import (
	"cmp"
	"fmt"
	"iter"
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
)

// TestTranscripts runs testdata/*.txt: each command is followed by everything that
// happened because of it. Leases are named by borrower and age (a#1), epochs by lender and
// age (b.1). Commands:
//
//	site name=a processors=8 [fcfs] [lend=no] [by-hand] [policy=s-strd] [threshold=1000] [links=b:sibling,c:parent]
//	     [order=neighbours] [cycle=1m] [match=5m] [ttl=6] [rounds=2] [term=5m] [drain] [kin] [consent=allow]
//	submit site=a job=1 processors=4 for=100s [unit=1 ttl=2 by=2h late]    end | cancel | dispatch
//	request site=a lender=b processors=3 for=1h [hold=10s patience=1m]
//	grant | refuse site=b lease=a#1     of a site by-hand, whose requests wait for that
//	claim | release | leave | vacated site=a lease=a#1    renew site=a lease=a#1 for=2h    revoke site=b lease=a#1 [force]
//	say from=a to=b lease=a#1 claim|renew|release [epoch=other]
//	deliver [count=1]      deliver messages in order, with what they cause, or only so many
//	drop | copy | last | undeliverable   the first message under way is lost | doubled | moved to the end | certainly never arrives
//	advance for=5s         let time pass; messages are delivered at once
//	wait for=5s            let time pass; messages stay under way
//	crash | restart site=a
//	leases | queue site=a
//	invite | accept | part site=a of=b, kin site=a
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the fuzzer's corpus
		}
		x := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.t, x.d, x.trace, x.told = t, d, strings.Builder{}, x.now
			x.command()
			return x.trace.String()
		})
	})
}

// script is some sites and the messages between them.
type script struct {
	t interface { // of testing.T or rapid.T
		Fatalf(format string, args ...any)
		Errorf(format string, args ...any)
	}
	d      *datadriven.TestData
	now    grid.Time
	told   grid.Time // instant of the last line of the trace
	sites  map[grid.SiteID]*scriptSite
	flight []scriptMail
	trace  strings.Builder
	names  map[string]string // short names of numbers and epochs
	seen   map[string]int    // how many each site has

	rules Rules // of sites added with "rules"

	// The owner of a site sees what it is told; either may be nil.
	heard   func(s *scriptSite, in grid.Input)
	started func(s *scriptSite, r lrms.Request)
}

func newScript() *script {
	return &script{sites: map[grid.SiteID]*scriptSite{}, names: map[string]string{}, seen: map[string]int{}}
}

// run runs a command as a transcript has it.
func (x *script) run(format string, args ...any) {
	words := strings.Fields(fmt.Sprintf(format, args...))
	x.d = &datadriven.TestData{Cmd: words[0]}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		x.d.CmdArgs = append(x.d.CmdArgs, datadriven.CmdArg{Key: key, Vals: []string{value}})
	}
	x.command()
}

type scriptMail struct {
	from, to grid.SiteID
	message  grid.Message
}

type scriptSite struct {
	x       *script
	id      grid.SiteID
	make    func() // the cores, anew
	byHand  bool
	cluster *lrms.Cluster
	book    *Book
	match   *Matchmaker
	kin     *Kinship // nil: it speaks of no links
	stored  map[string][]byte
	down    bool
}

func (x *script) command() {
	d := x.d
	s := x.sites[grid.SiteID(x.arg("site", ""))]
	switch d.Cmd {
	case "site":
		x.add()
	case "submit":
		s.turn(func(out *grid.Outbox) {
			r := lrms.Request{ID: s.task(), Processors: x.number("processors", 1), Estimate: x.span("for", grid.Hour)}
			w := Work{Request: r, Born: x.now, Unit: x.number("unit", 1), TTL: int32(x.number("ttl", 0))}
			submit := s.match.Submit
			if x.d.HasArg("by") {
				w.By = x.now + x.span("by", grid.Hour)
			}
			if x.d.HasArg("late") {
				submit, w.Unit = s.match.SubmitWide, 0
			}
			x.failed(submit(x.now, w, out))
		})
	case "end":
		s.turn(func(out *grid.Outbox) {
			if !s.match.Ended(x.now, s.task(), out) && !s.cluster.Ended(x.now, s.task()) {
				x.printf("no such job runs")
			}
		})
	case "cancel":
		s.turn(func(out *grid.Outbox) { s.match.Cancel(x.now, s.task(), out) })
	case "dispatch":
		s.turn(func(*grid.Outbox) {})
	case "request":
		s.turn(func(out *grid.Outbox) {
			_, err := s.book.Request(x.now, grid.SiteID(x.arg("lender", "")), Want{
				Processors: x.number("processors", 1), Span: x.span("for", grid.Hour), Hold: x.span("hold", 0), Patience: x.span("patience", 0),
			}, out)
			x.failed(err)
		})
	case "grant", "refuse", "claim", "release", "leave", "vacated", "renew", "revoke":
		s.turn(func(out *grid.Outbox) { x.failed(s.change(d.Cmd, x.lease(), out)) })
	case "say":
		x.say()
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
	case "undeliverable":
		m := x.flight[0]
		x.flight = x.flight[1:]
		from := x.sites[m.from]
		from.turn(func(out *grid.Outbox) { from.hear(&grid.Undelivered{To: m.to, Message: m.message}, m.message, out) })
	case "advance":
		x.advance(x.span("for", grid.Second), true)
	case "wait":
		x.advance(x.span("for", grid.Second), false)
	case "crash":
		s.down = true
	case "restart":
		s.down = false
		s.make()
		s.turn(func(out *grid.Outbox) { s.recover(out) })
	case "leases":
		for _, l := range s.book.Leases() {
			side := "borrowed from " + string(l.Lender)
			if l.Lent {
				side = "lent to " + string(l.Borrower)
			}
			x.printf("%s %s: %d processors %s, until %s", x.name(l.ID), side, l.Processors, l.State, clock(l.End))
		}
		x.printf("idle %d, %+v", s.cluster.Idle(x.now), s.book.Totals())
	case "queue":
		for r := range s.cluster.Waiting {
			x.printf("job %d", r.ID.Job.Lo)
		}
	case "invite", "accept", "part":
		s.turn(func(out *grid.Outbox) {
			of := grid.SiteID(x.arg("of", ""))
			x.failed(map[string]func(grid.Time, grid.SiteID, *grid.Outbox) error{"invite": s.kin.Invite, "accept": s.kin.Accept, "part": s.kin.Drop}[d.Cmd](x.now, of, out))
		})
	case "kin":
		for _, k := range s.kin.Kin() {
			x.printf("%s is its %s: %s, %s %s", k.Site, k.Relation, k.Standing, k.Origin, k.Reason)
		}
	default:
		x.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

// add adds a site.
func (x *script) add() {
	s := &scriptSite{x: x, id: grid.SiteID(x.arg("name", "")), stored: map[string][]byte{}, byHand: x.d.HasArg("by-hand")}
	discipline := lrms.EASY
	if x.d.HasArg("fcfs") {
		discipline = lrms.FCFS
	}
	var links []Link
	if text := x.arg("links", ""); text != "" {
		for _, l := range strings.Split(text, "+") {
			site, relation, _ := strings.Cut(l, ":")
			r, err := ParseRelation(relation)
			x.failed(err)
			links = append(links, Link{grid.SiteID(site), r})
		}
	}
	policy, err := ParsePolicy(x.arg("policy", "dmm"))
	x.failed(err)
	consent, err := ParseConsent(x.arg("consent", "ask"))
	x.failed(err)
	ordering, err := ParseOrdering(x.arg("order", "most-free"))
	x.failed(err)
	processors := x.number("processors", 8)
	book := Config{Site: s.id, Term: x.span("term", 0), Drain: x.d.HasArg("drain")}
	match := MatchConfig{
		Links: links, Lend: x.arg("lend", "yes") == "yes", Policy: policy, Threshold: x.number("threshold", 0), TTL: int32(x.number("ttl", 0)),
		Rounds: int32(x.number("rounds", 0)), DelegationCycle: x.span("cycle", 0), MatchCycle: x.span("match", 0), Slack: grid.Second, Ordering: ordering,
	}
	if x.d.HasArg("rules") {
		match.Rules = x.rules
	}
	kin := x.d.HasArg("kin")
	s.make = func() {
		if s.cluster, err = lrms.New(lrms.Config{Processors: processors, Discipline: discipline}); err != nil {
			x.t.Fatalf("%s: %v", x.d.Pos, err)
		}
		if s.book, err = New(book, s.cluster); err != nil {
			x.t.Fatalf("%s: %v", x.d.Pos, err)
		}
		if s.match, err = NewMatchmaker(match, s.cluster, s.book, nil, rand.New(rand.NewPCG(1, 2))); err != nil {
			x.t.Fatalf("%s: %v", x.d.Pos, err)
		}
		if kin {
			if s.kin, err = NewKinship(KinshipConfig{Site: s.id, Links: links, Consent: consent}); err != nil {
				x.t.Fatalf("%s: %v", x.d.Pos, err)
			}
		}
	}
	s.make()
	x.sites[s.id] = s
}

// task names the job that a command is about.
func (s *scriptSite) task() grid.TaskID {
	return grid.TaskID{Job: grid.JobID{Hi: uint64(s.id[0]), Lo: uint64(s.x.number("job", 1))}, Epoch: 1}
}

// change does by hand what a command says.
func (s *scriptSite) change(what string, id ID, out *grid.Outbox) error {
	now := s.x.now
	switch what {
	case "grant":
		return s.book.Grant(now, id, Terms{}, out)
	case "refuse":
		return s.book.Refuse(now, id, Busy, 0, out)
	case "claim":
		return s.book.Claim(now, id, out)
	case "release":
		return s.book.Release(now, id, out)
	case "leave":
		return s.book.Leave(now, id, out)
	case "vacated":
		return s.book.Vacated(now, id, out)
	case "renew":
		return s.book.Renew(now, id, s.x.span("for", grid.Hour), out)
	}
	return s.book.Revoke(now, id, s.x.d.HasArg("force"), out)
}

// say has a site say what its book would not.
func (x *script) say() {
	id := x.lease()
	from, to := grid.SiteID(x.arg("from", "")), grid.SiteID(x.arg("to", ""))
	var epoch uint64
	for _, s := range x.sites {
		if l, there := s.book.Get(id); there {
			epoch = max(epoch, l.Epoch)
		}
	}
	if x.d.HasArg("epoch") {
		epoch++
	}
	var m grid.Message
	switch {
	case x.d.HasArg("claim"):
		m = &Claim{Number: id.Number, Epoch: epoch, Sequence: 1}
	case x.d.HasArg("renew"):
		m = &Renew{Number: id.Number, Epoch: epoch, Sequence: 2}
	default:
		m = &Release{Number: id.Number, Epoch: epoch}
	}
	x.flight = append(x.flight, scriptMail{from, to, m})
}

// turn has a site do something, and what it does at the end of a turn.
func (s *scriptSite) turn(do func(out *grid.Outbox)) {
	s.act(do)
	var started []lrms.Request
	s.act(func(out *grid.Outbox) {
		s.book.Step(s.x.now, grid.Tick{}, out)
		s.match.Step(s.x.now, grid.Tick{}, out)
		started = s.match.Dispatch(s.x.now, nil, out)
		if s.kin != nil {
			s.kin.Step(s.x.now, grid.Tick{}, out)
		}
	})
	for _, r := range started {
		if s.x.started != nil {
			s.x.started(s, r)
		}
		s.x.printf("%s: job %d starts on own processors", s.id, r.ID.Job.Lo)
	}
	if err := cmp.Or(Audit(s.x.now, s.book), AuditRequests(s.match), s.audit()); err != nil {
		s.x.t.Errorf("%s: %s: %v", s.id, s.x.d.Cmd, err)
	}
}

// audit compares what is stored with what the book has that outlives a crash.
func (s *scriptSite) audit() error {
	here := make(map[string]bool)
	for _, e := range s.book.entries {
		key := (*record)(e).RecordKey()
		here[key] = true
		if e.State == Requested || !e.Lent && (e.State == Held || e.State == Ending) {
			continue
		}
		value, there := s.stored[key]
		if !there {
			return fmt.Errorf("lease %s, %s, is not stored", s.x.name(e.ID), e.State)
		}
		if was, err := decodeRecord(value); err != nil || was.State != e.State || was.Epoch != e.Epoch || was.revoked != e.revoked {
			return fmt.Errorf("lease %s is stored as %s, epoch %d, revoked %t (%v), and is %s, epoch %d, revoked %t", s.x.name(e.ID), was.State, was.Epoch, was.revoked, err, e.State, e.Epoch, e.revoked)
		}
	}
	for key := range s.stored {
		if strings.HasPrefix(key, RecordPrefix) && !here[key] {
			return fmt.Errorf("%s is stored, and not here", key)
		}
	}
	return nil
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
}

func (s *scriptSite) carry(e grid.Effect, out *grid.Outbox) {
	switch e.Kind {
	case grid.EffectSend:
		m := out.Sends[e.Index]
		s.x.printf("%s -> %s: %s", s.id, m.To, s.x.describe(s.id, m.To, m.Message))
		s.x.flight = append(s.x.flight, scriptMail{s.id, m.To, m.Message})
	case grid.EffectSave:
		r := out.Records[e.Index]
		s.stored[r.RecordKey()] = r.AppendRecord(nil)
		if r, ok := r.(*record); ok {
			s.x.printf("%s: save %s %s until %s", s.id, s.x.name(r.ID), r.State, clock(r.End))
		}
	case grid.EffectDelete:
		delete(s.stored, out.Records[e.Index].RecordKey())
		if r, ok := out.Records[e.Index].(*record); ok {
			s.x.printf("%s: forget %s", s.id, s.x.name(r.ID))
		}
	}
}

// local is what the cores of a site say to each other, and to its owner.
func (s *scriptSite) local(in grid.Input, out *grid.Outbox) {
	x := s.x
	if x.heard != nil {
		x.heard(s, in)
	}
	switch in := in.(type) {
	case *Brought:
		x.printf("%s: job %d starts on %d own processors and on %s", s.id, in.Task.Job.Lo, in.Own, x.leases(append([]Lease{in.Lease}, in.Leases...)))
		return
	case *Lost:
		x.printf("%s: job %d has lost processors, gone at %s, rest %t: %s", s.id, in.Task.Job.Lo, clock(in.Gone), in.Rest, in.Cause)
		return
	case *Unmet:
		x.printf("%s: no lease keeps the deadline of job %d: %s", s.id, in.Task.Job.Lo, in.Reason)
		return
	case *Relinked:
		x.printf("%s: links %v", s.id, s.kin.Links())
		return
	case *Answered:
		x.printf("%s: %s has answered: %s", s.id, in.Site, in.Standing)
		return
	case *Asked:
		x.printf("%s: asked for %s", s.id, x.name(in.ID))
		if s.byHand {
			return
		}
	case *Granted:
		x.printf("%s: granted %s", s.id, x.name(in.ID))
	case *Refused:
		x.printf("%s: refused %s: %s", s.id, x.name(in.ID), in.Reason)
	case *Claimed:
		x.printf("%s: claimed %s", s.id, x.name(in.ID))
	case *Activated:
		x.printf("%s: %s is active", s.id, x.name(in.ID))
	case *Recalled:
		x.printf("%s: recalled %s", s.id, x.name(in.ID))
	case *Vacate:
		x.printf("%s: vacate %s", s.id, x.name(in.ID))
	case *Ended:
		x.printf("%s: ended %s: %s, gone at %s", s.id, x.name(in.ID), in.Cause, clock(in.Gone))
	}
	s.match.Step(x.now, in, out)
}

// hear feeds a message, or the news that it did not arrive, to who speaks it.
func (s *scriptSite) hear(in grid.Input, m grid.Message, out *grid.Outbox) {
	switch m.(type) {
	case *Invite, *Join, *Family:
		if _, arrived := in.(*grid.Delivery); arrived && s.kin != nil {
			s.kin.Step(s.x.now, in, out)
		}
	default:
		s.book.Step(s.x.now, in, out)
	}
}

func (x *script) deliver() {
	if len(x.flight) == 0 {
		return
	}
	m := x.flight[0]
	x.flight = x.flight[1:]
	if s := x.sites[m.to]; !s.down {
		s.turn(func(out *grid.Outbox) { s.hear(&grid.Delivery{From: m.from, Message: m.message}, m.message, out) })
	}
}

// next returns when a site needs a Tick.
func (s *scriptSite) next() grid.Time {
	if s.down {
		return grid.Never
	}
	at := min(s.book.NextTimer(), s.match.NextTimer())
	if s.kin != nil {
		at = min(at, s.kin.NextTimer())
	}
	return at
}

// advance lets time pass.
func (x *script) advance(span grid.Time, deliver bool) {
	until := x.now + span
	for {
		for deliver && len(x.flight) > 0 {
			x.deliver()
		}
		next := until
		for _, s := range x.sites {
			next = min(next, max(s.next(), x.now))
		}
		if next >= until {
			x.now = until
			break
		}
		x.now = max(next, x.now)
		for _, id := range slices.Sorted(maps.Keys(x.sites)) {
			if s := x.sites[id]; s.next() <= x.now {
				s.turn(func(*grid.Outbox) {})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.sites)) {
		if s := x.sites[id]; s.next() <= x.now {
			s.turn(func(*grid.Outbox) {})
		}
	}
	for deliver && len(x.flight) > 0 {
		x.deliver()
	}
}

// recover takes up what a site had stored.
func (s *scriptSite) recover(out *grid.Outbox) {
	var records iter.Seq2[string, []byte] = func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.stored)) {
			if !yield(key, s.stored[key]) {
				return
			}
		}
	}
	s.x.failed(s.book.Recover(s.x.now, records, out))
	if s.kin != nil {
		s.x.failed(s.kin.Recover(s.x.now, records, out))
	}
}

// describe says what a message says.
func (x *script) describe(from, to grid.SiteID, m grid.Message) string {
	ours := func(number uint64) string { return x.name(ID{from, number}) } // from the borrower
	theirs := func(number uint64) string { return x.name(ID{to, number}) }
	switch m := m.(type) {
	case *Request:
		text := fmt.Sprintf("request %s %d processors for %v", ours(m.Number), m.Processors, m.Span)
		if m.Patience > 0 {
			text += fmt.Sprintf(", patience %v, delegations left %d", m.Patience, m.TTL)
		}
		if m.Within > 0 {
			text += fmt.Sprintf(", within %v", m.Within)
		}
		return text
	case *Grant:
		return fmt.Sprintf("grant %s epoch %s, held for %v, source %s, hops %d", theirs(m.Number), x.epoch(to, from, m.Number, m.Epoch), m.Hold, m.Source, m.Hops)
	case *Refuse:
		text := fmt.Sprintf("refuse %s: %s, free %d", theirs(m.Number), m.Reason, m.Free)
		if m.Span > 0 {
			text += fmt.Sprintf(", ready in %v for %v", m.Ready, m.Span)
		}
		return text
	case *Claim:
		return fmt.Sprintf("claim %s epoch %s", ours(m.Number), x.epoch(from, to, m.Number, m.Epoch))
	case *Renew:
		return fmt.Sprintf("renew %s epoch %s, sequence %d", ours(m.Number), x.epoch(from, to, m.Number, m.Epoch), m.Sequence)
	case *Renewed:
		return fmt.Sprintf("renewed %s epoch %s, sequence %d, term %v, limit %v", theirs(m.Number), x.epoch(to, from, m.Number, m.Epoch), m.Sequence, m.Term, m.Limit)
	case *Release:
		return fmt.Sprintf("release %s epoch %s", ours(m.Number), x.epoch(from, to, m.Number, m.Epoch))
	case *Released:
		return fmt.Sprintf("released %s epoch %s: %s", theirs(m.Number), x.epoch(to, from, m.Number, m.Epoch), m.Cause)
	case *Revoke:
		return fmt.Sprintf("revoke %s epoch %s", theirs(m.Number), x.epoch(to, from, m.Number, m.Epoch))
	case *Invite:
		return fmt.Sprintf("invite, above: %v", m.Path)
	case *Join:
		return fmt.Sprintf("join: %s %s", [...]string{"yes", "waits", "no"}[m.Answer], m.Reason)
	case *Family:
		return fmt.Sprintf("family, above: %v, siblings: %v %s", m.Path, m.Siblings, m.Reason)
	}
	return fmt.Sprintf("%T", m)
}

// name returns a lease's short name.
func (x *script) name(id ID) string { return x.short(string(id.Borrower)+"#", id.Number) }

// epoch returns a grant's short name; 0 is none.
func (x *script) epoch(_, lender grid.SiteID, _, epoch uint64) string {
	if epoch == 0 {
		return "none"
	}
	return x.short(string(lender)+".", epoch)
}

func (x *script) short(kind string, number uint64) string {
	key := kind + strconv.FormatUint(number, 10)
	if x.names[key] == "" {
		x.seen[kind]++
		x.names[key] = kind + strconv.Itoa(x.seen[kind])
	}
	return x.names[key]
}

// lease returns the lease that a command names.
func (x *script) lease() ID {
	want := x.arg("lease", "")
	for key, name := range x.names {
		if name == want {
			site, number, _ := strings.Cut(key, "#")
			n, _ := strconv.ParseUint(number, 10, 64)
			return ID{grid.SiteID(site), n}
		}
	}
	x.t.Errorf("%s: no lease %s", x.d.Pos, want)
	return ID{}
}

func (x *script) leases(list []Lease) string {
	var names []string
	for _, l := range list {
		names = append(names, fmt.Sprintf("%d of %s by %s", l.Processors, l.Lender, x.name(l.ID)))
	}
	return strings.Join(slices.Compact(names), ", ")
}

// printf adds a line to the trace, after the instant if it is a new one.
func (x *script) printf(format string, args ...any) {
	if x.now != x.told {
		fmt.Fprintf(&x.trace, "%s\n", clock(x.now))
		x.told = x.now
	}
	fmt.Fprintln(&x.trace, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (x *script) failed(err error) {
	if err != nil {
		x.printf("error: %v", err)
	}
}

func clock(at grid.Time) string {
	return time.Unix(0, 0).UTC().Add(at.Duration()).Format("15:04:05.999")
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
	if err != nil {
		x.t.Fatalf("%s: %v", x.d.Pos, err)
	}
	return v
}

func (x *script) span(key string, def grid.Time) grid.Time {
	v := x.arg(key, "")
	if v == "" {
		return def
	}
	span, err := time.ParseDuration(v)
	if err != nil {
		x.t.Fatalf("%s: %v", x.d.Pos, err)
	}
	return grid.FromDuration(span)
}
