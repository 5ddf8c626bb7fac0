package market

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/wire"
)

// network is a small federation in one test: real agents and clusters, a table
// instead of a directory, and messages that a test delivers, drops or copies.
type network struct {
	t      testing.TB
	now    grid.Time // true time
	sites  map[grid.SiteID]*site
	order  []grid.SiteID
	quotes map[grid.SiteID]directory.Quote // as published
	flight []inFlight
	trace  []string
	silent bool // no trace

	gpus   map[grid.SiteID]int64 // of type a100, of sites that are added later
	houses map[grid.SiteID]*house
	late   bool // answers of the directory are given by answerFinds only

	executions map[grid.JobID]int // running now, over all sites
	overlaps   []string
	deaf       bool // directory queries fail
	hashed     bool // quotes of equal value come in the directory's order, not by ID
	finds      int  // answered
	unsure     int  // which of them is not certain
	fills      uint64
}

type inFlight struct {
	from, to grid.SiteID
	message  grid.Message
	at       grid.Time // when it arrives; for the random network
	lost     bool      // on the way, in the random network
	twin     bool      // there is another copy: that one does not arrive is not certain news
}

// site is the least that a node does around its agent.
type site struct {
	net     *network
	cfg     Config
	offset  grid.Time // its clock is ahead by this much
	agent   *Agent
	cluster *lrms.Cluster
	dir     *directory.Directory
	life    uint64
	up      bool
	started []lrms.Request
	outbox  grid.Outbox

	previewed *PreviewResult            // the newest
	refused   *Refused                  // the newest
	fills     map[grid.TaskID]grid.Time // load made by a test: when it ends

	// Durable:
	jobs    map[grid.JobID]*homeJob
	remotes map[grid.JobID]*remoteJob
}

type homeJob struct {
	job       *grid.Job
	epoch     uint32
	state     string // placing, awarded, here, done, refused, cancelled
	award     Award
	cancelled bool
	result    grid.Result
	messages  int32
	run       execution
}

type remoteJob struct {
	job    *grid.Job
	award  Award
	over   bool
	ended  bool // with result; else abandoned
	result grid.Result
	run    execution
}

// execution is a process: it lives through crashes of the site's daemon.
type execution struct {
	alive      bool
	start, end grid.Time // on the site's clock
}

const testEpoch = 1000 * grid.Hour

func newNetwork(t testing.TB) *network {
	return &network{
		t: t, now: testEpoch, sites: map[grid.SiteID]*site{}, quotes: map[grid.SiteID]directory.Quote{},
		executions: map[grid.JobID]int{}, gpus: map[grid.SiteID]int64{}, houses: map[grid.SiteID]*house{},
	}
}

// add starts a site that quotes what cfg says.
func (n *network) add(cfg Config, offset grid.Time) *site {
	cfg.Price = max(cfg.Price, 1) // for tests that do not care
	s := &site{net: n, cfg: cfg, offset: offset, jobs: map[grid.JobID]*homeJob{}, fills: map[grid.TaskID]grid.Time{}, remotes: map[grid.JobID]*remoteJob{}}
	n.sites[cfg.Site] = s
	n.order = append(n.order, cfg.Site)
	s.boot()
	s.publish()
	return s
}

func (s *site) boot() {
	s.life++
	clear(s.fills)
	var devices []gpu.Device
	for i := range s.net.gpus[s.cfg.Site] {
		devices = append(devices, gpu.Device{Name: fmt.Sprint("gpu", i), Type: "a100"})
	}
	pool, err := gpu.New(devices)
	if err != nil {
		s.net.t.Fatal(err)
	}
	cluster, err := lrms.New(lrms.Config{Processors: s.cfg.Processors, GPUs: pool})
	if err != nil {
		s.net.t.Fatal(err)
	}
	s.cluster = cluster
	s.dir = directory.New(directory.Config{Self: s.cfg.Site, Federation: "test"}, rand.New(rand.NewPCG(1, 2)))
	var seed uint64
	for _, c := range string(s.cfg.Site) {
		seed = seed*31 + uint64(c)
	}
	s.agent = New(s.cfg, s.cluster, s.dir, rand.New(rand.NewPCG(seed, s.life)))
	if h := s.net.houses[s.cfg.Site]; h != nil {
		s.agent.UseGuests(h)
	}
	s.up = true
}

