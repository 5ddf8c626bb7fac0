package shim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"gridnode/grid"
	"gridnode/node/kept"
	"gridnode/node/sandbox"
)

// Bounds of what the shim is told and tells.
const (
	// TasksMax bounds the tasks a shim knows, those not acknowledged included.
	TasksMax  = 1 << 16
	idMax     = 128
	reasonMax = 256
	frameMax  = 256 << 10
	specMax   = frameMax - 1<<10
)

// MarkEnv is the one variable the shim adds to a task's environment. By its value
// processes are recognised as the task's, whatever becomes of their parents.
const MarkEnv = "GRIDNODE_SHIM"

// Spec is a task to start.
type Spec struct {
	ID   string   // 1 to 128 bytes; never used again for another task
	Args []string // Args[0] is looked up in PATH of Env unless it contains a slash
	Env  []string // KEY=VALUE; the task gets these only
	Dir  string   // absolute; created if missing

	// Stdout and Stderr are absolute paths of files, truncated or created with mode
	// 0600. If they are equal, both go to one file.
	Stdout, Stderr string
	Log            int64 // bytes kept of each, in logs of package kept; 0: kept.Default
	Outputs        Outputs

	Limit grid.Time   // wall-clock span after which it is ended; 0 for none
	Warn  grid.Signal // sent before the limit, if that is known when it starts
	Lease grid.Time   // span after which it is ended unless it is renewed (Client.Renew); 0 for never

	// Terminal gives it a pseudo-terminal as its input, output and errors, which somebody may
	// look at (DialConsole). What it writes there goes to Stdout, too.
	Terminal bool

	// Peers has the task reach the others of its job from a node that is another machine than its
	// daemon's; nil: it does without. Only the shim of a pilot can.
	Peers *Peers

	// Plan says what walls and limits are put around it; nil: none. A shim that cannot
	// put them up does not start it.
	Plan *sandbox.Plan
}

// Outputs says when the files of a task's outputs are made, and what its end says of them.
// Shims of earlier versions make them at once and say nothing.
type Outputs uint8

// What is to become of outputs.
const (
	OutputsAtOnce Outputs = iota
	OutputsTold           // made at once; Ended.Silent says if nothing was written
	// OutputsLate has them made when something is written, standard output with the first byte
	// of either; Ended.Silent says if that never happened. Where that cannot be they are made
	// at once. It is for tasks of the daemon's own account without walls.
	OutputsLate
	outputsUnknown // first number that means nothing
)

// check returns an error that names the first field out of bounds.
func (s *Spec) check() error {
	size := len(s.ID) + len(s.Dir) + len(s.Stdout) + len(s.Stderr) + s.Peers.size()
	for _, list := range [][]string{s.Args, s.Env} {
		for _, v := range list {
			size += len(v) + 4
		}
	}
	switch {
	case len(s.ID) == 0 || len(s.ID) > idMax || strings.ContainsRune(s.ID, 0):
		return fmt.Errorf("task id of %d bytes, want 1 to %d without a zero byte", len(s.ID), idMax)
	case len(s.Args) == 0 || s.Args[0] == "":
		return fmt.Errorf("task %s has no command", s.ID)
	case size > specMax:
		return fmt.Errorf("task %s takes %d bytes, at most %d", s.ID, size, specMax)
	case s.Limit < 0 || s.Limit > grid.SpanMax:
		return fmt.Errorf("task %s: limit of %d µs", s.ID, int64(s.Limit))
	case s.Lease < 0 || s.Lease > grid.SpanMax:
		return fmt.Errorf("task %s: lease of %d µs", s.ID, int64(s.Lease))
	case s.Log < 0 || s.Log > kept.Highest:
		return fmt.Errorf("task %s: logs of %d bytes", s.ID, s.Log)
	}
	if err := s.Peers.check(); err != nil {
		return fmt.Errorf("task %s: %w", s.ID, err)
	}
	for _, path := range []string{s.Dir, s.Stdout, s.Stderr} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("task %s: path %q is not absolute", s.ID, path)
		}
	}
	return nil
}

func (s *Spec) append(dst []byte) []byte {
	dst = appendString(dst, s.ID)
	dst = appendStrings(dst, s.Args)
	dst = appendStrings(dst, s.Env)
	dst = appendString(dst, s.Dir)
	dst = appendString(dst, s.Stdout)
	dst = appendString(dst, s.Stderr)
	dst = binary.AppendUvarint(dst, uint64(s.Limit))
	told := s.Outputs != OutputsAtOnce || s.Peers != nil
	logged := s.Log > 0 || told
	warned := s.Warn != (grid.Signal{}) || s.Terminal || s.Lease > 0 || logged
	if s.Plan == nil && !warned {
		return dst // as shims of before plans know it
	}
	plan, err := json.Marshal(s.Plan)
	if err != nil {
		panic(fmt.Sprintf("shim: plan %+v: %v", s.Plan, err)) // of plain fields only
	}
	dst = appendString(dst, string(plan))
	if !warned {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(s.Warn.Number))
	dst = binary.AppendUvarint(dst, uint64(s.Warn.Before))
	dst = append(dst, 0)
	if s.Warn.First {
		dst[len(dst)-1] = 1
	}
	if !s.Terminal && s.Lease == 0 && !logged {
		return dst
	}
	dst = append(dst, 0)
	if s.Terminal {
		dst[len(dst)-1] = 1
	}
	if s.Lease == 0 && !logged {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(s.Lease))
	if !logged {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(s.Log))
	if !told {
		return dst
	}
	dst = append(dst, byte(s.Outputs))
	if s.Peers == nil {
		return dst
	}
	dst = appendString(dst, s.Peers.Gang)
	dst = binary.AppendUvarint(dst, uint64(s.Peers.Rank))
	return appendStrings(dst, s.Peers.Addresses)
}

