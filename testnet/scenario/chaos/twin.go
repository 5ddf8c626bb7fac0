package chaos

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/after"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/forge"
	"gridnode/testnet/scenario/chaos/liar"
)

// twinWatch looks now and then, after a turn of a site, at what would come up if its daemon
// died at that instant (R-5, J-1): its records are what it is (site.AuditRecords), and whatever
// others or users have been told is in them, and nothing that is over is. A daemon that really
// dies shows only some of what it has lost, and later.
type twinWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	books  *books
	quotes *forge.Publications
	config func(at int) site.Config // what a site is told
	roster *roster                  // nil: the federation is open
	pcg    *rand.PCG
	read   int64 // records, in all looks
	lies   int64 // number of the event from which on the next twin is lied to
	plays  int64 // … the next one of a site that heads others shares jobs out
	echoes int64 // … the next one hears again what it was told
	heard  map[int][]liar.Heard
	at     int // the site that is looked at

	said  [1 << 8]int64     // by kind of message: the next event from which on who says one is looked at
	says  map[int]bool      // sites that have said one in this turn
	ahead [1 << 8]int64     // by kind: … from which on who is told one hears it wrong first
	wrong map[int][]foreign // by site that has said one in this turn

	// Of each site, the records of jobs that were over as it was looked at, and saved as that:
	// they are not read again before the end.
	over map[int]map[string]bool

	decided  map[grid.TaskID]bool // decisions that were saved as they were made, and whether as one that has started
	deciding bool                 // one was made in this turn, and components are being claimed
}

// twinChance is of how many turns of a million one is looked at, as long as the looks have not
// read more than one record for so many events: large sites would take most of the time. Those
// in which it is decided to claim components are all: claiming takes less than a second.
const (
	twinChance = 4000
	twinEvents = 16
	lieEvents  = 40_000 // after which a twin is lied to: that takes as long as many looks
	echoEvents = 4000   // … hears again what it was told
	saidEvents = 12_000 // after which who says something of a kind is looked at
	tellEvents = 40_000 // … who is told something of a kind hears it wrong first
)

// foreign is what another site is told.
type foreign struct {
	at int
	m  grid.Message
}

func watchTwins(n *testnet.Network, c *testnet.Checker, books *books, quotes *forge.Publications, roster *roster, config func(at int) site.Config) *twinWatch {
	w := &twinWatch{n: n, checks: c, books: books, quotes: quotes, roster: roster, config: config, pcg: draw.PCG(n.Seed(), "twins", draw.ForFaults), over: make(map[int]map[string]bool), decided: make(map[grid.TaskID]bool), heard: make(map[int][]liar.Heard), says: make(map[int]bool), wrong: make(map[int][]foreign)}
	w.lies = int64(draw.Uniform(w.pcg, lieEvents))
	n.Observe(testnet.Observer{Turn: w.turn, Send: w.send, Fault: func(_ grid.Time, f *testnet.Fault) {
		if f.Kind == testnet.FaultOld {
			delete(w.over, f.Sites[0])
		}
	}})
	return w
}

// turn looks at a site, by chance.
func (w *twinWatch) turn(now grid.Time, at int) {
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	if err := w.promises(at, s); err != nil {
		w.checks.Violated("%s would not come up as it is: %w", w.n.ID(at), err)
	}
	if err := w.tell(now, at); err != nil {
		w.checks.Violated("%w", err)
	}
	says := w.says[at]
	delete(w.says, at)
	if !draw.Chance(w.pcg, twinChance) && !w.deciding && !says {
		return
	}
	if err := site.AuditRecords(s, w.n.Saved(at)); err != nil {
		w.checks.Violated("%s has not saved what it is: %w", w.n.ID(at), err)
	}
	if w.deciding || w.read*twinEvents <= w.n.Events() {
		w.needed(at, s)
		w.read += int64(max(w.n.Records(at)-len(w.over[at]), 1))
		if err := w.compare(now, at, s); err != nil {
			w.checks.Violated("%s would not come up as it is: %w", w.n.ID(at), err)
		}
	}
}

