package pilot

import (
	"strings"
	"testing"

	"gridnode/grid"
)

// TestAuditBarrier: a gang is found that waits for its tasks to be ready for longer than it was to.
func TestAuditBarrier(t *testing.T) {
	c := New(Config{Self: "a"})
	id := grid.TaskID{Job: grid.JobID{Lo: 7}, Epoch: 1}
	c.gangs.all[id] = &gang{id: id, state: gangWaiting, due: grid.Minute}
	if err := c.Audit(grid.Minute + auditLate); err != nil {
		t.Errorf("as it is due: %v", err)
	}
	if err := c.Audit(grid.Minute + auditLate + 1); err == nil {
		t.Error("nothing is found")
	}
	if c.gangs.all[id].state = gangEnding; c.Audit(grid.Hour) != nil {
		t.Error("a gang that is ending waits for nobody")
	}
}

// TestAudit: processors that count as used and that no task has are found, as are those of a
// task that is over.
func TestAudit(t *testing.T) {
	id := grid.TaskID{Job: grid.JobID{Lo: 7}, Epoch: 1}
	for _, tt := range []struct {
		name string
		kept kept
		want string // in the error; empty: none
	}{
		{"runs", kept{processors: 4, used: 3, tasks: map[grid.TaskID]*held{id: {id: id, state: heldRunning, processors: 3}}}, ""},
		{"nobody has them", kept{processors: 4, used: 3}, "its tasks have 0"},
		{"more than there are", kept{processors: 2, used: 3, tasks: map[grid.TaskID]*held{id: {id: id, state: heldRunning, processors: 3}}}, "3 of 2"},
		{"over", kept{processors: 4, used: 3, tasks: map[grid.TaskID]*held{id: {id: id, state: heldOver, processors: 3}}}, "is over and has 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Self: "a"})
			c.keeper.pilots[1] = &tt.kept
			err := c.Audit(0)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
