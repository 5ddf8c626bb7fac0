package liar

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/market/keepalive"
	"gridnode/node/site"
)

// Keeping has sites say that they have executions of a job of the twin which it does not count on:
// of an epoch before or after the one that it has placed, and that one at another site. It says so
// of each, and renews none (J-3, J-4).
func (t *Twin) Keeping(v *site.View) error {
	at := v.Award.Site
	others := slices.DeleteFunc(slices.Clone(t.Then), func(id grid.SiteID) bool { return id == at })
	if len(others) == 0 {
		return nil
	}
	for _, lie := range [...]struct {
		what  string
		from  grid.SiteID
		epoch uint32
	}{
		{"that was placed anew since", at, v.Epoch - 1},
		{"that was never placed", at, v.Epoch + 1},
		{"that is at another site", others[0], v.Epoch},
	} {
		task := grid.TaskID{Job: v.Job.ID, Epoch: lie.epoch}
		was, _ := t.Site.Glance(v.Job.ID)
		a, there := answer[*keepalive.Renewed](t.hear(lie.from, &keepalive.Renew{
			Stamp: t.Now, Held: []keepalive.Held{{Task: task, Begun: true, Ran: grid.Second}},
		}))
		now, _ := t.Site.Glance(v.Job.ID)
		switch {
		case there && (slices.Contains(a.Renewed, task) || !slices.Contains(a.Unwanted, task)):
			return fmt.Errorf("%s says that it has an execution %s, of job %s, epoch %d, and is not told that it is unwanted: %+v", lie.from, lie.what, task.Job, task.Epoch, a)
		case now.State != was.State || now.Epoch != was.Epoch || now.Award != was.Award:
			return fmt.Errorf("%s says that it has an execution %s, of job %s, epoch %d, and home has it %v with epoch %d, before %v with epoch %d", lie.from, lie.what, task.Job, task.Epoch, now.State, now.Epoch, was.State, was.Epoch)
		}
	}
	return nil
}