// compare returns what a site has not saved, or not forgotten.
func (w *twinWatch) compare(now grid.Time, at int, s *site.Site) error {
	core, err := w.n.Twin(at, w.over[at])
	if err != nil {
		return err
	}
	w.at = at
	twin := scenario.SiteOf(core)
	for _, differ := range []func(s, twin *site.Site) error{w.lists, w.jobs, w.leases(w.n.Clock(at).Local(now)), w.claims, w.money} {
		if err := differ(s, twin); err != nil {
			return err
		}
	}
	if err := w.strays(now, twin); err != nil {
		return err
	}
	events := w.n.Events()
	if cfg := w.config(w.at).Heads; len(cfg.Members) > 0 && events >= w.plays {
		w.plays = events + lieEvents
		return w.lie(now, twin, &cfg)
	}
	if events >= w.lies {
		w.lies = events + lieEvents
		return w.lie(now, twin, nil)
	}
	if events >= w.echoes {
		w.echoes = events + echoEvents
		return w.echo(now, twin)
	}
	if err := w.kept(now, twin); err != nil {
		return err
	}
	if err := w.waits(now, twin); err != nil {
		return err
	}
	return w.others(now, twin)
}

// waits has the first turn of the twin pass: jobs of others that wait there, of whose lease it
// knows nothing since, wait on until their homes speak of them (J-3, J-5).
func (w *twinWatch) waits(now grid.Time, twin *site.Site) error {
	local := w.n.Clock(w.at).Local(now)
	list := forge.Jobs(twin, func(v *site.View) bool {
		return v.Foreign && v.State == site.Queued && v.Award.Lease > 0 && belongs(twin, v.Job.Home, local+1) && !twin.Desk().Outcasts().Has(v.Job.Home)
	})
	if len(list) == 0 {
		return nil
	}
	twin.Step(local, grid.Tick{}, new(grid.Outbox))
	for i := range list {
		if v, there := twin.Glance(list[i].Job.ID); !there || v.State != site.Queued {
			return fmt.Errorf("job %s of %s waits there, and would not: %t, %s", list[i].Job.ID, list[i].Job.Home, there, v.State)
		}
	}
	return nil
}

// others tells the twin, for each job whose components are claimed or run, of a part of another
// execution of it, as one may run of which an older copy of a store knows nothing: that is ended,
// and when it has ended what the present one has stays as it is (J-4, A-1).
func (w *twinWatch) others(now grid.Time, twin *site.Site) error {
	local := w.n.Clock(w.at).Local(now)
	cores := site.CoresOf(twin)
	var ids []grid.TaskID
	for task := range cores.Coordinator.Decisions {
		ids = append(ids, grid.TaskID{Job: task.Job, Epoch: task.Epoch + 1})
	}
	if len(ids) == 0 {
		return nil
	}
	slices.SortFunc(ids, grid.TaskID.Compare)
	for _, id := range ids {
		var out grid.Outbox
		twin.Step(local, &site.Adopted{ID: grid.SquadTask(id, 0), Start: local}, &out)
		if !slices.ContainsFunc(out.Tasks, func(t grid.Task) bool { return t.ID == id }) {
			return fmt.Errorf("it would let a part of job %s, epoch %d, go on, which has another one", id.Job, id.Epoch)
		}
	}
	twin.Step(local, grid.Tick{}, new(grid.Outbox)) // it knows of all that runs
	for _, id := range ids {
		before := hold(&cores, id.Job)
		twin.Step(local, &grid.TaskEnded{ID: id, Lost: true}, new(grid.Outbox))
		if after := hold(&cores, id.Job); !slices.EqualFunc(before, after, bytes.Equal) {
			return fmt.Errorf("when a part of another execution of job %s has ended, what the present one has is %q, and was %q", id.Job, after, before)
		}
	}
	return nil
}

// hold returns what is saved of the claims of a job: the decision, if there is one, and what is
// claimed at home.
func hold(cores *site.Cores, job grid.JobID) (list [][]byte) {
	for l := range cores.Home.Each {
		if l.Subject == job {
			list = append(list, fmt.Appendf(nil, "%d processors at home: %v", l.Processors, l.State))
		}
	}
	slices.SortFunc(list, bytes.Compare)
	if r := cores.Coordinator.Decision(job); r != nil {
		list = append(list, r.AppendRecord(nil))
	}
	return list
}

