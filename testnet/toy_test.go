package testnet

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// toyMessage is a ping or its pong.
type toyMessage struct {
	kind   grid.Kind
	number int
}

func (m *toyMessage) MessageKind() grid.Kind { return m.kind }
func (m *toyMessage) ForJob() grid.JobID     { return grid.JobID{Lo: uint64(m.number)} }
func (m *toyMessage) String() string {
	return map[grid.Kind]string{toyPing: "ping", toyPong: "pong", toyNews: "news"}[m.kind] + " " + strconv.Itoa(m.number)
}

const (
	toyPing = wire.MarketNegotiate
	toyPong = wire.MarketReply
	toyNews = wire.GossipLoad
)

// Inputs of a toySite.
type (
	toySend struct {
		to     grid.SiteID
		number int
	}
	toyPublish struct{ number int }
	toyRun     struct{ task grid.Task }
	toyKill    struct{ id grid.TaskID }
	toyFind    struct{ key grid.Key }
	toySubmit  struct {
		token uint64
		job   *grid.Job
	}
	toyAdopted struct {
		id    grid.TaskID
		start grid.Time
	}
	toyTimer  struct{ at grid.Time }
	toyAttend struct{ sites []grid.SiteID }
	toyNote   struct{}
)

// toyRecord is a job a toySite has taken.
type toyRecord struct{ job grid.JobID }

func (r toyRecord) RecordKey() string              { return "job/" + strconv.FormatUint(r.job.Lo, 10) }
func (r toyRecord) AppendRecord(dst []byte) []byte { return append(dst, "taken"...) }

// toySite writes down what it is given and answers pings. A job it is given it
// saves, starts and, when it has ended, deletes.
type toySite struct {
	name  string
	log   io.Writer // nil: say nothing
	timer grid.Time
	ticks bool // log Ticks, too
	jobs  map[grid.JobID]bool
}

func (s *toySite) say(now grid.Time, format string, args ...any) {
	if s.log != nil {
		fmt.Fprintf(s.log, "%-9v %s: %s\n", now, s.name, fmt.Sprintf(format, args...))
	}
}

func (s *toySite) NextTimer() grid.Time { return s.timer }

func (s *toySite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		if s.ticks || s.timer <= now {
			s.say(now, "tick")
		}
		if s.timer <= now {
			s.timer = grid.Never
		}
	case *grid.Delivery:
		m := in.Message.(*toyMessage)
		s.say(now, "%v from %s", m, in.From)
		if m.kind == toyPing {
			out.Send(in.From, &toyMessage{toyPong, m.number})
		}
	case *grid.Undelivered:
		s.say(now, "undelivered %v to %s", in.Message, in.To)
	case *grid.Closest:
		s.say(now, "closest %v", in.Peers)
	case *grid.TaskEnded:
		r := in.Result
		if in.Lost {
			s.say(now, "task %d.%d is lost", in.ID.Job.Lo, in.ID.Epoch)
		} else {
			s.say(now, "task %d.%d ran %v to %v exit %d %s", in.ID.Job.Lo, in.ID.Epoch, r.Start, r.End, r.ExitCode, r.Reason)
		}
		delete(s.jobs, in.ID.Job)
		out.Delete(toyRecord{in.ID.Job})
	case *toySend:
		out.Send(in.to, &toyMessage{toyPing, in.number})
	case *toyPublish:
		out.Publish("news", &toyMessage{toyNews, in.number})
	case *toyRun:
		out.Start(in.task)
	case *toyKill:
		out.Kill(grid.Task{ID: in.id, Cause: "unwanted"})
	case *toyFind:
		out.Closest(in.key)
	case *toyAttend:
		out.Attend(in.sites)
	case *grid.Parted:
		s.say(now, "parted from %s", in.Site)
	case *toyNote:
		s.say(now, "note")
	case *toyTimer:
		s.timer = in.at
	case *toySubmit:
		s.say(now, "job %d submitted at %v", in.job.ID.Lo, in.job.Submit)
		out.Answer(in.token, in.job.ID)
		if s.jobs[in.job.ID] {
			return
		}
		s.take(in.job.ID)
		out.Save(toyRecord{in.job.ID})
		out.Start(grid.Task{ID: grid.TaskID{Job: in.job.ID, Epoch: 1}, Job: in.job})
	case *toyAdopted:
		s.say(now, "task %d.%d adopted, runs since %v", in.id.Job.Lo, in.id.Epoch, in.start)
	default:
		panic(fmt.Sprintf("toy: unknown input %T", in))
	}
}

func (s *toySite) take(id grid.JobID) {
	if s.jobs == nil {
		s.jobs = make(map[grid.JobID]bool)
	}
	s.jobs[id] = true
}

func (s *toySite) Recover(now grid.Time, records iter.Seq2[string, []byte], _ *grid.Outbox) error {
	var keys []string
	for key, record := range records {
		if string(record) != "taken" {
			return fmt.Errorf("record %s is %q", key, record)
		}
		lo, err := strconv.ParseUint(strings.TrimPrefix(key, "job/"), 10, 64)
		if err != nil {
			return err
		}
		s.take(grid.JobID{Lo: lo})
		keys = append(keys, key)
	}
	s.say(now, "recovers %v", keys)
	return nil
}

// toyInputs makes the inputs a network hands to each toySite.
var toyInputs = Inputs{
	Submit:  func(_ grid.Input, token uint64, job *grid.Job) grid.Input { return &toySubmit{token, job} },
	Adopted: func(id grid.TaskID, start grid.Time) grid.Input { return &toyAdopted{id, start} },
}
