package run

import (
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

// execution is one run of a task. A task whose process has vanished is run once more
// under the same TaskID: only by the name does an end say of which run it is.
type execution struct {
	name string      // to the shim
	home grid.SiteID // of the job; empty if it is not known any more
}

// newName names an execution as no other was named before, not even before a restart:
// the clock has moved on since. The caller holds p.mu.
func (p *Processes) newName(id grid.TaskID) string {
	p.names = max(p.names+1, time.Now().UnixMicro())
	return TaskName(id) + "." + strconv.FormatInt(p.names, 36)
}

// executionOf returns the task that a name of newName is about, or one without a number.
func executionOf(name string) (grid.TaskID, error) {
	job, rest, _ := strings.Cut(name, ".")
	epoch, _, _ := strings.Cut(rest, ".")
	return taskOf(job + "." + epoch)
}
