package pilot

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
)

// TestTranscripts runs testdata/*: each command is followed by everything that happened
// because of it. Commands:
//
//	sites a b c
//	lend lender=b to=a key=1 processors=2           the lease is active; also again
//	start job=1 at=b key=1 [processors=1 home=a]
//	gang job=2 parts=(a:1,b@7:2)                    at a 1 task, at b 2 on lease 7
//	kill job=1 | abandon lender=b key=1             at the home, a unless home=… says so
//	release site=b key=1
//	connect to=b [fails]                            a's attempt
//	order to=b | report from=b                      the next one arrives
//	break to=b [lender | borrower]                  the end of a's session, as that side learns of it
//	dial site=b [fails] | prepared site=b [refused=why | failed=why]
//	gathered [fails=why [again]] | finished | ack           of a
//	exit site=b key=1 job=1 [part=0 task=0 code=1]  a process
//	drop site=b key=1 [dies | unseen]               the connection to a pilot; the pilot, too; nobody notices yet
//	crash site=b [power] | restart site=b [clock=-1h]    the daemon; the machine, too
//	crash site=b after=1                            when it has started so many processes
//	settle                                          all that is under way arrives and is answered
//	advance for=5s [settle] [quiet]
//	left                                            tasks, links and gangs of every site
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the failures of property tests
		}
		c := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "sites" {
				var ids []grid.SiteID
				for _, a := range d.CmdArgs {
					ids = append(ids, grid.SiteID(a.Key))
				}
				c.world = newWorld(ids...)
				return ""
			}
			c.command(t, d)
			if c.broken != "" {
				t.Fatalf("%s: %s", d.Pos, c.broken)
			}
			trace := c.trace.String()
			c.trace.Reset()
			return trace
		})
	})
}

// script is a world that obeys commands.
type script struct{ *world }

func (c *script) command(t *testing.T, d *datadriven.TestData) {
	number := func(key string, value int64) int64 {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &value)
		}
		return value
	}
	at := func(key string) *site {
		id := text(d, key, "a")
		if s := c.sites[grid.SiteID(id)]; s != nil {
			return s
		}
		t.Fatalf("%s: no site %s", d.Pos, id)
		return nil
	}
	job := grid.JobID{Hi: 1, Lo: uint64(number("job", 0))}
	task, key := grid.TaskID{Job: job, Epoch: 1}, uint64(number("key", 0))
	if d.HasArg("part") {
		task = grid.SquadTask(task, int(number("part", 0)))
	}
	process := member{task, int(number("task", 0))}
	switch d.Cmd {
	case "lend":
		at("lender").keep(key, grid.SiteID(text(d, "to", "a")), number("processors", 1))
	case "start":
		processors, home := number("processors", 1), at("home")
		home.start(grid.Task{
			ID: task, Job: &grid.Job{ID: job, Home: home.id, Resources: grid.Resources{Processors: processors}, Tasks: processors},
			Limit: grid.Hour, Pilot: grid.Pilot{Site: at("at").id, Key: key},
		})
	case "gang":
		c.gang(t, d, task)
	case "kill":
		at("home").kill(task, "cancelled")
	case "abandon":
		at("home").abandon(at("lender").id, key)
	case "release":
		at("site").release(key)
	case "connect", "order", "break":
		c.connection(t, d, at("home"), at("to"))
	case "report":
		c.report(c.last(t, d, at("home"), at("from")))
	case "dial":
		at("site").dial(!d.HasArg("fails"))
	case "prepared":
		at("site").prepared(text(d, "refused", ""), text(d, "failed", ""))
	case "gathered":
		at("site").gathered(text(d, "fails", ""), d.HasArg("again"))
	case "finished":
		at("site").finished()
	case "ack":
		at("site").ack()
	case "exit":
		if s, code := at("site"), int32(number("code", 0)); key == 0 {
			s.endOwn(process, code)
		} else {
			s.end(key, process, code)
		}
	case "drop":
		if s := at("site"); d.HasArg("unseen") {
			s.cut(key)
		} else {
			s.drop(key, d.HasArg("dies"))
		}
	case "crash":
		s := at("site")
		if s.dies = int(number("after", 0)); s.dies > 0 {
			return
		}
		s.crash()
		if d.HasArg("power") {
			s.powerCut()
		}
	case "restart":
		s := at("site")
		s.skew += span(t, d, "clock")
		s.restart()
	case "settle":
		c.settle()
	case "advance":
		for left := span(t, d, "for"); left > 0; left -= 100 * grid.Millisecond {
			c.advance(min(left, 100*grid.Millisecond))
			if d.HasArg("settle") {
				c.settle()
			}
		}
		if d.HasArg("quiet") {
			c.trace.Reset()
		}
	case "left":
		for _, s := range c.all() {
			if s.core != nil {
				u := s.core.user
				c.note("%s: %d tasks, %d links, %d gangs, pilots %v", s.id, len(u.tasks), len(u.links), len(s.core.gangs.all), s.core.Keeps())
			}
		}
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

// connection is a command about a home's newest session with a lender.
func (c *script) connection(t *testing.T, d *datadriven.TestData, home, lender *site) {
	x := c.last(t, d, home, lender)
	switch d.Cmd {
	case "connect":
		c.connect(x, !d.HasArg("fails"))
	case "order":
		c.order(x)
	case "break":
		if !d.HasArg("borrower") {
			c.end(x, true)
		}
		if !d.HasArg("lender") {
			c.end(x, false)
		}
	}
}

func (c *script) last(t *testing.T, d *datadriven.TestData, from, to *site) (last *session) {
	for _, x := range c.sessions {
		if x.from == from.id && x.to == to.id {
			last = x
		}
	}
	if last == nil {
		t.Fatalf("%s: %s has no session with %s", d.Pos, from.id, to.id)
	}
	return last
}

// gang starts a gang at a.
func (c *script) gang(t *testing.T, d *datadriven.TestData, task grid.TaskID) {
	home, g, all := c.sites["a"], &grid.Gang{Task: task, Each: 1}, int64(0)
	for _, part := range list(d, "parts") {
		where, processors, _ := strings.Cut(part, ":")
		lender, key, leased := strings.Cut(where, "@")
		p := grid.GangPart{Site: grid.SiteID(lender)}
		var err error
		if p.Processors, err = strconv.ParseInt(processors, 10, 64); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		if leased {
			p.Pilot.Site = p.Site
			if p.Pilot.Key, err = strconv.ParseUint(key, 10, 64); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
		}
		all += p.Processors
		g.Parts = append(g.Parts, p)
	}
	job := &grid.Job{ID: task.Job, Home: "a", Resources: grid.Resources{Processors: all}, Tasks: all}
	home.start(grid.Task{ID: task, Job: job, Limit: grid.Hour, Gang: g})
}

func list(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func text(d *datadriven.TestData, key, def string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return def
}

func span(t *testing.T, d *datadriven.TestData, key string) grid.Time {
	v, err := time.ParseDuration(text(d, key, "0s"))
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return grid.FromDuration(v)
}
