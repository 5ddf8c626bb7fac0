package site

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
)

// network is a few sites whose messages a transcript delivers. What the directory and
// gossip say is delivered at once, and not shown.
type network struct {
	t      *testing.T
	now    grid.Time
	sites  map[grid.SiteID]*node
	order  []grid.SiteID
	flight []message
	quiet  []quietInput // to be given before anything else
	trace  strings.Builder
	token  uint64

	provided map[grid.Key][]grid.SiteID // in the DHT
}

type message struct {
	from, to grid.SiteID
	message  grid.Message
}

type quietInput struct {
	to grid.SiteID
	in grid.Input
}

// node is a site with what its driver keeps for it.
type node struct {
	n       *network
	cfg     Config
	site    *Site // nil while it is down
	life    uint64
	out     grid.Outbox
	records map[string][]byte
	tasks   map[string]grid.Task // that were started, by their names in the transcript
	killed  map[string]string    // why, if they were
}

// start is when a transcript begins; its times count from then.
const start = 1_000_000 * grid.Second

func newNetwork(t *testing.T) *network {
	return &network{t: t, now: start, sites: make(map[grid.SiteID]*node), provided: make(map[grid.Key][]grid.SiteID)}
}

func (n *network) takeTrace() string {
	defer n.trace.Reset()
	if n.trace.Len() == 0 {
		return "nothing\n"
	}
	return n.trace.String()
}

func (n *network) say(format string, args ...any) { fmt.Fprintf(&n.trace, format+"\n", args...) }

func (n *network) add(cfg Config) {
	s := &node{n: n, cfg: cfg, records: make(map[string][]byte), tasks: make(map[string]grid.Task), killed: make(map[string]string)}
	n.sites[cfg.ID] = s
	n.order = append(n.order, cfg.ID)
	s.boot()
	s.step()
}

// boot makes the site, which remembers nothing.
func (s *node) boot() {
	s.life++
	var err error
	if s.site, err = New(s.cfg, s.life); err != nil {
		s.n.t.Fatal(err)
	}
}

// restart starts the site a second later from what it has saved; inputs come before its
// first Tick.
func (s *node) restart(inputs ...grid.Input) {
	s.n.now += grid.Second
	s.boot()
	if err := s.site.Recover(s.n.now, s.stored, &s.out); err != nil {
		s.n.t.Fatal(err)
	}
	s.carryOut()
	s.step(inputs...)
}

// stored yields what the site has saved, in order of the keys, as a store does.
func (s *node) stored(yield func(string, []byte) bool) {
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		if !yield(key, s.records[key]) {
			return
		}
	}
}

// step gives inputs and Ticks, and all that follows quietly.
func (s *node) step(inputs ...grid.Input) {
	if s.site != nil {
		for _, in := range inputs {
			s.site.Step(s.n.now, in, &s.out)
			s.carryOut()
		}
		for range 20 {
			s.site.Step(s.n.now, grid.Tick{}, &s.out)
			s.carryOut()
			s.timed()
			if s.site.NextTimer() > s.n.now {
				break
			}
		}
		if err := errors.Join(Audit(s.n.now, s.site), saved(s.site, s.records)); err != nil {
			s.n.t.Errorf("%s: %v", s.site.cfg.ID, err)
		}
		s.viewed()
	}
	s.n.settle()
}

// timed compares what the site knows of when its parts need a Tick with what they say.
func (s *node) timed() {
	due := s.site.due
	for _, p := range s.site.calm {
		due = min(due, p.nextTimer())
	}
	if at := s.site.NextTimer(); !s.site.unsettled && at != due {
		s.n.t.Errorf("%s needs a Tick at %v, it says, its parts at %v", s.cfg.ID, at, due)
	}
}

