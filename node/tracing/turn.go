package tracing

import (
	"slices"

	"go.opentelemetry.io/otel/trace"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/market/bank"
)

// Names of spans.
const (
	spanJob    = "job"
	spanSubmit = "submit"
	spanLookUp = "look-up"
	spanAsk    = "ask"
	spanAnswer = "answer"
	spanAward  = "award"
	spanQueue  = "queue"
	spanStart  = "start"
	spanStage  = "stage"
	spanRun    = "run"
	spanEnd    = "end"
	spanPay    = "pay"
	spanBank   = "bank"
)

// Steps of paying.
const (
	stepCheque = "cheque"
	stepRedeem = "redeem"
)

// Input looks at an input before the site has it.
func (t *Tracer) Input(now grid.Time, in grid.Input) {
	if t == nil {
		return
	}
	switch in := in.(type) {
	case *grid.Delivery:
		t.delivered(now, in)
	case *grid.Undelivered:
		if about, ok := in.Message.(grid.JobMessage); ok {
			t.undelivered(now, in.To, about)
		}
	}
}

func (t *Tracer) delivered(now grid.Time, in *grid.Delivery) {
	about, ok := in.Message.(grid.JobMessage)
	if !ok {
		return
	}
	id := about.ForJob()
	switch m := in.Message.(type) {
	case *market.Negotiate, *market.JobSubmission, *bank.Draw, *bank.Redeem:
		if in.Span == 0 || len(t.served) >= servedMax {
			return
		}
		s := served{kind: m.MessageKind(), job: id, from: in.From, span: in.Span, at: now}
		if submission, ok := m.(*market.JobSubmission); ok {
			s.bill = submission.Cheque != nil
		}
		t.served = append(t.served, s)
		return
	}
	j := t.jobs[id]
	if j == nil {
		return
	}
	j.heard = now
	switch m := in.Message.(type) {
	case *market.Reply:
		j.end(spanAsk, in.From, m.Task.Epoch, now, "", keyAnswer.String(m.Refusal.String()))
	case *market.Acknowledge:
		t.acknowledged(now, j, in.From, m)
	case *bank.Drawn:
		j.end(spanPay, in.From, m.Task.Epoch, now, refused(m.Refusal))
	case *bank.Redeemed:
		j.end(spanPay, in.From, m.Task.Epoch, now, refused(m.Refusal))
		if !j.home {
			t.over = append(t.over, id)
		}
	}
}

// acknowledged: home has the result of a job, or a site has it.
func (t *Tracer) acknowledged(now grid.Time, j *job, from grid.SiteID, m *market.Acknowledge) {
	switch {
	case m.Of == wire.MarketJobSubmission:
		why := ""
		if m.Unknown {
			why = "it does not know its guarantee any more"
		}
		j.end(spanAward, from, m.Task.Epoch, now, why)
	case m.Of == wire.MarketJobCompletion && !j.home:
		j.end(spanEnd, "", m.Task.Epoch, now, "")
		if !j.bills || m.Agreement == nil {
			t.over = append(t.over, j.id)
		}
	}
}

// refused returns why a bank has refused, if it has.
func refused(r bank.Refusal) string {
	if r == 0 {
		return ""
	}
	return r.String()
}

// undelivered ends what waited for the answer to a message that never arrived.
func (t *Tracer) undelivered(now grid.Time, to grid.SiteID, message grid.JobMessage) {
	j := t.jobs[message.ForJob()]
	if j == nil {
		return
	}
	const why = "the site cannot be reached"
	switch m := message.(type) {
	case *market.Negotiate:
		j.end(spanAsk, to, m.Task.Epoch, now, why)
	case *market.JobSubmission:
		j.end(spanAward, to, m.Epoch, now, why)
	}
}

