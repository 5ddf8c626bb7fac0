package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"gridnode/grid"
)

// aboutStart tells which job starts, and on whose processors if they are not this site's.
func aboutStart(task *grid.Task) []attribute.KeyValue {
	about := []attribute.KeyValue{keyJob.String(task.ID.Job.String())}
	if task.Pilot.Key != 0 {
		about = append(about, keyPeer.String(string(task.Pilot.Site)))
	}
	return about
}

// Staged takes note of what a task needed having been brought here, or not.
func (t *Tracer) Staged(id grid.TaskID, asked, now grid.Time, err error) {
	if t == nil {
		return
	}
	parent := uint64(0)
	if l := t.lent[id]; l != nil && l.span != nil {
		parent = l.span.id
	} else if j := t.jobs[id.Job]; j != nil {
		parent = t.startOf(j)
	} else {
		return
	}
	why := ""
	if err != nil {
		why = "it could not be brought here"
	}
	t.begin(id.Job, parent, spanStage, trace.SpanKindInternal, asked).end(now, why)
}

// startOf returns the number of the span in which an execution of a job starts, or of what its
// spans are children of.
func (t *Tracer) startOf(j *job) uint64 {
	for i := range j.open {
		if j.open[i].span.name == spanStart {
			return j.open[i].span.id
		}
	}
	return j.base
}

// Span returns the number of the span that an order to a lender about a job is to name, 0 for
// none.
func (t *Tracer) Span(id grid.JobID) uint64 {
	if t == nil {
		return 0
	}
	if j := t.jobs[id]; j != nil {
		return t.startOf(j)
	}
	return 0
}

// Ordered takes note of an order of another site to start a task on processors that it has on
// lease here.
func (t *Tracer) Ordered(id grid.TaskID, span uint64) {
	if t == nil || span == 0 || t.lent[id] != nil {
		return
	}
	if len(t.lent) >= lentMax {
		for id, l := range t.lent { // those that were never launched
			if l.span == nil {
				delete(t.lent, id)
			}
		}
		if len(t.lent) >= lentMax {
			return
		}
	}
	t.lent[id] = &lent{parent: span}
}

// Launched takes note of such a task being started, of so many processes.
func (t *Tracer) Launched(now grid.Time, id grid.TaskID, borrower grid.SiteID, processes int) {
	if t == nil {
		return
	}
	l := t.lent[id]
	if l == nil || l.span != nil {
		return
	}
	l.left = max(processes, 1)
	l.span = t.begin(id.Job, l.parent, spanRun, trace.SpanKindServer, now, keyJob.String(id.Job.String()), keyPeer.String(string(borrower)))
}

// Over takes note of the end of one of its processes, or of all. why is not empty if it could
// not be started.
func (t *Tracer) Over(now grid.Time, id grid.TaskID, all bool, exit int32, why string) {
	if t == nil {
		return
	}
	l := t.lent[id]
	if l == nil || l.span == nil {
		return
	}
	if exit != 0 && why == "" {
		why = "exit code other than 0"
	}
	if l.why == "" {
		l.why, l.exit = why, exit
	}
	if l.left--; l.left > 0 && !all {
		return
	}
	l.span.end(now, l.why, keyExit.Int64(int64(l.exit)))
	delete(t.lent, id)
}