// viewed compares what users see of a site with what a recount gives.
func (s *node) viewed() {
	site, t := s.site, s.n.t
	want := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %s: %v, want %v", s.cfg.ID, what, got, want)
		}
	}
	jobs := make(map[Count]int64)
	guests := 0
	site.Jobs(func(v View) bool {
		glance, known := site.Glance(v.Job.ID)
		whole, there := site.Job(v.Job.ID)
		want("a glance at a job", []any{known, glance.State, glance.Site}, []any{there, whole.State, whole.Site})
		jobs[Count{State: v.State, Foreign: v.Foreign}]++
		if v.Foreign && !v.State.Terminal() {
			guests++
		}
		return true
	})
	counts, _ := site.Census()
	for _, c := range counts {
		want(fmt.Sprintf("jobs that are %s, foreign %t", c.State.name(), c.Foreign), c.Jobs, jobs[Count{State: c.State, Foreign: c.Foreign}])
		delete(jobs, Count{State: c.State, Foreign: c.Foreign})
	}
	want("jobs that nobody counts", jobs, map[Count]int64{})
	var totals lease.Totals
	for _, l := range site.Leases() {
		switch {
		case l.State == lease.Requested:
		case l.Lent && l.Via == 0 && l.State == lease.Held:
			totals.Held += l.Processors
		case l.Lent && l.Via == 0:
			totals.Lent += l.Processors
		case !l.Lent && (l.State == lease.Claiming || l.State == lease.Active):
			totals.Borrowed += l.Processors
		}
		if l.Lent && l.State != lease.Requested && site.guests != nil {
			guests++
		}
		if of, has := site.PilotOf(l.Borrower, l.Key); l.Lent && l.Via == 0 && l.State == lease.Active {
			want("the lease of a pilot", []any{has, site.Pilot(l.Epoch), of.ID}, []any{true, true, l.ID})
		}
	}
	relayed := site.LeaseTotals().Relayed
	totals.Borrowed, totals.Relayed = totals.Borrowed-relayed, relayed
	want("processors of leases", site.LeaseTotals(), totals)
	if site.guests != nil {
		want("guests", len(site.Guests()), guests)
	}
	if held := site.Held(); held < len(site.Leases()) {
		t.Errorf("%s holds %d and has %d leases", s.cfg.ID, held, len(site.Leases()))
	}
	if idle := site.Idle(s.n.now); idle < 0 || idle > site.Total() || site.Wait(s.n.now, site.Total()+1, 1) != grid.Never {
		t.Errorf("%s has %d idle processors of %d", s.cfg.ID, idle, site.Total())
	}
	of := CoresOf(site)
	want("the parts that watchers see", []bool{of.Book != nil, of.Home != nil, of.Market != nil, of.Directory != nil, of.Head != nil},
		[]bool{site.loans != nil, site.gangs != nil, site.placing != nil, site.quotes != nil, site.packing != nil})
	for _, id := range s.n.order {
		if got := site.SiteName(id); got != s.n.sites[id].cfg.Name {
			t.Errorf("%s calls %s %q", s.cfg.ID, id, got)
		}
	}
}

// settle gives the quiet inputs.
func (n *network) settle() {
	for len(n.quiet) > 0 {
		next := n.quiet[0]
		n.quiet = n.quiet[1:]
		if s := n.sites[next.to]; s != nil {
			s.step(next.in)
		}
	}
}

// advance lets time pass; messages are delivered at once if deliver is set.
func (n *network) advance(span grid.Time, deliver bool) {
	until := n.now + span
	for {
		next := grid.Never
		for _, id := range n.order {
			if s := n.sites[id]; s.site != nil {
				next = min(next, s.site.NextTimer())
			}
		}
		if next > until {
			break
		}
		n.now = max(n.now, next)
		for _, id := range n.order {
			if s := n.sites[id]; s.site != nil && s.site.NextTimer() <= n.now {
				s.step()
			}
		}
		for deliver && len(n.flight) > 0 {
			n.deliver(0)
		}
	}
	n.now = until
}

// holders returns the sites that keep cells of the directory.
func (n *network) holders() (ids []grid.SiteID) {
	for _, id := range n.order {
		if s := n.sites[id]; s.cfg.Parts == 0 || s.cfg.Parts.has(Quotes|Gossip) {
			ids = append(ids, id)
		}
	}
	return ids
}

// deliver delivers one of the messages under way.
func (n *network) deliver(i int) {
	if len(n.flight) == 0 {
		n.say("no message is under way")
		return
	}
	m := n.flight[i]
	n.flight = slices.Delete(n.flight, i, i+1)
	n.sites[m.to].step(&grid.Delivery{From: m.from, Message: m.message})
}