// Effects looks at what a turn has ordered before it is carried out, and returns the span that
// each message of out.Sends is to name, 0 for none. The slice holds until the next call.
func (t *Tracer) Effects(now grid.Time, out *grid.Outbox) []uint64 {
	if t == nil {
		return nil
	}
	t.spans = append(t.spans[:0], make([]uint64, len(out.Sends))...)
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			t.spans[e.Index] = t.sent(now, &out.Sends[e.Index])
		case grid.EffectStart:
			t.starts(now, &out.Tasks[e.Index])
		case grid.EffectTell:
			t.told(now, &out.Events[e.Index])
		}
	}
	t.served = t.served[:0]
	for _, id := range t.over {
		if j := t.jobs[id]; j != nil {
			j.endAll(now, "", "")
			delete(t.jobs, id)
			t.foreign-- // no other is on that list
		}
	}
	t.over = t.over[:0]
	if now-t.swept >= sweepSpan {
		t.sweep(now)
	}
	return t.spans
}

// sweep forgets the jobs of other sites of which nothing was heard for long.
func (t *Tracer) sweep(now grid.Time) {
	t.swept = now
	for id, j := range t.jobs {
		runs := slices.ContainsFunc(j.open, func(o open) bool { return o.span.name == spanStart })
		if j.home || runs || now-j.heard < idleMax {
			continue
		}
		j.endAll(now, "its home has not said that it has the result", "")
		delete(t.jobs, id)
		t.foreign--
	}
}

// sent looks at a message, and returns the span that it is to name.
func (t *Tracer) sent(now grid.Time, s *grid.Send) uint64 {
	about, ok := s.Message.(grid.JobMessage)
	if !ok {
		return 0
	}
	j := t.jobs[about.ForJob()]
	switch m := s.Message.(type) {
	case *market.Reply:
		t.answer(now, s.To, spanAnswer, wire.MarketNegotiate, m.Task.Job, m.Refusal.String())
	case *bank.Drawn:
		t.answer(now, s.To, spanBank, wire.BankDraw, m.Task.Job, m.Refusal.String())
	case *bank.Redeemed:
		t.answer(now, s.To, spanBank, wire.BankRedeem, m.Task.Job, m.Refusal.String())
	case *market.Acknowledge:
		if m.Of == wire.MarketJobSubmission && !m.Unknown {
			t.accepted(s.To, m)
		}
	case *market.Negotiate:
		if j != nil && j.home {
			return t.ensure(j, now, spanAsk, trace.SpanKindClient, s.To, m.Task.Epoch)
		}
	case *market.JobSubmission:
		if j != nil && j.home {
			return t.ensure(j, now, spanAward, trace.SpanKindClient, s.To, m.Epoch)
		}
	case *bank.Draw:
		if j != nil && !m.Withdrawn {
			return t.ensure(j, now, spanPay, trace.SpanKindClient, s.To, m.Task.Epoch, keyStep.String(stepCheque))
		}
	case *bank.Redeem:
		if j != nil {
			return t.ensure(j, now, spanPay, trace.SpanKindClient, s.To, m.Cheque.Task.Epoch, keyStep.String(stepRedeem))
		}
	}
	return 0
}

// question returns the place of a question of this turn, -1 if it was not traced.
func (t *Tracer) question(from grid.SiteID, kind grid.Kind, id grid.JobID) int {
	return slices.IndexFunc(t.served, func(s served) bool { return s.kind == kind && s.job == id && s.from == from })
}

// answer makes the span of a question that was answered.
func (t *Tracer) answer(now grid.Time, to grid.SiteID, name string, kind grid.Kind, id grid.JobID, said string) {
	i := t.question(to, kind, id)
	if i < 0 {
		return
	}
	s := t.served[i]
	t.served = slices.Delete(t.served, i, i+1)
	t.begin(id, s.span, name, trace.SpanKindServer, s.at, keyPeer.String(string(to)), keyAnswer.String(said)).end(now, "")
}

// accepted enters a job of another site.
func (t *Tracer) accepted(home grid.SiteID, m *market.Acknowledge) {
	i := t.question(home, wire.MarketJobSubmission, m.Task.Job)
	if i < 0 {
		return
	}
	s := t.served[i]
	switch known := t.jobs[s.job]; {
	case known != nil && (known.home || known.base == s.span), known == nil && (len(t.jobs) >= jobsMax || t.foreign >= foreignMax):
		return
	case known == nil:
		t.foreign++
	}
	t.jobs[s.job] = &job{id: s.job, base: s.span, since: s.at, bills: s.bill, heard: s.at}
}

