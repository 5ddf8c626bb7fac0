package node

import (
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/forward"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/site"
)

// squadOrder is an order about one component of a gang of two tasks, at the given sites.
func squadOrder(kind pilot.OrderKind, key uint64, j *grid.Job, part int, sites ...grid.SiteID) *wirepb.PilotOrder {
	g := &grid.Gang{Task: grid.TaskID{Job: j.ID, Epoch: 1}, Each: 1}
	for _, site := range sites {
		g.Parts = append(g.Parts, grid.GangPart{Site: site, Processors: 1})
	}
	o := runOrder(key, j)
	o.Kind, o.Epoch, o.Gang = uint32(kind), grid.SquadTask(g.Task, part).Epoch, wire.GangProto(g, true)
	return o
}

// TestGangOutputWithoutDescriptors: what the tasks have written is in the job's output, once, however often
// no file could be opened.
func TestGangOutputWithoutDescriptors(t *testing.T) {
	h := team(t, 1)[0]
	g := &grid.Gang{Task: grid.TaskID{Job: grid.JobID{Hi: 7, Lo: 7}, Epoch: 1}, Each: 1, Parts: []grid.GangPart{{Site: h.ID(), Processors: 2}}}
	for n, text := range []string{"first\n", "second"} {
		writeFile(t, h.files.Process(h.ID(), run.Process{Task: grid.SquadTask(g.Task, 0), Number: n})+run.Stdout.Suffix(), text)
	}
	for scarce := range 4 { // from the so manyth file on
		o := newGangOutput(h, g)
		opened := 0
		for i := range o.streams {
			o.streams[i].open = func(name string, how int, mode os.FileMode) (*os.File, error) {
				if opened++; opened > scarce && opened < scarce+3 {
					return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
				}
				return os.OpenFile(name, how, mode)
			}
		}
		tries := 1
		for ; !o.merge(true); tries++ {
		}
		text, err := os.ReadFile(h.files.Task(h.ID(), g.Task) + run.Stdout.Suffix())
		if string(text) != "first\nsecond\n" || tries < 2 {
			t.Errorf("from file %d on: %q after %d tries; %v", scarce, text, tries, err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHostileGangs: a borrower has no task prepared that does not make sense, is not
// for this site, or is on a lease that another job uses; and nobody's connections are
// forwarded but those of the job's sites.
func TestHostileGangs(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, grid.Minute)
	a := borrowFrom(t, b, l, 1, grid.Hour)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	key := a.Lease.Key
	job := func(n uint64) *grid.Job { return scriptJob(b, n, "exit 3") }
	order := func(n uint64, part int, change func(o *wirepb.PilotOrder)) *wirepb.PilotOrder {
		o := squadOrder(pilot.OrderPrepare, key, job(n), part, b.ID(), l.ID())
		change(o)
		return o
	}
	for _, tt := range []struct {
		name  string
		order *wirepb.PilotOrder
		want  string // the reason of a refusal; empty: the stream ends without a word
	}{
		{"more tasks than the component has", order(1, 1, func(o *wirepb.PilotOrder) { o.Tasks = 2 }), ""},
		{"no gang", order(2, 1, func(o *wirepb.PilotOrder) { o.Gang = nil }), ""},
		{"a task of no gang", order(3, 1, func(o *wirepb.PilotOrder) { o.Epoch = 1 }), ""},
		{"a component beyond the gang", order(4, 7, func(*wirepb.PilotOrder) {}), ""},
		{"no processors each", order(5, 1, func(o *wirepb.PilotOrder) { o.Gang.Each = 0 }), ""},
		{"a component of no site", order(6, 1, func(o *wirepb.PilotOrder) { o.Gang.Parts[0].Site = "" }), ""},
		{"too many tasks", order(7, 1, func(o *wirepb.PilotOrder) { o.Gang.Parts[0].Processors = grid.RanksMax }), ""},
		{"more processors than a task has", order(8, 1, func(o *wirepb.PilotOrder) { o.Spec.Processors, o.Spec.Tasks = 2, 2 }), ""},
		{"a component for another site", order(9, 0, func(*wirepb.PilotOrder) {}), "is to run at"},
		{"a lease that is not there", order(10, 1, func(o *wirepb.PilotOrder) { o.Key++ }), "no such lease"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reports := orderTo(t, b, l, tt.order)
			switch {
			case tt.want == "" && len(reports) > 0:
				t.Errorf("%v, want the stream to end", reports)
			case tt.want != "" && (len(reports) != 1 || reports[0].Kind != uint32(pilot.ReportRefused) || !strings.Contains(string(reports[0].Reason), tt.want)):
				t.Errorf("%v, want a refusal: %s", reports, tt.want)
			}
		})
	}
	good := squadOrder(pilot.OrderPrepare, key, job(20), 1, b.ID(), l.ID())
	run := squadOrder(pilot.OrderRun, key, job(20), 1, b.ID(), l.ID())
	reports := orderTo(t, b, l, good, run)
	if last := reports[len(reports)-1]; last.Kind != uint32(pilot.ReportEnded) || last.Result.ExitCode != 3 {
		t.Fatalf("%v, want it to run", reports)
	}
	if reports := orderTo(t, b, l, order(21, 1, func(*wirepb.PilotOrder) {})); len(reports) != 1 || !strings.Contains(string(reports[0].Reason), "has tasks of job") {
		t.Errorf("%v, want the lease to be another job's", reports)
	}

	// A site that enters as a job of another, or of this one, has a gang of its own,
	// whose end is nobody else's.
	taken := &grid.Gang{Task: grid.TaskID{Job: job(20).ID, Epoch: 1}, Each: 1, Parts: []grid.GangPart{{Site: b.ID(), Processors: 1}, {Site: l.ID(), Processors: 1}}}
	enter := func(home grid.SiteID) ([]string, error) {
		return l.pilots.forward.Add(forward.Group{ID: forward.ID{Home: home, Task: taken.Task}, Sites: taken.Sites()})
	}
	theirs, err := enter(b.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, home := range []grid.SiteID{"another", l.ID()} {
		switch mine, err := enter(home); {
		case err != nil:
			t.Errorf("%s enters as a job of another: %v", home, err)
		case slices.ContainsFunc(mine, func(a string) bool { return slices.Contains(theirs, a) }):
			t.Errorf("%s has the addresses %v, which are of another's job: %v", home, mine, theirs)
		}
		l.pilots.forward.Remove(forward.ID{Home: home, Task: taken.Task})
	}
	if again, err := enter(b.ID()); err != nil || !slices.Equal(again, theirs) {
		t.Errorf("the job has the addresses %v (%v), want %v", again, err, theirs)
	}

	third := realConfig(t, 3, b.cfg.Memory)
	third.Join = l.Addrs()
	stranger := realHost(t, third)
	addresses, err := stranger.pilots.forward.Add(forward.Group{
		ID: forward.ID{Home: b.ID(), Task: taken.Task}, Sites: []grid.SiteID{stranger.ID(), l.ID()},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", addresses[1])
	if err != nil {
		return // its own node has reset the connection already, as the other has refused it
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a site that is not of the job reaches its tasks: %d bytes, %v", n, err)
	}
}

// TestEndsOfGangsWaitForTheirOutput: the end of a task elsewhere is taken in, and that of its gang noted,
// once what has come home of their output is on disk; a gang that prints nothing waits for no disk.
func TestEndsOfGangsWaitForTheirOutput(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 1)
	home := hosts[0]
	begun, goOn := make(chan []string), make(chan bool)
	home.pilots.flush = func(paths ...string) error {
		select {
		case begun <- paths:
			<-goOn
		case <-t.Context().Done():
		}
		return nil
	}
	j := dividedJob(hosts, 1, "echo hello", 1, 1)
	submitJob(t, home, j)
	task := grid.TaskID{Job: j.ID, Epoch: 1}
	for _, path := range []string{
		home.files.Process(home.ID(), run.Process{Task: grid.SquadTask(task, 1)}), home.files.Task(home.ID(), task),
	} {
		var paths []string
		select {
		case paths = <-begun:
		case <-time.After(patience):
			t.Fatal("nothing is flushed")
		}
		if !slices.Equal(paths, []string{path + run.Stdout.Suffix()}) {
			t.Errorf("flushed are %q, want the standard output of %s", paths, path)
		}
		if v := stateOf(t, home, j); v.State.Terminal() {
			t.Errorf("it is %v before that", v.State)
		}
		goOn <- true
	}
	until(t, "it is done", func() bool { return stateOf(t, home, j).State == site.Done })
	silent := dividedJob(hosts, 2, "true", 1, 1)
	submitJob(t, home, silent)
	until(t, "it is done", func() bool { return stateOf(t, home, silent).State == site.Done })
}
