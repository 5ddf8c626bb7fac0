package pilot

import (
	"cmp"
	"fmt"
	"strings"

	"gridnode/grid"
)

// name names a task as transcripts do.
func name(id grid.TaskID) string {
	if gang, part, squad := grid.SquadOf(id); squad {
		return fmt.Sprintf("%s/%d", name(gang), part)
	}
	return fmt.Sprintf("j%d", id.Job.Lo)
}

// member names a task of a squad, or what is none.
type member struct {
	id     grid.TaskID
	number int
}

func (m member) compare(o member) int {
	return cmp.Or(m.id.Compare(o.id), cmp.Compare(m.number, o.number))
}

func (m member) String() string {
	if _, _, squad := grid.SquadOf(m.id); squad {
		return fmt.Sprintf("%s.%d", name(m.id), m.number)
	}
	return name(m.id)
}

func names(ids []grid.TaskID) string {
	texts := make([]string, len(ids))
	for i := range ids {
		texts[i] = name(ids[i])
	}
	return strings.Join(texts, " ")
}

// describe says what an effect orders; nothing of messages, which are shown when they
// arrive.
func describe(e Effect) string {
	switch e := e.(type) {
	case Dial:
		return fmt.Sprintf("dial pilot %d", e.Key)
	case Launch:
		return fmt.Sprintf("launch %s on pilot %d", several(&e.Task), e.Key)
	case Stop:
		return fmt.Sprintf("stop %s: %s", name(e.ID), e.Reason)
	case Forget:
		return "forget " + name(e.ID)
	case Prepare:
		return fmt.Sprintf("prepare %s for %s", name(e.Task.ID), e.Home)
	case Disband:
		return fmt.Sprintf("disband %s of %s", name(e.Gang), e.Home)
	case Follow:
		return fmt.Sprintf("send the outputs of %s", name(e.ID))
	case Hangup:
		return fmt.Sprintf("hang up on %s", e.To)
	case Connect:
		return fmt.Sprintf("connect to %s", e.Site)
	case Disconnect:
		return fmt.Sprintf("disconnect from %s", e.Site)
	case Begin:
		return fmt.Sprintf("note that %s has begun", name(e.ID))
	case Gather:
		return fmt.Sprintf("gather %s", name(e.Task.ID))
	case StartOwn:
		return "start " + several(&e.Task)
	case KillOwn:
		return fmt.Sprintf("kill %s: %s", name(e.Task.ID), e.Task.Cause)
	case AcknowledgeOwn:
		return "acknowledge " + names(e.IDs)
	case Finish:
		return "finish the outputs of " + name(e.Gang)
	case Clear:
		return "clear " + name(e.Gang)
	case Ended:
		return "the site learns: " + describeEnd(&e.Ended)
	}
	return ""
}

// several names a task with how many it is.
func several(t *grid.Task) string {
	if n := tasksOf(t); n > 1 {
		return fmt.Sprintf("%s (%d tasks)", name(t.ID), n)
	}
	return name(t.ID)
}

func describeEnd(e *grid.TaskEnded) string {
	if e.Lost {
		return name(e.ID) + " is lost"
	}
	text := fmt.Sprintf("%s ended %d", name(e.ID), e.Result.ExitCode)
	if e.Result.Reason != "" {
		text += ": " + e.Result.Reason
	}
	return text
}

func describeOrder(o *Order) string {
	words := map[OrderKind]string{OrderRun: "run", OrderKill: "kill", OrderAcknowledge: "acknowledge", OrderPrepare: "prepare"}
	text := words[o.Kind] + " " + name(o.ID)
	if o.Resume {
		text += " resume"
	}
	return text
}

func describeReport(r *Report) string {
	words := map[ReportKind]string{
		ReportBegun: "begun", ReportEnded: "ended", ReportLost: "lost", ReportRefused: "refused", ReportReady: "ready",
		ReportForgotten: "forgotten", ReportSuperseded: "superseded",
	}
	text := words[r.Kind] + " " + name(r.ID)
	if r.Kind == ReportEnded {
		text += fmt.Sprintf(" %d", r.End.ExitCode)
	}
	if reason := r.Reason + r.End.Reason; reason != "" {
		text += ": " + reason
	}
	return text
}