// house is the rules of an owner in a test.
type house struct {
	most   int64      // processors of a job
	factor grid.Price // of prices
	until  grid.Time  // by when all is to be over
}

func (h *house) Price(_ grid.SiteID, price grid.Price) grid.Price { return price * h.factor }

func (h *house) Admit(_ grid.Time, _ grid.SiteID, w *Work) bool {
	return h.most == 0 || w.Processors <= h.most
}

func (h *house) Promise(_ grid.Time, _ grid.SiteID, _ *Work, _, end grid.Time) bool {
	return h.until == 0 || end <= h.until
}

func (s *site) clock() grid.Time { return s.net.now + s.offset }

// publish puts the site's live quote into the table.
func (s *site) publish() {
	var scratch grid.Outbox
	s.dir.SetQuote(s.clock(), s.agent.Quote(s.clock()), &scratch)
	q := s.agent.Quote(s.clock())
	if known, ok := s.dir.Known(s.cfg.Site); ok {
		q.Sequence, q.Issued, q.Lifetime = known.Sequence, known.Issued, known.Lifetime
	}
	q.Issued = max(q.Issued, 1)
	s.net.quotes[s.cfg.Site] = q
}

// step gives the agent an input, carries out what it says, and then schedules.
func (s *site) step(in grid.Input) {
	if !s.up {
		return
	}
	s.outbox.Reset()
	s.agent.Step(s.clock(), in, &s.outbox)
	s.settle()
	s.schedule()
	if err := cmp.Or(s.agent.Audit(), AuditTimers(s.clock(), s.agent)); err != nil {
		s.net.t.Fatalf("%s after %T: %v", s.cfg.Site, in, err)
	}
	if !s.net.late {
		s.net.answerFinds(s)
	}
}

// settle carries out the effects of the last step.
func (s *site) settle() {
	out := &s.outbox
	sends, locals := slices.Clone(out.Sends), slices.Clone(out.Locals)
	for _, a := range out.Answers {
		s.answered(a)
	}
	out.Reset()
	for _, m := range sends {
		if _, ours := Protocol.Decoders[m.Message.MessageKind()]; ours {
			s.net.logf("%s->%s %s", s.cfg.Site, m.To, s.net.describe(m.Message))
			s.net.flight = append(s.net.flight, inFlight{from: s.cfg.Site, to: m.To, message: m.Message})
		}
	}
	for _, in := range locals {
		s.local(in)
	}
}

// again runs another step of the agent from within settle.
func (s *site) again(in grid.Input) {
	s.outbox.Reset()
	s.agent.Step(s.clock(), in, &s.outbox)
	s.settle()
}

