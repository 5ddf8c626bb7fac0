package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrMalformed is wrapped by every LineError.
var ErrMalformed = errors.New("malformed line")

// LineError says which line of which log is at fault and why. A strict reader's
// Reader.Next, Reader.Open and Trace.Next return it.
type LineError struct {
	File   string
	Line   int64
	Reason string
}

func (e *LineError) Error() string {
	return e.File + ":" + strconv.FormatInt(e.Line, 10) + ": " + e.Reason
}

// Unwrap returns ErrMalformed.
func (e *LineError) Unwrap() error { return ErrMalformed }

// Options of a reader. The zero value takes logs as they are: a line that is no job is
// skipped, a field that no job is made of is taken for unknown if it is malformed, and
// both are counted. Damage below the level of lines (a truncated gzip file) ends it.
type Options struct {
	// Strict ends at the first line that is not as its format says.
	Strict bool
}

// reasonsMax is how many different faults are remembered in words.
const reasonsMax = 8

// Faults are lines of a log that are not as its format says.
type Faults struct {
	Lines   int64
	Reasons []Fault // the first few kinds, in order of appearance
}

// Fault is one kind of fault.
type Fault struct {
	Reason string
	Line   int64 // the first that has it
	Count  int64 // how often it was found
}

// add counts a fault.
func (f *Faults) add(line int64, reason string) {
	for i := range f.Reasons {
		if f.Reasons[i].Reason == reason {
			f.Reasons[i].Count++
			return
		}
	}
	if len(f.Reasons) < reasonsMax {
		f.Reasons = append(f.Reasons, Fault{reason, line, 1})
	}
}

// String lists them, each with its first line, as in "3 lines: line 17 and 1 more: field
// 11 (status): ...; line 40: ...".
func (f *Faults) String() string {
	var parts []string
	for _, x := range f.Reasons {
		more := ""
		if x.Count > 1 {
			more = fmt.Sprintf(" and %d more", x.Count-1)
		}
		parts = append(parts, fmt.Sprintf("line %d%s: %s", x.Line, more, x.Reason))
	}
	lines := "lines"
	if f.Lines == 1 {
		lines = "line"
	}
	text := fmt.Sprintf("%d %s: %s", f.Lines, lines, strings.Join(parts, "; "))
	if len(f.Reasons) == reasonsMax {
		text += "; …"
	}
	return text
}