// lie tries what the twin falls for (package liar), or, if its site heads others and heads says so,
// what it makes of jobs for them. It is of no other use from then on.
func (w *twinWatch) lie(now grid.Time, twin *site.Site, heads *site.HeadsConfig) error {
	t, first, runs := w.meet(now, twin)
	if len(t.Then) < 2 {
		return nil
	}
	if own := w.books.own[w.at]; own != nil {
		if err := t.Books(own.open(t.ID, t.Now, 2), twin.Desk().Outcasts().Has); err != nil {
			return err
		}
	}
	if t.Bank = twin.Desk().Bank(); twin.Desk().Outcasts().Has(t.Bank) {
		t.Bank = ""
	}
	if heads != nil {
		return t.Head(heads)
	}
	tries := []func() error{t.Provider, t.Lender, t.Renewals, t.Borrower, t.Home, func() error { return anew(&t, &runs) }, func() error { return w.flood(&t) }}
	if w.roster != nil {
		tries = append(tries, func() error { return t.Rights(w.roster.poor) })
	}
	if away, some := forge.Chosen(forge.Jobs(twin, func(v *site.View) bool {
		return v.State == site.Awarded && v.Award.Cost > 0 && slices.Contains(t.Then, v.Award.Site)
	}), t.Base>>8); some {
		tries = append(tries, func() error { return t.Meter(&away) })
	}
	for i := range tries {
		if err := tries[(i+first)%len(tries)](); err != nil {
			return err
		}
	}
	if err := t.Repeats(); err != nil { // last, as time passes
		return err
	}
	if err := t.Receipts(); err != nil {
		return err
	}
	return t.Prolong()
}

// meet has the first turn of a twin pass, in which it learns of one execution for another site that goes
// on, and of the sites that it listens to from then on; first is which of them is asked first.
func (w *twinWatch) meet(now grid.Time, twin *site.Site) (t liar.Twin, first int, runs site.View) {
	t = liar.Twin{Site: twin, ID: w.n.ID(w.at), Now: w.n.Clock(w.at).Local(now), Base: uint64(now) << 8}
	s, _ := scenario.SiteAt(w.n, w.at) // the twin knows only that the job was begun
	runs, some := forge.Chosen(forge.Jobs(twin, func(v *site.View) bool {
		is, there := s.Glance(v.Job.ID)
		return v.Foreign && !v.State.Terminal() && there && is.State == site.Running && is.Epoch == v.Epoch
	}), t.Base>>8)
	if some { // as at a start it is said first what runs still
		twin.Step(t.Now, &site.Adopted{ID: grid.TaskID{Job: runs.Job.ID, Epoch: runs.Epoch}, Start: t.Now}, new(grid.Outbox))
	}
	first = int(draw.Uniform(w.pcg, uint64(w.n.Len())))
	for i := range w.n.Len() {
		at := (first + i) % w.n.Len()
		if w.roster != nil && at != w.at && w.roster.member(at, 0) {
			twin.Step(t.Now, &member.Introduce{Member: w.roster.latest[at]}, new(grid.Outbox))
		}
		if id := w.n.ID(at); at != w.at && belongs(twin, id, t.Now+lieLasts) && !twin.Desk().Outcasts().Has(id) {
			t.Then = append(t.Then, id)
		}
	}
	twin.Step(t.Now, grid.Tick{}, new(grid.Outbox)) // what is due anyway is no effect of a lie
	return t, first, runs
}

// echo has the twin hear once more what its site was told lately.
func (w *twinWatch) echo(now grid.Time, twin *site.Site) error {
	t, _, _ := w.meet(now, twin)
	if len(t.Then) < 2 {
		return nil
	}
	return t.Echo(w.heard[w.at], w.stored)
}

// stored returns what the site that is looked at has saved under a key.
func (w *twinWatch) stored(key string) []byte { return testnet.SavedRecord(w.n, w.at, key) }

// tell has the twins of sites to which one has just said something hear it wrong before they hear it.
func (w *twinWatch) tell(now grid.Time, from int) error {
	list := w.wrong[from]
	delete(w.wrong, from)
	for _, f := range list {
		s, up := scenario.SiteAt(w.n, f.at)
		if !up || w.roster.out(f.at) || w.roster.out(from) {
			continue
		}
		w.needed(f.at, s)
		core, err := w.n.Twin(f.at, w.over[f.at])
		if err != nil {
			return err
		}
		w.at = f.at
		t, _, _ := w.meet(now, scenario.SiteOf(core))
		if len(t.Then) < 2 || !slices.Contains(t.Then, w.n.ID(from)) {
			continue
		}
		if err := t.Ahead(liar.Heard{From: w.n.ID(from), Message: f.m}, w.stored); err != nil {
			return fmt.Errorf("%s: %w", w.n.ID(f.at), err)
		}
	}
	return nil
}

