package site

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/coalloc/dataset"
	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/node/guest"
)

// TestTranscripts runs testdata/*.txt: each command is followed by everything that
// happened because of it. Commands:
//
//	site name=a [processors=4 gpus=2 parts=everything price=1 discipline=easy foreign=yes lend bank=b accept=b offer head=h members=(b,c) window=10s short=1m retention=1h threshold=1000 siblings=(b) delegation=dmm leaseprice=2 lendmost=3]
//	submit site=a job=1 [processors=1 for=100s goal=cheapest to=b deadline=2h budget=5 components=(2@a,2@b) gpus=1 name=x spread inputs=(x)]
//	cancel | preview | show site=a job=1
//	price site=a price=2
//	lease site=a from=b [processors=2 for=1h most=3]
//	release | renew | revoke site=a [force]   the newest of its leases
//	link site=a change=invite|accept|drop to=b
//	drain site=a [back]
//	guest site=b change=cancel|hold|release job=1 | of=a   what the owner of b does with jobs of others
//	ban site=b of=a [lift]
//	data site=a name=x [shared drop]   a data set is there; x is one of those of submit's inputs=(x)
//	grant site=b to=a amount=100      credits from the bank
//	quotes site=a                     the directory's answer, cheapest first
//	deliver [count=1]                 deliver so many messages in order; all without count
//	drop | undeliverable              the first message under way is lost | certainly never arrives
//	advance for=5s [deliver]          let time pass; messages stay under way, or are delivered at once
//	ended site=a task=1.1 [ran=10s code=0 lost] the executor reports the end of a task, as it was killed if it was
//	crash site=a
//	restart site=a [adopt=(1.1) ended=(2.1)]   a second later, with what still runs and what has ended
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the fuzzer's corpus
		}
		n := newNetwork(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			n.t = t
			n.command(d)
			return n.takeTrace()
		})
	})
}

func (n *network) command(d *datadriven.TestData) {
	a := args{n.t, d}
	s := n.sites[grid.SiteID(a.text("site", ""))]
	n.token++
	switch d.Cmd {
	case "site":
		n.add(a.config())
	case "submit":
		s.step(&Submit{Token: n.token, Job: a.job(s)})
	case "preview":
		s.step(&Preview{Token: n.token, Job: a.job(s)})
	case "cancel":
		s.step(&Cancel{Token: n.token, Job: a.jobID(), Cause: "enough"})
	case "show":
		v, known := s.site.Job(a.jobID())
		if !known {
			n.say("no such job")
			return
		}
		cost := ""
		if v.State == CancelledByUser && v.Result.Cost > 0 && len(v.Verdicts) == 0 { // for what was delegated
			cost = v.Result.Cost.String()
		}
		n.say("job %d %v%s%s%s%s", v.Job.ID.Lo, v.State, optional(" at ", string(v.Site)), optional(": ", v.Reason), optional(", costs ", cost), verdicts(v.Verdicts))
	case "price":
		s.step(&SetPrice{Token: n.token, Price: grid.Price(a.integer("price", 1)) * grid.Credit})
	case "lease":
		s.step(&RequestLease{Token: n.token, Lender: grid.SiteID(a.text("from", "")), Processors: a.integer("processors", 2), Span: a.span("for", grid.Hour), Most: grid.Price(a.integer("most", 0)) * grid.Credit})
	case "renew", "release", "revoke":
		change := map[string]LeaseChange{"renew": RenewLease, "release": ReleaseLease, "revoke": RevokeLease}[d.Cmd]
		s.step(&ChangeLease{Token: n.token, Change: change, Number: s.newest(), Span: a.span("for", grid.Hour), Force: d.HasArg("force")})
	case "link":
		change := map[string]LinkChange{"invite": InviteLink, "accept": AcceptLink, "drop": DropLink}[a.text("change", "")]
		s.step(&ChangeLink{Token: n.token, Change: change, Site: grid.SiteID(a.text("to", ""))})
	case "drain":
		s.step(&Drain{Back: d.HasArg("back")})
	case "guest":
		change := map[string]GuestChange{"cancel": CancelGuest, "hold": HoldGuest, "release": ReleaseGuest}[a.text("change", "")]
		in := &ChangeGuests{Token: n.token, Change: change, Job: a.jobID(), Cause: "the owner wants it"}
		if d.HasArg("of") {
			in.Job, in.Partner = grid.JobID{}, &guest.Partner{Scope: guest.Site, Name: a.text("of", "")}
		}
		s.step(in)
	case "ban":
		partner := guest.Partner{Scope: guest.Site, Name: a.text("of", "")}
		s.step(&BanGuests{Token: n.token, Ban: guest.Ban{Partner: partner, Since: n.now, Until: grid.Never}, Lift: d.HasArg("lift")})
	case "data":
		set := dataset.Set{DataSet: grid.DataSet{Name: a.text("name", ""), Size: 1e9}, Path: "/x", Shared: d.HasArg("shared"), Added: n.now}
		if d.HasArg("drop") {
			s.step(&dataset.Drop{Token: n.token, Name: set.Name})
		} else {
			s.step(&dataset.Hold{Token: n.token, Set: set})
		}
	case "grant":
		s.step(&bank.Grant{Token: n.token, ID: grid.JobID{Lo: n.token}, To: grid.SiteID(a.text("to", "")), Amount: grid.Credits(a.integer("amount", 100)) * grid.Credit})
	case "quotes":
		s.step(&FindQuotes{Token: n.token})
	case "ended":
		if in := a.ended(s, a.text("task", "")); in != nil {
			s.step(in)
		}
	case "crash":
		s.site = nil
		s.out.Reset()
	case "restart":
		s.restart(a.leftOver(s)...)
	default:
		n.travel(a)
	}
}