// carryOut carries effects out and writes them down.
func (s *node) carryOut() {
	n, id := s.n, s.cfg.ID
	for _, e := range s.out.Effects {
		switch e.Kind {
		case grid.EffectSend, grid.EffectPublish:
			send := s.out.Sends[e.Index]
			s.send(e.Kind, send.To, send.Message)
		case grid.EffectSave, grid.EffectDelete:
			s.store(e.Kind, s.out.Records[e.Index])
		case grid.EffectStart:
			task := s.out.Tasks[e.Index]
			name := taskName(task.ID)
			s.tasks[name] = task
			delete(s.killed, name)
			n.say("%v %s: start %s%s", n.now-start, id, name, describeTask(&task))
		case grid.EffectKill:
			task := s.out.Tasks[e.Index]
			if name := taskName(task.ID); s.killed[name] == "" { // what ended it is what was said first
				s.killed[name] = task.Cause
			}
			n.say("%v %s: kill %s: %s", n.now-start, id, taskName(task.ID), task.Cause)
		case grid.EffectClosest:
			n.quiet = append(n.quiet, quietInput{id, &grid.Closest{Key: s.out.Keys[e.Index], Peers: n.holders()}})
		case grid.EffectProvide:
			key := s.out.Keys[e.Index]
			n.provided[key] = append(n.provided[key], id)
			n.quiet = append(n.quiet, quietInput{id, &grid.Provided{Key: key, Stored: true}})
		case grid.EffectProviders:
			key := s.out.Keys[e.Index]
			peers := slices.DeleteFunc(slices.Clone(n.provided[key]), func(p grid.SiteID) bool { return p == id })
			n.quiet = append(n.quiet, quietInput{id, &grid.Providers{Key: key, Peers: slices.Compact(slices.Sorted(slices.Values(peers)))}})
		case grid.EffectProbe:
			n.quiet = append(n.quiet, quietInput{id, &grid.Probed{To: s.out.Probes[e.Index], RoundTrip: 10 * grid.Millisecond}})
		case grid.EffectTell:
			ev := s.out.Events[e.Index]
			n.say("%v %s: tell job %d %v%s", n.now-start, id, ev.Job.ID.Lo, ev.Kind, optional(" at ", string(ev.Site))+optional(": ", ev.Text))
		case grid.EffectAnswer:
			n.say("%v %s: answer %s", n.now-start, id, describeAnswer(s.out.Answers[e.Index].Value))
		}
	}
	s.out.Reset()
}

func (s *node) send(kind grid.EffectKind, to grid.SiteID, m grid.Message) {
	n, id := s.n, s.cfg.ID
	if kind == grid.EffectPublish {
		for _, other := range n.order {
			if other != id {
				n.quiet = append(n.quiet, quietInput{other, &grid.Delivery{From: id, Message: m}})
			}
		}
		return
	}
	if m.MessageKind() >= wire.DirectoryPublish && m.MessageKind() <= wire.DirectoryReported {
		n.quiet = append(n.quiet, quietInput{to, &grid.Delivery{From: id, Message: m}})
		return
	}
	n.say("%v %s->%s %s", n.now-start, id, to, describe(m))
	n.flight = append(n.flight, message{id, to, m})
}

func (s *node) store(kind grid.EffectKind, r grid.Record) {
	what, _, _ := strings.Cut(r.RecordKey(), "/")
	e, isJob := r.(*entry)
	if isJob {
		what = fmt.Sprintf("job %d", e.job.ID.Lo)
	}
	if kind == grid.EffectDelete {
		delete(s.records, r.RecordKey())
		s.n.say("%v %s: delete %s", s.n.now-start, s.cfg.ID, what)
		return
	}
	s.records[r.RecordKey()] = r.AppendRecord(nil)
	if isJob {
		what += fmt.Sprintf(" %v, epoch %d", e.state, e.epoch)
	}
	s.n.say("%v %s: save %s", s.n.now-start, s.cfg.ID, what)
}

// taskName is how a transcript calls a task: its job and epoch.
func taskName(id grid.TaskID) string {
	if _, yes := IsPilot(id); yes {
		return "pilot"
	}
	if _, yes := fee.IsFee(id); yes {
		return "lease"
	}
	return fmt.Sprintf("%d.%d", id.Job.Lo, id.Epoch)
}

func describeTask(t *grid.Task) string {
	switch {
	case t.Gang != nil:
		var parts []string
		for _, p := range t.Gang.Parts {
			parts = append(parts, fmt.Sprintf("%d@%s", p.Processors, p.Site))
		}
		text := fmt.Sprintf(" as a gang of %s for %v", strings.Join(parts, ", "), t.Limit)
		if t.Bring > 0 {
			text += fmt.Sprintf(", after %v at most to bring files", t.Bring)
		}
		return text
	case t.Job == nil:
		return fmt.Sprintf(" for %s for %v", t.Pilot.Site, t.Limit)
	case t.Pilot.Site != "":
		return fmt.Sprintf(" on %d processors of %s for %v", t.Job.Processors, t.Pilot.Site, t.Limit)
	}
	text := fmt.Sprintf(" on %d processors for %v", t.Job.Processors, t.Limit)
	if len(t.GPUs) > 0 {
		text += " with " + strings.Join(t.GPUs, ", ")
	}
	return text
}