// send notes who says something of a kind that was not looked at for long, and what a site is told that
// can be said again, the latest of each kind.
func (w *twinWatch) send(_ grid.Time, from int, to grid.SiteID, m grid.Message) {
	kind, events := m.MessageKind(), w.n.Events()
	if events >= w.said[kind] {
		w.said[kind], w.says[from] = events+saidEvents, true
	}
	at, known := w.n.Index(to)
	if !known || !liar.Repeatable(m) {
		return
	}
	if events >= w.ahead[kind] {
		w.ahead[kind] = events + tellEvents
		w.wrong[from] = append(w.wrong[from], foreign{at, m})
	}
	list, is := w.heard[at], liar.Heard{From: w.n.ID(from), Message: m}
	for i := range list {
		if list[i].Message.MessageKind() == m.MessageKind() {
			list[i] = is
			return
		}
	}
	w.heard[at] = append(list, is)
}

// lieLasts is how long a lie lasts at most on the clock of the twin, which may run ahead of others.
const lieLasts = 10 * grid.Minute

// belongs reports whether another site is a member until an instant of the twin's clock.
func belongs(twin *site.Site, id grid.SiteID, until grid.Time) bool {
	if twin.Roll() == nil {
		return true
	}
	m := twin.Roll().Member(id)
	return m != nil && until < m.Expires
}

// anew has a job come again that runs at the twin.
func anew(t *liar.Twin, runs *site.View) error {
	if runs.Job == nil || !slices.Contains(t.Then, runs.Job.Home) {
		return nil
	}
	return t.Anew(runs)
}

// flood gives the twin more than it may keep.
func (w *twinWatch) flood(t *liar.Twin) error {
	if most := w.config(w.at).Coallocation.Queue.Max; most > 0 { // else too many to be tried
		if err := t.Queue(most); err != nil {
			return err
		}
	}
	if p, there := forge.Chosen(w.quotes.To(w.at), t.Base>>8); there {
		if err := t.Ask(p.Quote); err != nil {
			return err
		}
		if err := t.Scan(&p.Publish); err != nil {
			return err
		}
		return t.Directory(&p.Publish)
	}
	return nil
}

// strays tells the twin of an execution of no job, and of one of a job that is over: it has
// to end them (J-3).
func (w *twinWatch) strays(now grid.Time, twin *site.Site) error {
	ids := []grid.TaskID{{Job: grid.JobID{Hi: forge.Mark, Lo: uint64(now)}, Epoch: 1}}
	var over *site.View // the first, by its ID: they come in no order
	twin.Jobs(func(v site.View) bool {
		if v.State.Terminal() && (over == nil || v.Job.ID.Compare(over.Job.ID) < 0) {
			over = &v
		}
		return true
	})
	if over != nil {
		ids = append(ids, grid.TaskID{Job: over.Job.ID, Epoch: over.Epoch})
	}
	local := w.n.Clock(w.at).Local(now)
	for _, id := range ids {
		var out grid.Outbox
		twin.Step(local, &site.Adopted{ID: id, Start: local}, &out)
		if !slices.ContainsFunc(out.Tasks, func(t grid.Task) bool { return t.ID == id }) {
			return fmt.Errorf("it would let an execution of job %s, epoch %d, go on, for which nobody waits", id.Job, id.Epoch)
		}
	}
	return nil
}

// kept has sites say that they have executions of a job of the twin that it does not count on.
func (w *twinWatch) kept(now grid.Time, twin *site.Site) error {
	away, some := forge.Chosen(forge.Jobs(twin, func(v *site.View) bool {
		return !v.Foreign && v.State == site.Awarded && v.Award.Site != w.n.ID(w.at)
	}), uint64(now))
	if !some {
		return nil
	}
	t := liar.Twin{Site: twin, ID: w.n.ID(w.at), Now: w.n.Clock(w.at).Local(now)}
	for i := range w.n.Len() {
		if i != w.at {
			t.Then = append(t.Then, w.n.ID(i))
		}
	}
	return t.Keeping(&away)
}

// needed has those jobs read again that are over and that others wait for: with them these
// would come up in another state.
func (w *twinWatch) needed(at int, s *site.Site) {
	over := w.over[at]
	if len(over) == 0 {
		return
	}
	s.Jobs(func(v site.View) bool {
		if t := v.Job.Terms; t != nil && !v.State.Terminal() {
			for _, d := range t.After {
				delete(over, site.RecordPrefix+d.Job.String())
			}
		}
		return true
	})
}

