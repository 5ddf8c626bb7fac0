package pilot

import (
	"strings"
	"testing"

	"gridnode/grid"
)

// TestAudit: what is forgotten in a core is found. That nothing is found in one that is in order
// TestAnythingMayHappen shows.
func TestAudit(t *testing.T) {
	id := grid.TaskID{Job: grid.JobID{Lo: 7}, Epoch: 1}
	away, here := grid.SquadTask(id, 0), grid.SquadTask(id, 1)
	for _, tt := range []struct {
		name  string
		spoil func(c *Core)
		want  string // in the error; empty: none
	}{
		{"in order", func(*Core) {}, ""},
		{"a timer may be late", func(c *Core) { c.gangs.all[id].due, c.gangs.all[id].alarm = -auditLate, grid.Alarm[*gang]{} }, "its timer"},

		{"nobody has processors", func(c *Core) { c.keeper.pilots[1].used++ }, "its tasks have 3"},
		{"more than there are", func(c *Core) { c.keeper.pilots[1].processors = 2 }, "3 of 2"},
		{"over", func(c *Core) { c.keeper.pilots[1].tasks[id].state = heldOver }, "is over and has 3"},
		{"unknown", func(c *Core) { c.keeper.pilots[1].unknown++ }, "count as such"},
		{"waits", func(c *Core) { c.keeper.pilots[1].waiting = make([]Ordered, 1) }, "nobody dials"},
		{"down", func(c *Core) { c.keeper.pilots[1].state = keptDown }, "its pilot is not"},
		{"needs", func(c *Core) {
			c.keeper.pilots[1].tasks[id].task = &grid.Task{Job: &grid.Job{Resources: grid.Resources{Processors: 2}}}
		}, "needs 2"},
		{"ready", func(c *Core) { t := c.keeper.pilots[1].tasks[id]; t.state, t.goes = heldReady, true }, "has not started"},
		{"pilots", func(c *Core) { c.keeper.borrowers["b"].pilots++ }, "counts as having"},

		{"no link", func(c *Core) { delete(c.user.links, "b") }, "no link"},
		{"nothing to do", func(c *Core) { c.user.links["c"] = &link{site: "c"} }, "0 tasks run at c"},
		{"not again", func(c *Core) { c.user.links["b"].state = linkPaused; c.user.tasks[away].sent = 0 }, "is to be connected again"},
		{"no session", func(c *Core) { c.user.links["b"].state = linkConnecting }, "there is no session"},
		{"not over", func(c *Core) { c.user.tasks[away].safe = 1 }, "is not over"},
		{"not sent", func(c *Core) { c.user.tasks[away].held = false }, "needs order"},
		{"not retried", func(c *Core) { c.user.tasks[away].sent = 0 }, "needs order"},

		{"failed", func(c *Core) { c.gangs.all[id].squads[1].roll.failed = true }, "the others go on"},
		{"ended", func(c *Core) { c.gangs.all[id].squads[0].roll.left, c.gangs.all[id].squads[1].roll.left = 0, 0 }, "it is not over"},
		{"goes on", func(c *Core) { c.gangs.all[id].failure = new(failure) }, "goes on"},
		{"survives", func(c *Core) { g := c.gangs.all[id]; g.kill, g.state = true, gangEnding }, "were not told"},
		{"all ready", func(c *Core) { c.gangs.all[id].squads[0].ready, c.gangs.all[id].squads[1].ready = true, true }, "has not started"},
		{"late", func(c *Core) { c.gangs.all[id].due = -2 * auditLate }, "was to until"},
		{"no timer", func(c *Core) { c.gangs.waiting.Stop(&c.gangs.all[id].alarm) }, "its timer"},
		{"nowhere", func(c *Core) {
			delete(c.user.links["b"].tasks, away)
			delete(c.user.tasks, away)
			delete(c.user.links, "b")
		}, "runs anywhere"},
		{"over there", func(c *Core) { c.user.tasks[away].over = true }, "counts as running"},
		{"held there", func(c *Core) { c.gangs.all[id].squads[0].begun = true }, "is held"},
		{"goes on there", func(c *Core) { c.gangs.all[id].squads[0].killed = true }, "goes on"},
		{"refused there", func(c *Core) {
			u, q := c.user, c.gangs.all[id].squads[0]
			q.ready, u.tasks[away].sent, u.tasks[away].retry = true, 0, 1
			u.retry(u.links["b"], 1)
		}, "counts as ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, out := New(Config{Self: "a"}), new(Outbox)
			c.Step(0, &Keep{Key: 1, Borrower: "b", Processors: 4}, out)
			p := c.keeper.pilots[1]
			p.state, p.used, p.tasks[id] = keptUp, 3, &held{id: id, state: heldRunning, processors: 3}
			job := &grid.Job{ID: id.Job, Tasks: 2, Resources: grid.Resources{Processors: 2}}
			c.Step(0, &Start{Task: grid.Task{ID: id, Job: job, Gang: &grid.Gang{Task: id, Each: 1, Parts: []grid.GangPart{
				{Site: "b", Processors: 1, Pilot: grid.Pilot{Site: "b", Key: 9}}, {Site: "a", Processors: 1},
			}}}}, out)
			c.Step(0, &Connected{Site: "b", Session: c.user.links["b"].session}, out)
			if c.gangs.all[id].squads[1].id != here {
				t.Fatal("the other squad is not of this site")
			}
			tt.spoil(c)
			err := c.Audit(0)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
