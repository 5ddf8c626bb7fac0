package chaos

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
	"gridnode/testnet"
)

// tape is what the sites of a run say to each other and do, the latest.
type tape struct {
	n     *testnet.Network
	lines []line
	open  map[grid.Message]int // sends whose message has not arrived, by index
	first int                  // number of lines that were forgotten
}

// line is one thing that is said or done.
type line struct {
	at       grid.Time
	from, to int    // indices of sites; to is -1: it is done at from
	text     string // kind of the message, or what is done
	about    grid.JobID
	arrived  grid.Time // 0: not, or not yet
}

// The bounds of a tape and of a diagram, in lines.
const (
	tapeMost    = 200_000
	diagramMost = 60
)

// record performs a script, keeps what is said until its violation, and returns that.
func (t *tape) record(ctx context.Context, s *Script, most int64) error {
	quiet := s.copy()
	quiet.Progress, quiet.Out, quiet.Ended = nil, "", nil
	run := &trial{script: quiet, most: most, tape: t}
	t.open = make(map[grid.Message]int)
	_, violation := run.run(ctx)
	return violation
}

// listened is a site on tape.
type listened struct {
	*site.Site
	inner testnet.Site // that it is, or that stands around it
	tape  *tape
	id    grid.SiteID
}

// wrap puts a site on tape.
func (t *tape) wrap(id grid.SiteID, s *site.Site) testnet.Site { return t.listen(id, s, s) }

// listen puts a site on tape around which another one stands.
func (t *tape) listen(id grid.SiteID, s *site.Site, inner testnet.Site) testnet.Site {
	return &listened{s, inner, t, id}
}

// Core returns the site itself.
func (l *listened) Core() *site.Site { return l.Site }

// Step implements testnet.Site.
func (l *listened) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	t := l.tape
	if d, ok := in.(*grid.Delivery); ok && t.n != nil {
		if i, sent := t.open[d.Message]; sent && i >= t.first {
			t.lines[i-t.first].arrived = t.n.Now()
		}
	}
	l.inner.Step(now, in, out)
	if t.n == nil {
		return
	}
	at, _ := t.n.Index(l.id)
	for _, e := range out.Effects {
		if e.Kind == grid.EffectSave { // before anything leaves
			t.do(at, "saves "+keyOf(out.Records[e.Index]), grid.JobID{})
		}
	}
	for _, e := range out.Effects {
		if e.Kind != grid.EffectSend {
			continue
		}
		send := &out.Sends[e.Index]
		if to, known := t.n.Index(send.To); known && to != at {
			t.open[send.Message] = t.first + len(t.lines)
			t.add(line{at: t.n.Now(), from: at, to: to, text: wire.KindName(send.Message.MessageKind()), about: aboutOf(send.Message)})
		}
	}
}

// aboutOf returns the job that a message is about, zero if none.
func aboutOf(m grid.Message) grid.JobID {
	if about, ok := m.(grid.JobMessage); ok {
		return about.ForJob()
	}
	return grid.JobID{}
}

// keyOf returns the key of a record, the way people read it.
func keyOf(r grid.Record) string { return strings.ToValidUTF8(r.RecordKey(), "?") }

func (t *tape) add(l line) {
	t.lines = append(t.lines, l)
	if len(t.lines) == 2*tapeMost {
		t.first += tapeMost
		t.lines = append(t.lines[:0], t.lines[tapeMost:]...)
	}
}

// do adds what is done at a site.
func (t *tape) do(at int, text string, about grid.JobID) {
	t.add(line{at: t.n.Now(), from: at, to: -1, text: text, about: about})
}