// travel is what happens to messages under way.
func (n *network) travel(a args) {
	if len(n.flight) == 0 && a.d.Cmd != "advance" {
		n.say("no message is under way")
		return
	}
	switch a.d.Cmd {
	case "deliver":
		if a.d.HasArg("count") {
			for range a.integer("count", 1) {
				n.deliver(0)
			}
			return
		}
		for len(n.flight) > 0 {
			n.deliver(0)
		}
	case "drop":
		n.flight = n.flight[1:]
	case "undeliverable":
		m := n.flight[0]
		n.flight = n.flight[1:]
		n.sites[m.from].step(&grid.Undelivered{To: m.to, Message: m.message})
	case "advance":
		n.advance(a.span("for", grid.Second), a.d.HasArg("deliver"))
	default:
		a.t.Fatalf("%s: unknown command %s", a.d.Pos, a.d.Cmd)
	}
}

// args reads the arguments of a command.
type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) list(key string) []string {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key {
			return arg.Vals
		}
	}
	return nil
}

func (a args) text(key, def string) string {
	if vals := a.list(key); len(vals) > 0 {
		return vals[0]
	}
	return def
}

func (a args) integer(key string, def int64) int64 {
	text := a.text(key, strconv.FormatInt(def, 10))
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.t.Fatalf("%s: %v", a.d.Pos, err)
	}
	return v
}

func (a args) span(key string, def grid.Time) grid.Time {
	text := a.text(key, "")
	if text == "" {
		return def
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		a.t.Fatalf("%s: %v", a.d.Pos, err)
	}
	return grid.FromDuration(v)
}

func (a args) ids(key string) (ids []grid.SiteID) {
	for _, v := range a.list(key) {
		ids = append(ids, grid.SiteID(v))
	}
	return ids
}

func (a args) jobID() grid.JobID { return grid.JobID{Lo: uint64(a.integer("job", 1))} }