// describe says of a message what a transcript is about.
func describe(m grid.Message) string {
	text := wire.KindName(m.MessageKind())
	switch m := m.(type) {
	case *market.Negotiate:
		return fmt.Sprintf("%s %s, %d processors%s", text, taskName(m.Task), m.Processors, optional(", pays from ", string(m.Bank)))
	case *market.Reply:
		if m.Refusal != market.Granted {
			return fmt.Sprintf("%s %s: %v", text, taskName(m.Task), m.Refusal)
		}
		return fmt.Sprintf("%s %s: for at most %v, from %v to %v", text, taskName(m.Task), m.Cost, m.Start, m.Finish)
	case *market.JobSubmission:
		return fmt.Sprintf("%s %d.%d%s", text, m.Job.ID.Lo, m.Epoch, yes(", with a cheque", m.Cheque != nil))
	case *market.JobCompletion:
		return fmt.Sprintf("%s %s, exit code %d%s", text, taskName(m.Task), m.ExitCode, optional(", ", m.Reason)+yes(", abandoned", m.Abandoned))
	case *market.Acknowledge:
		return fmt.Sprintf("%s %s of %s%s", text, taskName(m.Task), wire.KindName(m.Of), yes(", unknown", m.Unknown)+yes(", with an agreement", m.Agreement != nil))
	case *market.Cancel:
		return fmt.Sprintf("%s %s%s", text, taskName(m.Task), optional(": ", m.Cause))
	case *lease.Request:
		return fmt.Sprintf("%s %d processors for %v%s%s", text, m.Processors, m.Span, optional(", pays from ", string(m.Bank)), amount(" at most ", m.Most))
	case *lease.Grant:
		return fmt.Sprintf("%s for %v, held for %v%s", text, m.Span, m.Hold, amount(", price ", m.Price))
	case *lease.Refuse:
		return fmt.Sprintf("%s: %v%s", text, m.Reason, amount(", ", m.Price))
	case *lease.Released:
		return fmt.Sprintf("%s: %v", text, m.Cause)
	case *bank.Draw:
		return fmt.Sprintf("%s %s: %v for %s%s", text, taskName(m.Task), m.Ceiling, m.Payee, yes(", withdrawn", m.Withdrawn))
	case *bank.Drawn:
		if m.Cheque == nil {
			return fmt.Sprintf("%s %s: refused (%v)", text, taskName(m.Task), m.Refusal)
		}
		return fmt.Sprintf("%s %s: a cheque over %v", text, taskName(m.Task), m.Cheque.Ceiling)
	case *bank.Redeemed:
		return fmt.Sprintf("%s %s: %v", text, taskName(m.Task), m.Paid)
	case *bank.Settled:
		return fmt.Sprintf("%s %s: %v", text, taskName(m.Task), m.Paid)
	case *fee.Advances:
		return fmt.Sprintf("%s: %v", text, m.Refusal)
	case *fee.Bill:
		if m.Claim != nil {
			return fmt.Sprintf("%s: %v", text, m.Claim.Amount)
		}
	case *fee.Agreed:
		if m.Agreement != nil {
			return fmt.Sprintf("%s: %v", text, m.Agreement.Amount)
		}
	}
	return text
}

func describeAnswer(v any) string {
	switch v := v.(type) {
	case *Submitted:
		return fmt.Sprintf("submitted job %d%s%s", v.ID.Lo, yes(", known", v.Known), failure(v.Err))
	case *Cancelled:
		return "cancelled" + optional(", now ", v.State.name()) + failure(v.Err)
	case *PriceSet:
		return fmt.Sprintf("price %v, before %v%s", v.Price, v.Before, failure(v.Err))
	case *LeaseAnswer:
		return fmt.Sprintf("lease: %d processors, %v%s", v.Lease.Processors, v.Lease.State, failure(v.Err))
	case *GuestsChanged:
		return fmt.Sprintf("guests: %d jobs, %d leases%s", v.Jobs, v.Leases, failure(v.Err))
	case *dataset.Held:
		return "data set" + failure(v.Err)
	case *LinkAnswer:
		return fmt.Sprintf("link to %s: %v%s", v.Link.Site, v.Link.Standing, failure(v.Err))
	case *market.PreviewResult:
		return fmt.Sprintf("preview%s%s", yes(", waits", v.Waits), failure(v.Err)) + verdicts(v.Verdicts)
	case *directory.Found:
		var offers []string
		for i := range v.Quotes {
			q := &v.Quotes[i]
			offers = append(offers, fmt.Sprintf("%s at %v, %d free", q.Site, q.Price, q.Free))
		}
		return "found " + strings.Join(offers, "; ") + failure(v.Err)
	}
	return "something"
}

func verdicts(list []market.Verdict) (text string) {
	for i := range list {
		text += fmt.Sprintf("; %s %v%s", list[i].Site, list[i].Outcome, optional(", ", list[i].Detail))
	}
	return text
}

// name is the state's name; empty for none.
func (s State) name() string { return stateNames[s] }

func failure(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func optional(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// amount prints what is charged, nothing if nothing is.
func amount(before string, price grid.Price) string {
	if price == 0 {
		return ""
	}
	return before + price.String()
}

func yes(text string, is bool) string {
	if !is {
		return ""
	}
	return text
}