func (s *site) local(in grid.Input) {
	switch in := in.(type) {
	case *Placed:
		j := s.jobs[in.Job]
		if j == nil || j.epoch != in.Award.Epoch || j.state != "placing" {
			s.net.t.Fatalf("%s: unexpected placed %+v", s.cfg.Site, in)
		}
		j.award, j.messages = in.Award, in.Messages
		j.state = "awarded"
		if in.Award.Site == s.cfg.Site {
			j.state = "here"
		}
		s.net.logf("%s: placed %s at %s cost=%v finish=%v messages=%d", s.cfg.Site, s.net.name(in.Job), in.Award.Site,
			in.Award.Cost, in.Award.Finish-s.clock(), in.Messages)
		s.net.verdicts(in.Verdicts, s.clock())
	case *Refused:
		j := s.jobs[in.Job]
		if j == nil || j.state != "placing" {
			s.net.t.Fatalf("%s: unexpected refused %+v", s.cfg.Site, in)
		}
		j.state, j.messages, s.refused = "refused", in.Messages, in
		s.net.logf("%s: refused %s messages=%d: %s", s.cfg.Site, s.net.name(in.Job), in.Messages, in.Reason)
		s.net.verdicts(in.Verdicts, s.clock())
	case *Accepted:
		if in.Job.Home == s.cfg.Site {
			s.net.t.Fatalf("%s: accepted its own job", s.cfg.Site)
		}
		if old := s.remotes[in.Job.ID]; old != nil { // a later epoch replaces it
			if old.award.Epoch >= in.Award.Epoch {
				s.net.t.Fatalf("%s: accepted epoch %d after %d", s.cfg.Site, in.Award.Epoch, old.award.Epoch)
			}
			s.quit(in.Job.ID, &old.run, grid.TaskID{Job: in.Job.ID, Epoch: old.award.Epoch})
		}
		s.remotes[in.Job.ID] = &remoteJob{job: in.Job, award: in.Award}
		s.net.logf("%s: accepted %s/%d start=%v until=%v", s.cfg.Site, s.net.name(in.Job.ID), in.Award.Epoch,
			in.Award.Start-s.clock(), in.Award.Until-s.clock())
	case *Completed:
		j := s.jobs[in.Task.Job]
		if j == nil || j.epoch != in.Task.Epoch || j.state != "awarded" {
			s.net.t.Fatalf("%s: unexpected completed %+v", s.cfg.Site, in)
		}
		j.state, j.result, j.messages = "done", in.Result, in.Messages
		s.net.logf("%s: completed %s/%d ran=%v exit=%d cost=%v messages=%d", s.cfg.Site, s.net.name(in.Task.Job), in.Task.Epoch,
			in.Result.End-in.Result.Start, in.Result.ExitCode, in.Result.Cost, in.Messages)
	case *Lost:
		s.net.logf("%s: lost %s/%d", s.cfg.Site, s.net.name(in.Task.Job), in.Task.Epoch)
		j := s.jobs[in.Task.Job]
		if j == nil || j.epoch != in.Task.Epoch || j.state != "awarded" {
			s.net.t.Fatalf("%s: unexpected lost %+v", s.cfg.Site, in)
		}
		if j.cancelled {
			j.state = "cancelled"
			return
		}
		j.epoch++
		j.state = "placing"
		s.again(&Place{Job: j.job, Epoch: j.epoch, Messages: in.Messages, Losses: in.Losses})
	case *Delivered:
		s.net.logf("%s: delivered %s/%d", s.cfg.Site, s.net.name(in.Task.Job), in.Task.Epoch)
		if r := s.remotes[in.Task.Job]; r != nil && r.award.Epoch == in.Task.Epoch {
			delete(s.remotes, in.Task.Job)
		}
	case *Revoke:
		s.net.logf("%s: revoke %s/%d: %s", s.cfg.Site, s.net.name(in.Task.Job), in.Task.Epoch, in.Cause)
		r := s.remotes[in.Task.Job]
		if r == nil || r.award.Epoch != in.Task.Epoch || r.over {
			s.net.t.Fatalf("%s: unexpected revoke %+v", s.cfg.Site, in)
		}
		now := s.clock()
		start := now
		if r.run.alive {
			start = r.run.start
		}
		s.quit(in.Task.Job, &r.run, in.Task)
		s.finish(r, grid.Result{Start: start, End: now, ExitCode: 143, Reason: in.Cause})
	case *Belated:
		s.net.logf("%s: belated %s/%d at %s losses=%d", s.cfg.Site, s.net.name(in.Task.Job), in.Task.Epoch, in.Site, in.Losses)
	case *directory.Found: // of the real directory, which knows nobody here
	default:
		s.net.t.Fatalf("%s: unknown local %T", s.cfg.Site, in)
	}
}

// quit ends an execution, or takes it out of the queue.
func (s *site) quit(job grid.JobID, run *execution, task grid.TaskID) {
	if run.alive {
		run.alive = false
		s.net.executions[job]--
		s.cluster.Ended(s.clock(), task)
	} else {
		s.cluster.Cancel(s.clock(), task)
	}
}

// finish records the end of a remote job and reports it.
func (s *site) finish(r *remoteJob, result grid.Result) {
	r.over, r.ended, r.result = true, true, result
	if s.up {
		s.again(&Ended{grid.TaskID{Job: r.job.ID, Epoch: r.award.Epoch}, result})
	}
}

func (s *site) abandon(r *remoteJob) {
	r.over = true
	s.again(&Abandoned{Task: grid.TaskID{Job: r.job.ID, Epoch: r.award.Epoch}})
}

// schedule starts what the cluster allows, as site.Site does at a tick.
func (s *site) schedule() {
	now := s.clock()
	s.started = s.cluster.Schedule(now, s.started[:0])
	for _, request := range slices.Clone(s.started) {
		id := request.ID
		if j := s.jobs[id.Job]; j != nil {
			s.net.begin(s, id.Job, j.job, &j.run)
			continue
		}
		r := s.remotes[id.Job]
		if r == nil {
			s.fills[id] = now + request.Estimate // load that a test made
			continue
		}
		if now.Add(Limit(r.job, s.cfg.Rating)) > r.award.Until {
			s.cluster.Ended(now, id)
			s.abandon(r)
			continue
		}
		s.net.begin(s, id.Job, r.job, &r.run)
	}
}

