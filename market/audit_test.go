package market

import (
	"testing"

	"gridnode/grid"
	"gridnode/market/keepalive"
)

// TestAuditTimers: what is waited for without a timer, or for longer than anybody would, is told.
func TestAuditTimers(t *testing.T) {
	task := grid.TaskID{Job: jobID(1), Epoch: 1}
	const now = grid.Hour
	away := func(a *Agent, phase phase) *migrated {
		m := &migrated{job: &grid.Job{ID: task.Job}, award: Award{Epoch: 1, Until: now + grid.Hour, Lease: keepalive.Default}, phase: phase}
		m.heard(now)
		a.away.jobs[task.Job] = m
		return m
	}
	placed := func(a *Agent) *placement {
		p := a.broker.newPlacement(&grid.Job{ID: task.Job})
		a.broker.placing[task.Job] = p
		return p
	}
	for _, tt := range []struct {
		name  string
		spoil func(a *Agent)
		wrong bool
	}{
		{"nothing", func(*Agent) {}, false},
		{"a guarantee without a timer", func(a *Agent) { a.provider.admission.holds[task.Job] = &hold{task: task, expires: now} }, true},
		{"a result that is not told again", func(a *Agent) { a.provider.jobs[task.Job] = &remote{task: task, over: true} }, true},
		{"a result that is told again", func(a *Agent) {
			r := &remote{task: task, over: true}
			a.provider.jobs[task.Job] = r
			a.office.timers.Set(&r.timer, now+backoffResult)
		}, false},
		{"a result that is told again too late", func(a *Agent) {
			r := &remote{task: task, over: true}
			a.provider.jobs[task.Job] = r
			a.office.timers.Set(&r.timer, now+2*backoffResult)
		}, true},
		{"a job elsewhere without a timer", func(a *Agent) { away(a, running) }, true},
		{"a job elsewhere", func(a *Agent) {
			m := away(a, running)
			a.office.timers.Set(&m.timer, m.dead)
		}, false},
		{"a job that is sent again too late", func(a *Agent) {
			m := away(a, submitting)
			a.office.timers.Set(&m.timer, m.dead)
		}, true},
		{"a job that is waited for for ever", func(a *Agent) {
			m := away(a, running)
			m.dead = grid.Never
			a.office.timers.Set(&m.timer, now)
		}, true},
		{"a last call for ever", func(a *Agent) {
			m := away(a, submitting)
			m.lastCall = true
			a.office.timers.Set(&m.timer, now+grid.Minute)
		}, true},
		{"a placement that waits for nothing", func(a *Agent) { placed(a) }, true},
		{"one that waits for an answer without a timer", func(a *Agent) {
			placed(a).asks = []ask{{site: "x", standing: StandingAsked, deadline: now}}
		}, true},
		{"one that waits for its turn where nothing is under way", func(a *Agent) {
			p, e := placed(a), a.office.memory.at("x")
			p.waiting = e
			e.waiting.push(p)
		}, true},
		{"one that waits for its turn", func(a *Agent) {
			p, e := placed(a), a.office.memory.at("x")
			p.waiting, e.underWay = e, 8
			e.waiting.push(p)
		}, false},
		{"one that stands in no queue", func(a *Agent) {
			p, e := placed(a), a.office.memory.at("x")
			p.waiting, e.underWay = e, 8
		}, true},
		{"an execution of which home hears", func(a *Agent) { a.provider.held.Enter(now, "x", task, grid.Hour, now+grid.Hour) }, false},
		{"one of which home hears too late", func(a *Agent) { a.provider.held.Enter(now+2*grid.Hour, "x", task, grid.Hour, now+3*grid.Hour) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNetwork(t)
			s := n.add(Config{Offer: Offer{Site: "self", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit}}, 0)
			tt.spoil(s.agent)
			if err := AuditTimers(now, s.agent); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSpansOnTheWire: another site has less than what is left until a deadline, as messages take their
// time, and a result says how long it ran and how long ago it ended.
func TestSpansOnTheWire(t *testing.T) {
	const now = grid.Hour
	n := newNetwork(t)
	a := n.add(Config{Offer: Offer{Site: "self", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit}, Allowance: 2 * grid.Second}, 0).agent
	if left := a.broker.remaining(now, &grid.Job{Deadline: now + grid.Minute}); left != grid.Minute-2*grid.Second {
		t.Errorf("a minute is left, and %v are said to be", left)
	}
	var out grid.Outbox
	r := &remote{home: "x", task: grid.TaskID{Job: jobID(1), Epoch: 1}, over: true, result: grid.Result{Start: now - 10*grid.Minute, End: now - 3*grid.Minute}}
	a.provider.report(now, r, &out)
	if m := out.Sends[0].Message.(*JobCompletion); m.Run != 7*grid.Minute || m.Ago != 3*grid.Minute {
		t.Errorf("it ran for 7 min until 3 min ago, and is said to have for %v until %v ago", m.Run, m.Ago)
	}
}
