package run

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

// Process names a process: a task, or one of the tasks of a squad by its number there.
type Process struct {
	Task   grid.TaskID
	Number int // 0 of what is no squad
}

// Name names it to the shim and in the file system.
func (x Process) Name() string {
	if _, _, squad := grid.SquadOf(x.Task); squad {
		return TaskName(x.Task) + "-" + strconv.Itoa(x.Number)
	}
	return TaskName(x.Task)
}

// Compare orders processes by task and number.
func (x Process) Compare(y Process) int {
	return cmp.Or(x.Task.Compare(y.Task), cmp.Compare(x.Number, y.Number))
}

// processOf is the inverse of Process.Name.
func processOf(name string) (Process, error) {
	name, number, numbered := strings.Cut(name, "-")
	id, err := taskOf(name)
	if err != nil || !numbered {
		return Process{Task: id}, err
	}
	n, err := strconv.ParseUint(number, 10, 31)
	return Process{id, int(n)}, err
}

// Ended says that a task is gone; Number is its own in its squad, or pilot.Whole.
type Ended struct {
	grid.TaskEnded
	Number int
	Output string // how the paths of its outputs begin; empty: it has none
}

// lostEnd says that a task has vanished.
func lostEnd(x Process) *Ended {
	return &Ended{TaskEnded: grid.TaskEnded{ID: x.Task, Lost: true}, Number: x.Number}
}

// Found is a task of an earlier run of the daemon that still runs.
type Found struct {
	Process
	Start grid.Time
}

// tasksOf returns how many processes a task is.
func tasksOf(t *grid.Task) int {
	if t.Squad != nil {
		return t.Squad.Tasks()
	}
	return 1
}

// sizes is how many processes there are of squads.
type sizes map[grid.TaskID]int

// add notes that a process is there.
func (s sizes) add(x Process) {
	if _, _, squad := grid.SquadOf(x.Task); squad {
		s[x.Task] = max(s[x.Task], x.Number+1)
	}
}

// of returns the processes of a task: one if it is no squad.
func (s sizes) of(id grid.TaskID) iter.Seq[Process] {
	return func(yield func(Process) bool) {
		n := s[id]
		if _, _, squad := grid.SquadOf(id); !squad {
			n = 1
		}
		for number := range n {
			if !yield(Process{id, number}) {
				return
			}
		}
	}
}

// execution is one run of a process. A task whose process has vanished is run once more
// under the same TaskID: only by the name does an end say of which run it is.
type execution struct {
	name    string // to the shim
	scratch string // its directory; empty if it is not known any more
	output  string // how the paths of its outputs begin; the same
	keeps   bool   // what is left there is kept
	reuse   bool   // another job may have it, if nothing is left there
	over    bool   // it has ended, and is told as soon as what it has left is settled
}

// newName names an execution as no other was named before, not even before a restart:
// the clock has moved on since. The caller holds p.mu.
func (p *Processes) newName(x Process) string {
	p.names = max(p.names+1, time.Now().UnixMicro())
	return x.Name() + "." + strconv.FormatInt(p.names, 36)
}

// ExecutionOf returns the process that a name of newName is about, or one without a
// serial number.
func ExecutionOf(name string) (Process, error) {
	job, rest, _ := strings.Cut(name, ".")
	process, _, _ := strings.Cut(rest, ".")
	return processOf(job + "." + process)
}