// begin starts an execution and checks that it is the only one of its job.
func (n *network) begin(s *site, id grid.JobID, job *grid.Job, run *execution) {
	now := s.clock()
	*run = execution{alive: true, start: now, end: now + min(max(job.RunTime, 1), job.EstimateAt(s.cfg.Rating))}
	n.executions[id]++
	if n.executions[id] > 1 {
		n.overlaps = append(n.overlaps, fmt.Sprintf("job %s runs %d times at %v", n.name(id), n.executions[id], n.now))
	}
}

// endDue ends the executions of a site that are due.
func (s *site) endDue() {
	now := s.clock()
	for _, id := range sortedIDs(s.jobs) {
		if j := s.jobs[id]; j.run.alive && j.run.end <= now {
			s.quit(id, &j.run, grid.TaskID{Job: id, Epoch: j.epoch})
			j.state, j.result = "done", grid.Result{Start: j.run.start, End: j.run.end}
		}
	}
	for _, id := range sortedIDs(s.remotes) {
		if r := s.remotes[id]; r.run.alive && r.run.end <= now {
			s.quit(id, &r.run, grid.TaskID{Job: id, Epoch: r.award.Epoch})
			s.finish(r, grid.Result{Start: r.run.start, End: r.run.end, Cost: r.award.Cost})
		}
	}
	for id, end := range s.fills {
		if end <= now && s.up {
			s.cluster.Ended(now, id)
			delete(s.fills, id)
		}
	}
	if s.up {
		s.schedule()
	}
}

func sortedIDs[V any](m map[grid.JobID]V) []grid.JobID {
	ids := make([]grid.JobID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, grid.JobID.Compare)
	return ids
}

// crash stops the daemon; executions go on.
func (s *site) crash() { s.up = false }

// restart brings it back from what is durable, as site.Site.Recover does.
func (s *site) restart() {
	s.boot()
	now := s.clock()
	s.outbox.Reset()
	for _, id := range sortedIDs(s.remotes) {
		r := s.remotes[id]
		task := grid.TaskID{Job: id, Epoch: r.award.Epoch}
		s.agent.Step(now, &Restore{Job: r.job, Award: r.award, Over: r.ended || r.over}, &s.outbox)
		request := lrms.Request{ID: task, Processors: r.job.Processors, Estimate: r.job.EstimateAt(s.cfg.Rating)}
		switch {
		case r.ended:
			s.agent.Step(now, &Ended{task, r.result}, &s.outbox)
		case r.over:
			s.agent.Step(now, &Abandoned{Task: task}, &s.outbox)
		case r.run.alive:
			if err := s.cluster.Adopt(now, request, r.run.start); err != nil {
				s.net.t.Fatal(err)
			}
		default:
			s.requeue(request)
		}
	}
	for _, id := range sortedIDs(s.jobs) {
		j := s.jobs[id]
		request := lrms.Request{ID: grid.TaskID{Job: id, Epoch: j.epoch}, Processors: j.job.Processors, Estimate: j.job.EstimateAt(s.cfg.Rating)}
		switch j.state {
		case "placing":
			s.agent.Step(now, &Place{Job: j.job, Epoch: j.epoch, Messages: j.messages}, &s.outbox)
		case "awarded":
			s.agent.Step(now, &Resume{Job: j.job, Award: j.award, Messages: j.messages}, &s.outbox)
			if j.cancelled {
				s.agent.Step(now, &Stop{id, "cancelled before the restart"}, &s.outbox)
			}
		case "here":
			if !j.run.alive {
				s.requeue(request)
			} else if err := s.cluster.Adopt(now, request, j.run.start); err != nil {
				s.net.t.Fatal(err)
			}
		}
	}
	s.settle()
	s.schedule()
	if !s.net.late {
		s.net.answerFinds(s)
	}
}

func (s *site) requeue(r lrms.Request) {
	if _, err := s.cluster.Reserve(s.clock(), r, grid.Never); err != nil {
		s.net.t.Fatal(err)
	}
	if err := s.cluster.Commit(s.clock(), r.ID); err != nil {
		s.net.t.Fatal(err)
	}
}