// hear adds what the network can see.
func (t *tape) hear(n *testnet.Network) {
	t.n = n
	n.Observe(testnet.Observer{
		Event: func(_ grid.Time, at int, e *grid.Event) {
			t.do(at, fmt.Sprintf("job %s is %s, epoch %d", brief(e.Job.ID), e.Kind, e.Epoch), e.Job.ID)
		},
		Start: func(_ grid.Time, x *testnet.Execution) {
			t.do(x.Site, fmt.Sprintf("job %s starts, epoch %d", brief(x.Job.ID), x.ID.Epoch), x.Job.ID)
		},
		End: func(_ grid.Time, x *testnet.Execution) {
			how := ""
			if x.Lost {
				how = ", lost"
			}
			t.do(x.Site, fmt.Sprintf("job %s ends, epoch %d%s", brief(x.Job.ID), x.ID.Epoch, how), x.Job.ID)
		},
		Fault: func(_ grid.Time, f *testnet.Fault) {
			for _, s := range f.Sites {
				text := fmt.Sprintf("fault: %v for %v", f.Kind, f.For)
				if f.Healing() {
					text = fmt.Sprintf("healed: %v", f.Kind)
				}
				t.do(s, text, grid.JobID{})
			}
		},
	})
}

// brief is as much of a job's ID as differs in a run.
func brief(id grid.JobID) string { return id.String()[18:] }

var (
	jobNames  = regexp.MustCompile(`\b[0-9a-z]{26}\b`)
	siteNames = regexp.MustCompile(`\b(site-\d+|12D3Koo\w+)\b`)
)

// draw returns a sequence diagram in Mermaid's form: the last messages and doings up to the
// violation that concern the jobs or the sites that it names, else all but the directory's.
func (t *tape) draw(violation error) string {
	text, _, _ := strings.Cut(violation.Error(), "\n")
	var jobs []grid.JobID
	for _, name := range jobNames.FindAllString(text, -1) {
		if id, err := grid.ParseJobID(name); err == nil {
			jobs = append(jobs, id)
		}
	}
	var sites []int
	for at := range t.n.Len() {
		if slices.Contains(siteNames.FindAllString(text, -1), string(t.n.ID(at))) {
			sites = append(sites, at)
		}
	}
	concerns := func(l *line) bool {
		switch {
		case strings.HasPrefix(l.text, "directory.") || strings.HasPrefix(l.text, "lease.family") || strings.HasPrefix(l.text, "lease.join"):
			return false
		case strings.HasPrefix(l.text, "fault") || strings.HasPrefix(l.text, "healed"):
			return true
		case len(jobs) > 0:
			return slices.Contains(jobs, l.about) || slices.ContainsFunc(jobs, func(id grid.JobID) bool { return strings.Contains(l.text, id.String()) })
		case len(sites) > 0:
			return slices.Contains(sites, l.from) || slices.Contains(sites, l.to)
		}
		return true
	}
	var chosen []*line
	for i := len(t.lines) - 1; i >= 0 && len(chosen) < diagramMost; i-- {
		if concerns(&t.lines[i]) {
			chosen = append(chosen, &t.lines[i])
		}
	}
	slices.Reverse(chosen)
	return t.mermaid(text, chosen)
}

// mermaid writes lines as a sequence diagram.
func (t *tape) mermaid(title string, lines []*line) string {
	var b strings.Builder
	clean := strings.NewReplacer(";", ",", "#", "", "\n", " ")
	fmt.Fprintf(&b, "%%%% %s\nsequenceDiagram\n", title)
	used := make(map[int]bool)
	for _, l := range lines {
		used[l.from] = true
		if l.to >= 0 {
			used[l.to] = true
		}
	}
	for i := range t.n.Len() {
		if used[i] {
			fmt.Fprintf(&b, "    participant s%d as %s\n", i+1, t.n.ID(i))
		}
	}
	for _, l := range lines {
		switch {
		case l.to < 0:
			fmt.Fprintf(&b, "    Note over s%d: %v %s\n", l.from+1, l.at, clean.Replace(l.text))
			continue
		case l.arrived > 0:
			fmt.Fprintf(&b, "    s%d->>s%d: %v %s%s, arrives %v later\n", l.from+1, l.to+1, l.at, l.text, ofJob(l.about), l.arrived-l.at)
		default:
			fmt.Fprintf(&b, "    s%d--xs%d: %v %s%s, does not arrive\n", l.from+1, l.to+1, l.at, l.text, ofJob(l.about))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(&b, "    Note over s%d: %v %s\n", lines[len(lines)-1].from+1, t.n.Now(), clean.Replace(title))
	}
	return b.String()
}

// ofJob names the job of a message.
func ofJob(id grid.JobID) string {
	if id == (grid.JobID{}) {
		return ""
	}
	return " of " + brief(id)
}
