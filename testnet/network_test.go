package testnet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gridnode/grid"
)

// TestTranscripts runs the engine under toy sites, each of which writes down what
// it is given, with the time on its own clock. Commands:
//
//	network seed=1 latency=(10ms,20ms) loss=0.1 duplicate=0.1 reorder=(0.1,1s) durable
//	site NAME [offset=1s] [drift=PPM] [speed=MIPS] [ticks]
//	send at=0s from=a to=b [count=3] [every=1s]
//	run-task at=0s site=a task=1.1 run-time=10s [estimate=20s] [limit=5s] [speed=home MIPS]
//	submit at=0s site=a job=1 run-time=10s
//	kill | find | timer | publish | note
//	fault daemon|torn|machine|partition at=1s for=2s sites=(a,b)
//	run until=10s
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/network", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, s.run)
	})
}

// script runs the commands of a transcript.
type script struct {
	t    *testing.T
	log  bytes.Buffer
	n    *Network
	jobs toyJobs
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.log.Reset()
	var err error
	switch d.Cmd {
	case "network":
		err = s.network(d)
	case "site":
		err = s.site(d)
	case "fault":
		err = s.n.Schedule(s.fault(d))
	case "submit":
		job := &grid.Job{ID: grid.JobID{Lo: uint64(s.number(d, "job", 1))}, Submit: s.span(d, "at", 0), RunTime: s.span(d, "run-time", 1), Deadline: grid.Never}
		s.jobs = append(s.jobs, toyJob{job, s.where(d, "site")})
		s.n.Feed(&s.jobs)
	case "run":
		err = s.n.Run(context.Background(), s.span(d, "until", grid.Never), nil)
	case "counts":
		for i := range s.n.Len() {
			fmt.Fprintf(&s.log, "%s sent %v\n", s.n.members[i].ID, s.n.Counter(i).SentByName())
		}
		fmt.Fprintf(&s.log, "lost %d\n", s.n.Lost())
	default:
		s.inject(d)
	}
	if err != nil {
		fmt.Fprintf(&s.log, "error: %v\n", err)
	}
	return s.log.String()
}

func (s *script) network(d *datadriven.TestData) (err error) {
	cfg := Config{Seed: uint64(s.number(d, "seed", 1)), Durable: d.HasArg("durable"), Inputs: toyInputs, Closest: 3}
	cfg.Link.Loss = s.fraction(d, "loss", 0)
	cfg.Link.Duplicate = s.fraction(d, "duplicate", 0)
	cfg.Link.Reorder = s.fraction(d, "reorder", 0)
	if latency := s.values(d, "latency"); latency != nil {
		cfg.Link.LatencyMin, cfg.Link.LatencyMax = s.parse(latency[0]), s.parse(latency[1])
	}
	if reorder := s.values(d, "reorder"); reorder != nil {
		cfg.Link.ReorderMax = s.parse(reorder[1])
	}
	s.jobs = nil
	s.n, err = New(cfg)
	return err
}

func (s *script) site(d *datadriven.TestData) error {
	name := d.CmdArgs[0].Key
	i, err := s.n.Add(Member{
		ID:     grid.SiteID(name),
		Clock:  Clock{Offset: s.span(d, "offset", 0), Drift: s.number(d, "drift", 0)},
		Rating: grid.Rating{Speed: s.number(d, "speed", 0), Bandwidth: 1},
		New: func(int) (Site, error) {
			return &toySite{name: name, log: &s.log, timer: grid.Never, ticks: d.HasArg("ticks")}, nil
		},
	})
	s.n.Subscribe("news", i)
	return err
}

func (s *script) fault(d *datadriven.TestData) Fault {
	f := Fault{At: s.span(d, "at", 0), For: s.span(d, "for", grid.Never)}
	for k, name := range faultNames {
		if d.CmdArgs[0].Key == name {
			f.Kind = FaultKind(k)
		}
	}
	for _, name := range s.values(d, "sites") {
		site, _ := s.n.Index(grid.SiteID(name))
		f.Sites = append(f.Sites, site)
	}
	return f
}

// inject makes one input of a command, count times.
func (s *script) inject(d *datadriven.TestData) {
	at, every := s.span(d, "at", 0), s.span(d, "every", grid.Second)
	for i := range int(s.number(d, "count", 1)) {
		var in grid.Input
		switch d.Cmd {
		case "send":
			in = &toySend{grid.SiteID(s.values(d, "to")[0]), i + 1}
		case "publish":
			in = &toyPublish{i + 1}
		case "attend":
			attend := &toyAttend{}
			for _, site := range s.values(d, "to") {
				attend.sites = append(attend.sites, grid.SiteID(site))
			}
			in = attend
		case "find":
			in = &toyFind{}
		case "note":
			in = &toyNote{}
		case "timer":
			in = &toyTimer{s.span(d, "set", 0)}
		case "kill":
			in = &toyKill{s.task(d)}
		case "run-task":
			in = &toyRun{s.taskToRun(d)}
		default:
			s.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
		}
		key := "site"
		if d.Cmd == "send" {
			key = "from"
		}
		s.n.Inject(at+grid.Time(i)*every, s.where(d, key), in)
	}
}

func (s *script) taskToRun(d *datadriven.TestData) grid.Task {
	job := &grid.Job{RunTime: s.span(d, "run-time", 1), Estimate: s.span(d, "estimate", grid.Day)}
	if speed := s.number(d, "home-speed", 0); speed > 0 {
		job.Work = grid.WorkOf(job.Estimate, 0, grid.Rating{Speed: speed, Bandwidth: 1})
	}
	id := s.task(d)
	job.ID = id.Job
	return grid.Task{ID: id, Job: job, Limit: s.span(d, "limit", 0)}
}

func (s *script) task(d *datadriven.TestData) grid.TaskID {
	job, epoch, _ := strings.Cut(s.values(d, "task")[0], ".")
	j, _ := strconv.Atoi(job)
	e, _ := strconv.Atoi(epoch)
	return grid.TaskID{Job: grid.JobID{Lo: uint64(j)}, Epoch: uint32(e)}
}

func (s *script) values(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (s *script) where(d *datadriven.TestData, key string) int {
	i, ok := s.n.Index(grid.SiteID(s.values(d, key)[0]))
	if !ok {
		s.t.Fatalf("%s: unknown site", d.Pos)
	}
	return i
}

func (s *script) number(d *datadriven.TestData, key string, otherwise int64) int64 {
	v := s.values(d, key)
	if v == nil {
		return otherwise
	}
	n, err := strconv.ParseInt(v[0], 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", d.Pos, err)
	}
	return n
}

func (s *script) fraction(d *datadriven.TestData, key string, otherwise float64) int32 {
	v := s.values(d, key)
	if v == nil {
		return int32(otherwise * million)
	}
	f, err := strconv.ParseFloat(v[0], 64)
	if err != nil {
		s.t.Fatalf("%s: %v", d.Pos, err)
	}
	return int32(f * million)
}

func (s *script) span(d *datadriven.TestData, key string, otherwise grid.Time) grid.Time {
	if v := s.values(d, key); v != nil {
		return s.parse(v[0])
	}
	return otherwise
}

func (s *script) parse(text string) grid.Time {
	span, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return grid.FromDuration(span)
}

// toyJobs is a Source in memory.
type toyJobs []toyJob

type toyJob struct {
	job  *grid.Job
	site int
}

func (j *toyJobs) Next() (*grid.Job, int, error) {
	if len(*j) == 0 {
		return nil, 0, io.EOF
	}
	first := (*j)[0]
	*j = (*j)[1:]
	return first.job, first.site, nil
}