// place submits a job at its home.
func (n *network) place(job *grid.Job) {
	s := n.sites[job.Home]
	s.jobs[job.ID] = &homeJob{job: job, epoch: 1, state: "placing"}
	s.step(&Place{Job: job, Epoch: 1})
}

// stop cancels a job at its home.
func (n *network) stop(home grid.SiteID, id grid.JobID) {
	s := n.sites[home]
	j := s.jobs[id]
	j.cancelled = true
	s.step(&Stop{id, "its user changed his mind"})
}

// answerFinds answers all directory queries under way at a site.
func (n *network) answerFinds(s *site) {
	for {
		var open []*placement
		for _, p := range s.agent.broker.queries {
			open = append(open, p)
		}
		if len(open) == 0 {
			return
		}
		slices.SortFunc(open, func(a, b *placement) int { return int(a.paging.query) - int(b.paging.query) })
		found := &directory.Found{ID: open[0].paging.query, Err: directory.ErrUnreachable}
		n.finds++
		if !n.deaf {
			found = n.answer(open[0])
		}
		s.outbox.Reset()
		s.agent.Step(s.clock(), found, &s.outbox)
		s.settle()
		s.schedule()
	}
}

// answer looks a query up in the table of quotes.
func (n *network) answer(p *placement) *directory.Found {
	q := p.paging.question
	var all []directory.Quote
	for _, id := range n.order {
		if quote, ok := n.quotes[id]; ok && q.Filter.Match(&quote) || q.After != nil && id == p.paging.last.Site {
			all = append(all, quote)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if q.Attribute == directory.Price && a.Price != b.Price {
			return (a.Price < b.Price) != q.Descending
		}
		if q.Attribute == directory.Speed && a.Speed != b.Speed {
			return (a.Speed < b.Speed) != q.Descending
		}
		if n.hashed { // as the directory does
			return (directory.Spread(a.Site) < directory.Spread(b.Site)) != q.Descending
		}
		return a.Site < b.Site
	})
	switch {
	case n.hashed && q.After != nil:
		all = slices.DeleteFunc(all, func(quote directory.Quote) bool { return q.After.Passed(&quote, q.Descending) })
	case q.After != nil:
		at := slices.IndexFunc(all, func(quote directory.Quote) bool { return quote.Site == p.paging.last.Site })
		all = all[at+1:]
	}
	found := &directory.Found{ID: p.paging.query, End: len(all) <= q.Limit, Certain: n.finds != n.unsure}
	found.Quotes = all[:min(len(all), q.Limit)]
	return found
}

// deliver gives flight i to its receiver.
func (n *network) deliver(i int) {
	m := n.flight[i]
	n.flight = slices.Delete(n.flight, i, i+1)
	n.hand(m)
}

func (n *network) hand(m inFlight) {
	n.sites[m.to].step(&grid.Delivery{From: m.from, Message: n.encoded(m)})
}

// encoded sends the message through its wire form, so that every test checks it.
func (n *network) encoded(m inFlight) grid.Message {
	message, err := throughWire(m.from, m.message)
	if err != nil {
		n.t.Fatalf("%s: %v", n.describe(m.message), err)
	}
	return message
}

// throughWire encodes and decodes a message as a stream would.
func throughWire(from grid.SiteID, m grid.Message) (grid.Message, error) {
	frame, err := wire.Encode(m.(wire.Message))
	if err != nil {
		return nil, err
	}
	r := strings.NewReader(string(frame))
	body, err := wire.ReadFrame(r)
	if err != nil {
		return nil, err
	}
	return Protocol.Decode(from, body)
}

// deliverAll delivers in order until nothing is under way.
func (n *network) deliverAll() {
	for len(n.flight) > 0 {
		n.deliver(0)
	}
}

// advance lets time pass, step by step, with everything that is due; messages
// that are sent meanwhile are delivered if deliver is set.
func (n *network) advance(span grid.Time, deliver bool) {
	end := n.now + span
	for {
		next := n.nextEvent()
		if next > end {
			break
		}
		n.now = max(n.now, next)
		n.tick()
		if deliver {
			n.deliverAll()
		}
	}
	n.now = end
	n.tick()
	if deliver {
		n.deliverAll()
	}
}