// atRest looks once more at all sites, and at all that they have saved.
func (w *twinWatch) atRest() error {
	clear(w.over)
	w.lies, w.plays, w.echoes = math.MaxInt64, math.MaxInt64, math.MaxInt64 // there is nothing left to be had
	for at := range w.n.Len() {
		if s, up := scenario.SiteAt(w.n, at); up {
			if err := cmp.Or(site.AuditRecords(s, w.n.Saved(at)), w.compare(w.n.Now(), at, s)); err != nil {
				return fmt.Errorf("invariant violated: %s would not come up as it is: %w", w.n.ID(at), err)
			}
		}
	}
	return nil
}

// jobs compares the jobs, and how often each was placed.
func (w *twinWatch) jobs(s, twin *site.Site) (err error) {
	over := w.over[w.at]
	if over == nil {
		over = make(map[string]bool)
		w.over[w.at] = over
	}
	count := 0
	s.Jobs(func(v site.View) bool {
		key := site.RecordPrefix + v.Job.ID.String()
		if over[key] {
			if !v.State.Terminal() {
				err = fmt.Errorf("its job %s, which was over, is %s", v.Job.ID, v.State)
			}
			return err == nil
		}
		count++
		t, there := twin.Glance(v.Job.ID)
		switch {
		case !there:
			err = fmt.Errorf("its job %s, which is %s, is not saved", v.Job.ID, v.State)
		case t.Epoch != v.Epoch:
			err = fmt.Errorf("its job %s has epoch %d, saved is %d", v.Job.ID, v.Epoch, t.Epoch)
		case (v.State.Terminal() || t.State.Terminal() || v.State == site.Cancelling || t.State == site.Cancelling) && v.State != t.State:
			err = fmt.Errorf("its job %s is %s, saved as %s", v.Job.ID, v.State, t.State)
		case v.State == site.Cancelling && v.Reason != t.Reason:
			err = fmt.Errorf("its job %s is %s (%q), saved is %q", v.Job.ID, v.State, v.Reason, t.Reason)
		case (v.WaitsFor == after.Held) != (t.WaitsFor == after.Held):
			err = fmt.Errorf("its job %s is held by its user: %t, saved: %t", v.Job.ID, v.WaitsFor == after.Held, t.WaitsFor == after.Held)
		case v.Award.Site != t.Award.Site || v.Award.Cost != t.Award.Cost && v.Award.Site != w.n.ID(w.at): // at home it moves with the queue
			err = fmt.Errorf("its job %s is at %q for %v, saved is %q, %v", v.Job.ID, v.Award.Site, v.Award.Cost, t.Award.Site, t.Award.Cost)
		case v.State.Terminal() && v.Job.Home == w.n.ID(w.at): // another site's may come again
			over[key] = true
		}
		return err == nil
	})
	twin.Jobs(func(site.View) bool {
		count--
		return true
	})
	if err == nil && count != 0 {
		err = fmt.Errorf("it has %d jobs more than are saved", count)
	}
	return err
}

// promised returns the leases of a site by which others may do something, or it may.
func promised(s *site.Site, now grid.Time) map[lease.ID]lease.Lease {
	list := make(map[lease.ID]lease.Lease)
	for _, v := range s.Leases() {
		switch l := v.Lease; {
		case l.End <= now || l.Limit > 0 && l.Limit <= now: // it is over as soon as anybody looks
		case l.Lent && l.State != lease.Requested, !l.Lent && (l.State == lease.Claiming || l.State == lease.Active):
			list[l.ID] = l
		}
	}
	return list
}

// leases compares what is lent and borrowed.
func (w *twinWatch) leases(now grid.Time) func(s, twin *site.Site) error {
	return func(s, twin *site.Site) error {
		saved := promised(twin, now)
		for id, l := range promised(s, now) {
			t, there := saved[id] // it may give it up at once
			switch {
			case !w.n.HasSaved(w.at, lease.RecordPrefix+string(l.Borrower)+"/"+strconv.FormatUint(l.Number, 10)):
				return fmt.Errorf("lease %d of %s by %s, %v, is not saved", l.Number, l.Borrower, l.Lender, l.State)
			case there && (t.Epoch != l.Epoch || t.Processors != l.Processors || l.Lent && t.State != l.State):
				return fmt.Errorf("lease %d of %s by %s is %+v, saved as %+v", l.Number, l.Borrower, l.Lender, l, t)
			}
		}
		return nil
	}
}