func (a args) config() Config {
	name := a.text("name", "")
	cfg := Config{
		ID: grid.SiteID(name), Name: name, Resources: grid.Resources{Processors: a.integer("processors", 4)},
		Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Price(a.integer("price", 1)) * grid.Credit,
		Foreign: a.text("foreign", "yes") == "yes", Head: grid.SiteID(a.text("head", "")),
		Limits: Limits{Jobs: 100, PerUser: 100, Finished: 10, Retention: a.span("retention", grid.Hour)},
		Lease:  LeaseConfig{Lend: a.d.HasArg("lend"), Most: int64(a.integer("lendmost", 0)), Price: grid.Price(a.integer("leaseprice", 0)) * grid.Credit},
		Bank:   bank.Config{Offer: a.d.HasArg("offer"), Bank: grid.SiteID(a.text("bank", "")), Accept: a.ids("accept")},
		GPUs:   gpusOf(a.integer("gpus", 0)),
		Heads:  HeadsConfig{Members: a.list("members"), HeadConfig: muscle.HeadConfig{Window: a.span("window", 10*grid.Second)}},
	}
	if a.d.HasArg("short") { // jobs are collected until a member has so little work
		cfg.Heads.Collect, cfg.Heads.Threshold = muscle.CollectMakespan, a.span("short", 0)
	}
	cfg.Directory.Federation, cfg.Directory.Topic, cfg.Survey.Topic = "test", "load", "load"
	cfg.Lease.Match.Threshold = a.integer("threshold", 0)
	for _, id := range a.ids("siblings") {
		cfg.Lease.Match.Links = append(cfg.Lease.Match.Links, lease.Link{Site: id, Relation: lease.Sibling})
	}
	var err error
	if cfg.Lease.Match.Policy, err = lease.ParsePolicy(a.text("delegation", "dmm")); err != nil {
		a.t.Fatal(err)
	}
	if cfg.Discipline, err = ParseDiscipline(a.text("discipline", "easy")); err != nil {
		a.t.Fatal(err)
	}
	for i, part := range partNames {
		for _, wanted := range a.list("parts") {
			if part == wanted {
				cfg.Parts |= 1 << i
			}
		}
	}
	return cfg
}

// gpusOf returns so many GPUs of one type.
func gpusOf(n int64) (list []gpu.Device) {
	for i := range n {
		list = append(list, gpu.Device{Name: fmt.Sprint("gpu", i), Type: "a100"})
	}
	return list
}

func (a args) job(s *node) *grid.Job {
	span := a.span("for", 100*grid.Second)
	j := &grid.Job{
		ID: a.jobID(), Home: s.cfg.ID, User: "ann", Name: a.text("name", ""), Resources: grid.Resources{Processors: a.integer("processors", 1)}, Tasks: 1,
		Site: grid.SiteID(a.text("to", "")), Submit: s.n.now, Estimate: span, Work: grid.WorkOf(span, 0, s.cfg.Rating),
		Deadline: grid.Never, Budget: grid.NoBudget,
	}
	if deadline := a.span("deadline", 0); deadline > 0 {
		j.Deadline = s.n.now + deadline
	}
	if a.d.HasArg("budget") {
		j.Budget = grid.Credits(a.integer("budget", 0)) * grid.Credit
	}
	for g := grid.GoalLocal; g <= grid.GoalSpill; g++ {
		if g.String() == a.text("goal", "") {
			j.Goal = g
		}
	}
	j.GPUs.Count = a.integer("gpus", 0)
	if a.d.HasArg("spread") {
		j.Tasks, j.Spread = j.Processors, true
	}
	for _, name := range a.list("inputs") {
		j.Inputs = append(j.Inputs, grid.DataSet{Name: name, Size: grid.SizeUnknown})
	}
	if parts := a.list("components"); len(parts) > 0 {
		j.Tasks, j.Coallocate = j.Processors, &grid.Coallocation{Components: strings.Join(parts, ","), CCR: -1}
	}
	return j
}

func (a args) ended(s *node, name string) grid.Input {
	task, known := s.tasks[name]
	if !known {
		s.n.say("no task %s was started at %s", name, s.cfg.ID)
		return nil
	}
	in := &grid.TaskEnded{ID: task.ID, Lost: a.d.HasArg("lost")}
	if !in.Lost {
		in.Result = grid.Result{Start: s.n.now - a.span("ran", 10*grid.Second), End: s.n.now, ExitCode: int32(a.integer("code", 0)), Reason: s.killed[name]}
		if in.Result.Reason != "" {
			in.Result.ExitCode = ExitCancelled
		}
	}
	return in
}

// newest returns the number of the newest lease of a site.
func (s *node) newest() uint64 {
	leases := s.site.Leases()
	if len(leases) == 0 {
		return 0
	}
	return leases[len(leases)-1].Number
}

// leftOver is what a restarted daemon is told of tasks.
func (a args) leftOver(s *node) (inputs []grid.Input) {
	for _, name := range a.list("adopt") {
		inputs = append(inputs, &Adopted{ID: s.tasks[name].ID, Start: s.n.now - 10*grid.Second})
	}
	for _, name := range a.list("ended") {
		inputs = append(inputs, a.ended(s, name))
	}
	return inputs
}