// nextEvent returns when something happens by itself.
func (n *network) nextEvent() grid.Time {
	next := grid.Never
	for _, id := range n.order {
		s := n.sites[id]
		at := grid.Never
		if s.up {
			at = min(s.agent.NextTimer(), s.cluster.NextTimer())
		}
		for _, end := range s.fills {
			if s.up {
				at = min(at, end)
			}
		}
		for _, j := range s.jobs {
			if j.run.alive {
				at = min(at, j.run.end)
			}
		}
		for _, r := range s.remotes {
			if r.run.alive {
				at = min(at, r.run.end)
			}
		}
		if at != grid.Never {
			next = min(next, at-s.offset)
		}
	}
	return next
}

func (n *network) tick() {
	for _, id := range n.order {
		s := n.sites[id]
		s.endDue()
		s.step(grid.Tick{})
	}
}

func (n *network) logf(format string, args ...any) {
	if !n.silent {
		n.trace = append(n.trace, fmt.Sprintf(format, args...))
	}
}

// takeTrace returns what happened since the last call.
func (n *network) takeTrace() string {
	if len(n.trace) == 0 {
		return "(nothing)\n"
	}
	text := strings.Join(n.trace, "\n") + "\n"
	n.trace = nil
	return text
}

func (n *network) verdicts(verdicts []Verdict, now grid.Time) {
	for _, v := range verdicts {
		n.logf("  %-8s %-15s %s", v.Site, v.Outcome, v.Detail)
	}
}

// name is a short name of a job: tests number them in Lo.
func (n *network) name(id grid.JobID) string { return fmt.Sprintf("j%d", id.Lo) }

func (s *site) answered(a grid.Answer) {
	r := a.Value.(*PreviewResult)
	s.previewed = r
	s.net.logf("%s: preview %d earliest=%s cheapest=%s", s.cfg.Site, a.Token, r.Earliest.Site, r.Cheapest.Site)
	s.net.verdicts(r.Verdicts, s.clock())
}

// describe prints a message without what differs from run to run.
func (n *network) describe(m grid.Message) string {
	switch m := m.(type) {
	case *Negotiate:
		deadline := "none"
		if m.Deadline != grid.Never {
			deadline = m.Deadline.String()
		}
		text := fmt.Sprintf("negotiate %s/%d processors=%d deadline=%s cost-max=%v", n.name(m.Task.Job), m.Task.Epoch, m.Processors, deadline, m.CostMax)
		if m.GPUs.Count > 0 {
			text += " gpus=" + m.GPUs.String()
		}
		if m.Probe {
			text += " probe"
		}
		return text
	case *Reply:
		if m.Probe && m.Refusal == Granted {
			return fmt.Sprintf("reply %s/%d would grant start=%v finish=%v cost=%v", n.name(m.Task.Job), m.Task.Epoch, m.Start, m.Finish, m.Cost)
		}
		if m.Refusal == Granted {
			return fmt.Sprintf("reply %s/%d granted start=%v finish=%v cost=%v hold=%v", n.name(m.Task.Job), m.Task.Epoch, m.Start, m.Finish, m.Cost, m.HoldSpan)
		}
		best := ""
		if m.Finish != grid.Never {
			best = fmt.Sprintf(" best=%v", m.Finish)
		}
		return fmt.Sprintf("reply %s/%d refused (%s)%s free=%d price=%v", n.name(m.Task.Job), m.Task.Epoch, m.Refusal, best, m.Load.Free, m.Load.Price)
	case *JobSubmission:
		return fmt.Sprintf("job-submission %s/%d", n.name(m.Job.ID), m.Epoch)
	case *JobCompletion:
		if m.Abandoned {
			return fmt.Sprintf("job-completion %s/%d abandoned", n.name(m.Task.Job), m.Task.Epoch)
		}
		return fmt.Sprintf("job-completion %s/%d ran=%v exit=%d", n.name(m.Task.Job), m.Task.Epoch, m.Run, m.ExitCode)
	case *Acknowledge:
		text := ""
		if m.Unknown {
			text = " unknown"
		}
		return fmt.Sprintf("acknowledge %s/%d of %s%s", n.name(m.Task.Job), m.Task.Epoch, strings.TrimPrefix(wire.KindName(m.Of), "market."), text)
	case *Cancel:
		return fmt.Sprintf("cancel %s/%d answer=%v", n.name(m.Task.Job), m.Task.Epoch, m.Answer)
	}
	return fmt.Sprintf("%T", m)
}