func (s *Spec) decode(b []byte) error {
	d := decoder{rest: b}
	*s = Spec{
		ID: d.string(), Args: d.strings(), Env: d.strings(),
		Dir: d.string(), Stdout: d.string(), Stderr: d.string(),
		Limit: grid.Time(d.int(int64(grid.SpanMax))),
	}
	if len(d.rest) > 0 {
		plan := json.NewDecoder(strings.NewReader(d.string()))
		plan.DisallowUnknownFields()                 // a wall that this shim does not know
		if err := plan.Decode(&s.Plan); err != nil { // null: none
			return fmt.Errorf("%w: plan: %w", errEncoding, err)
		}
	}
	if len(d.rest) > 0 {
		s.Warn = grid.Signal{Number: int32(d.int(grid.SignalMax)), Before: grid.Time(d.int(int64(grid.SpanMax))), First: d.int(1) == 1}
	}
	if len(d.rest) > 0 {
		s.Terminal = d.int(1) == 1
	}
	if len(d.rest) > 0 {
		s.Lease = grid.Time(d.int(int64(grid.SpanMax)))
	}
	if len(d.rest) > 0 {
		s.Log = d.int(kept.Highest)
	}
	if len(d.rest) > 0 {
		s.Outputs = Outputs(d.int(int64(outputsUnknown) - 1))
	}
	if len(d.rest) > 0 {
		s.Peers = &Peers{Gang: d.string(), Rank: int(d.int(grid.PeersMax)), Addresses: d.strings()}
	}
	if err := d.end(); err != nil {
		return err
	}
	return s.check()
}

// Cause says what ended a task.
type Cause uint8

// Causes. Numbers are in the journal: append, never renumber.
const (
	CauseExit    Cause = iota // it ended by itself
	CauseSignal               // a signal that the shim did not send
	CauseLimit                // Spec.Limit, or one of its plan
	CauseKill                 // Client.Kill, or the end of the shim in order
	CauseStart                // it could not be started
	CauseLost                 // the shim died while it ran, or the machine did; how it ended is unknown
	CauseLease                // Spec.Lease, not renewed
	causeUnknown              // first number that means nothing
)

var causeNames = [...]string{"exit", "signal", "limit", "kill", "start", "lost", "lease"}

// String returns a word for c.
func (c Cause) String() string { return causeNames[c] }

// Ended says how a task ended, and that nothing of it is left.
type Ended struct {
	ID       string
	ExitCode int32 // 0 to 255; 128+signal if the first process was killed
	Cause    Cause
	Reason   string // for people, empty for CauseExit; at most 256 bytes

	Start, End grid.Time // wall clock; both the instant of the attempt for CauseStart
	// User and System are the CPU time of the first process and of those of its
	// descendants that were waited for; MaxRSS, in bytes, of the largest of them.
	User, System grid.Time
	MaxRSS       int64

	OutputCut bool // stdout or stderr was longer than Spec.Log
	Silent    bool // nothing was written to them; only if Spec.Outputs asks for that
}

func (e *Ended) append(dst []byte) []byte {
	dst = appendString(dst, e.ID)
	dst = binary.AppendUvarint(dst, uint64(e.ExitCode))
	dst = append(dst, byte(e.Cause))
	dst = appendString(dst, e.Reason)
	for _, n := range []int64{int64(e.Start), int64(e.End), int64(e.User), int64(e.System), e.MaxRSS} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	flags := byte(0)
	if e.OutputCut {
		flags |= endedCut
	}
	if e.Silent {
		flags |= endedSilent
	}
	return append(dst, flags)
}

// Bits at the end of an Ended.
const (
	endedCut    = 1
	endedSilent = 2
)

func (e *Ended) decode(b []byte) error {
	d := decoder{rest: b}
	*e = Ended{
		ID: d.string(), ExitCode: int32(d.int(255)), Cause: Cause(d.int(int64(causeUnknown) - 1)), Reason: d.string(),
		Start: grid.Time(d.int(math.MaxInt64)), End: grid.Time(d.int(math.MaxInt64)),
		User: grid.Time(d.int(math.MaxInt64)), System: grid.Time(d.int(math.MaxInt64)),
		MaxRSS: d.int(math.MaxInt64),
	}
	flags := d.int(endedCut | endedSilent)
	e.OutputCut, e.Silent = flags&endedCut != 0, flags&endedSilent != 0
	if len(e.ID) == 0 || len(e.ID) > idMax || len(e.Reason) > reasonMax {
		d.bad = true
	}
	return d.end()
}

// Task is what a shim knows at the moment of Connect.
type Task struct {
	ID      string
	Running bool      // if not, its end comes through Events
	Start   grid.Time // wall clock
}

func (t *Task) append(dst []byte) []byte {
	dst = appendString(dst, t.ID)
	dst = binary.AppendUvarint(dst, uint64(t.Start))
	if t.Running {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func (t *Task) decode(b []byte) error {
	d := decoder{rest: b}
	*t = Task{ID: d.string(), Start: grid.Time(d.int(math.MaxInt64)), Running: d.int(1) == 1}
	if len(t.ID) == 0 || len(t.ID) > idMax {
		d.bad = true
	}
	return d.end()
}

// shorten cuts a reason to what an Ended may carry, at a character's boundary.
func shorten(reason string) string {
	if len(reason) <= reasonMax {
		return reason
	}
	return strings.ToValidUTF8(reason[:reasonMax-3], "") + "..."
}