// starts looks at a task that starts.
func (t *Tracer) starts(now grid.Time, task *grid.Task) {
	if task.Job == nil {
		return // a pilot
	}
	j := t.jobs[task.ID.Job]
	if j == nil && task.Job.Home == t.self {
		j = t.own(task.Job)
	}
	if j == nil || j.find(spanStart, "", task.ID.Epoch) != nil {
		return
	}
	j.heard = now
	if j.since > 0 {
		t.made(j, spanQueue, j.since, now)
		j.since = 0
	}
	t.ensure(j, now, spanStart, trace.SpanKindInternal, "", task.ID.Epoch, aboutStart(task)...)
}

// told looks at what has become of a job.
func (t *Tracer) told(now grid.Time, e *grid.Event) {
	j := t.jobs[e.Job.ID]
	if j == nil && e.Job.Home == t.self {
		j = t.own(e.Job)
	}
	if j == nil {
		return
	}
	j.heard = now
	switch e.Kind {
	case grid.JobSubmitted:
		t.made(j, spanSubmit, e.Job.Submit, now)
		j.since = now
	case grid.JobPlaced:
		j.since = now
		if e.Site != t.self {
			j.since = 0
			t.ensure(j, now, spanAward, trace.SpanKindClient, e.Site, e.Epoch)
		}
		j.endAll(now, "another site has the job", spanAsk)
	case grid.JobEnded:
		t.ended(j, e)
	case grid.JobReplaced:
		j.endAll(now, "the job is placed anew", "")
		j.since = now
	case grid.JobFinished, grid.JobCancelled, grid.JobRefused:
		t.finished(now, j, e)
	}
}

// ended makes what is known of an execution once it is over.
func (t *Tracer) ended(j *job, e *grid.Event) {
	r := &e.Result
	if o := j.find(spanStart, "", e.Epoch); o != nil {
		why := ""
		if r.Start == 0 {
			why = "it never began"
		}
		j.end(spanStart, "", e.Epoch, max(r.Start, o.span.from), why)
	}
	if r.Start > 0 {
		why := ""
		if r.ExitCode != 0 {
			why = "exit code other than 0"
		}
		t.begin(j.id, j.base, spanRun, trace.SpanKindInternal, r.Start, keyExit.Int64(int64(r.ExitCode))).end(r.End, why)
	}
	t.ensure(j, r.End, spanEnd, trace.SpanKindInternal, "", e.Epoch)
}

// finished ends the trace of a job of this site.
func (t *Tracer) finished(now grid.Time, j *job, e *grid.Event) {
	if !j.home {
		return
	}
	if o := j.find(spanEnd, "", e.Epoch); o != nil {
		j.end(spanEnd, "", e.Epoch, now, "")
	}
	j.endAll(now, "the job is over", "")
	delete(t.jobs, j.id)
	why := ""
	if e.Kind != grid.JobFinished || e.Result.ExitCode != 0 {
		why = "the job was " + e.Kind.String()
	}
	first := t.begin(j.id, 0, spanJob, trace.SpanKindInternal, e.Job.Submit,
		keyJob.String(j.id.String()), keyNumber.Int64(int64(e.Job.Number)), keyProcessors.Int64(e.Job.Processors), keyState.String(e.Kind.String()),
		keyExit.Int64(int64(e.Result.ExitCode)), keyMessages.Int64(int64(e.Messages)))
	first.id = j.base
	first.end(now, why)
}

// Sought takes note of quotes that were looked up for a job of this site; see market.Config.
func (t *Tracer) Sought(of *grid.Job, asked, now grid.Time, quotes int, err error) {
	j := t.own(of)
	if j == nil {
		return
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	t.begin(j.id, j.base, spanLookUp, trace.SpanKindInternal, asked, keyQuotes.Int(quotes)).end(now, why)
}
