package workload

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"gridnode/grid"
)

const (
	usersMax    = 1 << 16 // names of users that a Trace remembers
	userMaxSize = 64      // bytes of a name, as everywhere else
)

// Trace is a Source of the jobs of a log.
type Trace struct {
	reader *Reader
	filter Filter
	counts Counts
	last   grid.Time // submission of the last job
	origin int64     // of the last job
	users  map[int64]string
	failed error
	ended  bool
}

// OpenTrace opens a log as a source of the jobs that filter keeps. The caller
// closes the trace.
func OpenTrace(path string, filter Filter, o Options) (*Trace, error) {
	r, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	return NewTrace(r, filter), nil
}

// NewTrace returns the jobs of reader that filter keeps.
func NewTrace(reader *Reader, filter Filter) *Trace {
	return &Trace{reader: reader, filter: filter, origin: Unknown, users: make(map[int64]string)}
}

// Next implements Source.
//
// Both formats prescribe that lines stand in order of submission, and all the
// logs this was tried with do. A line that goes back in time is malformed: the
// trace skips it, or ends with a *LineError if the reader is strict. (Sorting
// here would need a bound on how far back a line may reach, and no log tells.)
func (t *Trace) Next(job *Job) (bool, error) {
	for t.failed == nil && !t.ended {
		r, err := t.reader.Next()
		if err == io.EOF {
			t.ended = true
			break
		}
		if err != nil {
			t.failed = err
			break
		}
		reason := t.filter.Job(&r, job)
		if reason == Kept && r.Submit < t.last {
			t.reader.refuse(fmt.Sprintf("submitted at %d s, before the job above it (%d s): sort the file by submit time (field 2)",
				r.Submit/grid.Second, t.last/grid.Second))
			t.failed = t.reader.failed
			continue
		}
		t.counts[reason]++
		if reason == Kept {
			t.last = r.Submit
			t.origin = r.SiteOrigin
			job.User = t.user(r.User)
			return true, nil
		}
	}
	return false, t.failed
}

// Counts returns how many records were read so far, by what became of them.
func (t *Trace) Counts() Counts { return t.counts }

// Origin returns at which site the job that Next returned last was submitted, as GWF logs
// name it; empty if the log does not say.
func (t *Trace) Origin() string { return t.reader.Word(t.origin) }

// Header returns the log's header.
func (t *Trace) Header() *Header { return t.reader.Header() }

// Skipped returns which lines were left out so far as no job could be made of them.
func (t *Trace) Skipped() Faults { return t.reader.Skipped() }

// Repaired returns which lines have malformed fields that no job is made of.
func (t *Trace) Repaired() Faults { return t.reader.Repaired() }

// Close closes the log.
func (t *Trace) Close() error { return t.reader.Close() }

// user returns the name of a user: the word in GWF, "user7" for number 7 in SWF
// and for a word that is too long for a name.
func (t *Trace) user(n int64) string {
	if n == Unknown {
		return ""
	}
	if t.reader.Format() == FormatGWF {
		if name := t.reader.Word(n); len(name) <= userMaxSize {
			return name
		}
	}
	if name, ok := t.users[n]; ok {
		return name
	}
	name := "user" + strconv.FormatInt(n, 10)
	if len(t.users) < usersMax {
		t.users[n] = name
	}
	return name
}

// Lines says what became of the log's lines so far: "77199 kept, 17 no run time", and
// what was found malformed, with the numbers of the lines.
func (t *Trace) Lines() string {
	text := t.counts.String()
	if faults := t.Faults(); faults != "" {
		text += "; " + faults
	}
	return text
}

// Faults says what was found malformed so far, with the numbers of the lines; empty if
// nothing was.
func (t *Trace) Faults() string {
	var parts []string
	if f := t.Skipped(); f.Lines > 0 {
		parts = append(parts, "skipped "+f.String())
	}
	if f := t.Repaired(); f.Lines > 0 {
		parts = append(parts, "repaired "+f.String())
	}
	return strings.Join(parts, "; ")
}