// lists compares what is known to be revoked.
func (w *twinWatch) lists(s, twin *site.Site) error {
	if s.Roll() == nil {
		return nil
	}
	saved := twin.Roll().Revoked().Lists()
	for _, l := range s.Roll().Revoked().Lists() {
		if !slices.ContainsFunc(saved, func(k *member.List) bool { return k.Issuer == l.Issuer && k.Number == l.Number }) {
			return fmt.Errorf("a list of what is revoked, number %d, is not saved", l.Number)
		}
	}
	return nil
}

// endsEarly counts the leases that a site has lent and that end, and are billed, as its twin
// comes up.
func endsEarly(s, twin *site.Site) (n int) {
	state := make(map[lease.ID]lease.State)
	for _, v := range twin.Leases() {
		state[v.ID] = v.State
	}
	for _, v := range s.Leases() {
		if v.Lent && state[v.ID] != v.State {
			n++
		}
	}
	return n
}

// promises checks that what is claimed for components of jobs, and decided, is saved.
func (w *twinWatch) promises(at int, s *site.Site) error {
	w.deciding = false
	cores := site.CoresOf(s)
	for r := range cores.Home.Records {
		if key := r.RecordKey(); !bytes.Equal(testnet.SavedRecord(w.n, at, key), r.AppendRecord(nil)) {
			return fmt.Errorf("a claim at home, %s, is not saved as it is", key)
		}
	}
	for task, started := range cores.Coordinator.Decisions {
		saved, known := w.decided[task]
		if known && saved == started {
			continue
		}
		w.deciding = w.deciding || !started
		if started {
			for _, part := range cores.Coordinator.Claims(task.Job) {
				if l, there := leaseOf(&cores, part.Lease); !there || l.State == lease.Held || l.State == lease.Claiming || l.State == lease.Requested {
					return fmt.Errorf("job %s, epoch %d, has started, and component %d at %s is not claimed: %+v", task.Job, task.Epoch, part.Component, part.Site, l)
				}
			}
		}
		r := cores.Coordinator.Decision(task.Job)
		if w.decided[task] = started; !bytes.Equal(testnet.SavedRecord(w.n, at, r.RecordKey()), r.AppendRecord(nil)) {
			return fmt.Errorf("its decision on job %s, epoch %d (started: %t), is not saved", task.Job, task.Epoch, started)
		}
	}
	return nil
}

// leaseOf returns a lease of a part of a job, at home or elsewhere.
func leaseOf(cores *site.Cores, id lease.ID) (lease.Lease, bool) {
	if cores.Book != nil && !coalloc.Own(id) {
		return cores.Book.Get(id)
	}
	for l := range cores.Home.Each {
		if l.ID == id {
			return *l, true
		}
	}
	return lease.Lease{}, false
}

// claims compares what is claimed for components of jobs, and what is decided, with the
// records of that: a daemon that comes up may give an attempt up at once.
func (w *twinWatch) claims(s, twin *site.Site) error {
	cores, stored := site.CoresOf(s), make(map[grid.TaskID]bool)
	for task, started := range site.CoresOf(twin).Coordinator.Decisions {
		stored[task] = started
	}
	for task, started := range cores.Coordinator.Decisions {
		if was, there := stored[task]; there && was != started {
			return fmt.Errorf("that job %s, epoch %d, has started (%v) is not saved", task.Job, task.Epoch, started)
		}
	}
	return nil
}

// money compares cheques, bills and accounts.
func (w *twinWatch) money(s, twin *site.Site) error {
	desk, stored := s.Desk(), twin.Desk()
	payments, bills := desk.Open()
	if p, b := stored.Open(); p != payments || b != bills {
		return fmt.Errorf("it has %d cheques and %d bills open, saved are %d and %d", payments, bills, p, b)
	}
	_, owed := s.Fees() // what a lease costs that is not paid yet ends with the daemon, and so does the lease
	if _, was := twin.Fees(); was < owed || was > owed+endsEarly(s, twin) {
		return fmt.Errorf("it is owed for %d leases, saved are %d", owed, was)
	}
	books, kept := desk.Ledger(), stored.Ledger()
	if books == nil {
		return nil
	}
	if books.Last() != kept.Last() {
		return fmt.Errorf("its books end with transaction %d, saved is %d", books.Last(), kept.Last())
	}
	for _, id := range books.Sites() {
		is, _ := books.Balance(id)
		if was, _ := kept.Balance(id); is != was {
			return fmt.Errorf("its account of %s is %+v, saved is %+v", id, is, was)
		}
	}
	return nil
}
