package node

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"gridnode/grid"
	logged "gridnode/node/history"
	"gridnode/node/member"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/tracing"
)

// turnMax bounds the inputs of one turn, of our own and of others, and turnTime the time
// in which those of others are stepped: an answer waits for the end of its turn.
const (
	turnMax  = 512
	turnTime = 2 * time.Millisecond
)

// spinMax is how many turns without any input may follow each other at once. A site
// asks for one or two; more are a defect that must not take a whole processor.
const (
	spinMax   = 100
	spinPause = time.Millisecond
)

// loop is the only goroutine that touches the site. It makes turns: take the inputs
// that are there, read the clock, step each, tick, make what they saved durable
// in one commit, and only then carry out the rest.
type loop struct {
	h     *Host
	site  *site.Site
	store *store.Store // nil: nothing is kept
	exec  Executor
	clock clock

	inputs []grid.Input
	ended  []grid.TaskID   // stepped in this turn
	tracer *tracing.Tracer // nil: nothing is traced
	out    grid.Outbox
	coded  int  // effects whose records are in the batch
	lines  bool // of the job log are among them
	batch  store.Batch
	value  []byte
	steps  atomic.Int64
	looks  []*look // that end with this turn
	failed error   // why the loop has to end; see halt
}

// halt is the input that ends the loop with an error: nothing of its turn leaves.
type halt struct{ err error }

// run makes turns until the host stops. It returns nil if that was asked for, and
// otherwise what makes going on impossible.
func (l *loop) run() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	spins := 0
	for {
		wait := l.wait()
		if wait <= 0 && spins < spinMax {
			spins++
		} else {
			if wait <= 0 {
				wait = spinPause
				l.h.log.Error("the site wants a tick again and again: this is a defect, please report it", "timer", int64(l.site.NextTimer()))
			}
			spins = 0
			timer.Reset(wait)
			select {
			case <-l.h.inbox.arrived:
			case <-timer.C:
			case <-l.h.quit:
				return nil
			}
		}
		if err := l.turn(); err != nil {
			return err
		}
	}
}

// wait returns how long until the site needs a tick.
func (l *loop) wait() time.Duration {
	next := l.site.NextTimer()
	if l.h.pilots != nil {
		next = min(next, l.h.pilots.core.NextTimer())
	}
	if next == grid.Never {
		return time.Hour // costs nothing, and needs no second case
	}
	return (next - l.clock.now()).Duration()
}

// turn makes one turn. A panic of a core is a broken invariant: nothing of the turn
// leaves, and the host stops.
func (l *loop) turn() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a defect, please report it: %v\n%s", p, debug.Stack())
		}
	}()
	now := l.clock.now()
	all, aside := 0, 0 // aside: inputs that the site does not see
	take := func(in grid.Input) {
		all++
		if !l.take(now, in) {
			aside++
			now = l.clock.now() // who looks at the site says when, and moves it there
		}
	}
	l.inputs = l.h.inbox.takeOwn(l.inputs[:0], turnMax)
	for _, in := range l.inputs {
		take(in)
	}
	clear(l.inputs)
	begun := time.Now()
	for last := begun; all < 2*turnMax && last.Sub(begun) < turnTime; {
		in, payer := l.h.inbox.next()
		if in == nil {
			break
		}
		if payer.among == &l.h.inbox.users {
			l.early()
		}
		take(in)
		done := time.Now()
		l.h.inbox.pay(payer, done.Sub(last))
		last = done
	}
	l.h.inbox.rest()
	if l.failed != nil {
		return l.failed
	}
	if aside == all && aside > 0 {
		l.pilots(now) // the site's time can wait for its timer
	} else if err := l.finish(now); err != nil {
		return err
	}
	for _, look := range l.looks {
		close(look.done)
	}
	clear(l.looks)
	l.looks = l.looks[:0]
	return nil
}

// early carries out what the turn has ordered so far if none of it is to be saved first.
// Most of what users ask is: answers to peers need not wait until that is durable.
func (l *loop) early() {
	if l.batch.Len() == 0 && len(l.out.Effects) > 0 {
		l.carryOut()
		l.out.Reset()
		l.coded = 0
	}
}

// take has an input taken, and reports whether the site saw it.
func (l *loop) take(now grid.Time, in grid.Input) bool {
	switch in := in.(type) {
	case *look:
		in.at(l.site)
		if in.told {
			l.looks = append(l.looks, in)
		} else {
			close(in.done)
		}
		return false
	case *halt:
		l.failed = in.err
		return false
	case *pilotInput:
		l.h.pilots.take(in)
		return false
	case *grid.TaskEnded:
		l.ended = append(l.ended, in.ID)
	case *site.Submit:
		if l.full(in) {
			return true
		}
	}
	l.tracer.Input(now, in)
	l.step(now, in)
	return true
}

// pilots ends a turn of the pilots' core.
func (l *loop) pilots(now grid.Time) {
	if l.h.pilots != nil {
		l.h.pilots.tick(now)
		l.h.pilots.carryOut()
	}
}

// full answers a submission for which the disk has no room.
func (l *loop) full(in *site.Submit) bool {
	if l.store == nil {
		return false
	}
	err := l.store.Space()
	if err == nil {
		return false
	}
	l.out.Answer(in.Token, &site.Submitted{ID: in.Job.ID, Err: fmt.Errorf("%w: %w", site.ErrSpace, err)})
	return true
}

// step applies one input and encodes what it saved, before the next step changes it.
func (l *loop) step(now grid.Time, in grid.Input) {
	l.site.Step(now, in, &l.out)
	l.steps.Add(1)
	l.encode()
}

func (l *loop) encode() {
	for ; l.coded < len(l.out.Effects); l.coded++ {
		if l.store == nil {
			continue
		}
		e := l.out.Effects[l.coded]
		switch e.Kind {
		case grid.EffectSave:
			record := l.out.Records[e.Index]
			l.value = record.AppendRecord(l.value[:0])
			key := record.RecordKey()
			l.batch.Set(key, l.value)
			l.lines = l.lines || strings.HasPrefix(key, logged.Prefix)
		case grid.EffectDelete:
			l.batch.Delete(l.out.Records[e.Index].RecordKey())
		}
	}
}

// finish ends a turn: tick, commit, carry out.
func (l *loop) finish(now grid.Time) error {
	l.step(now, grid.Tick{})
	if l.store != nil {
		err := l.store.Commit(&l.batch)
		l.batch.Reset()
		if err != nil {
			// Nothing of this turn may leave, and what is on disk is known again only
			// after a restart.
			return errors.Join(errStore, err)
		}
	}
	if l.lines {
		l.lines = false
		l.h.history.wake()
	}
	if len(l.ended) > 0 {
		l.exec.Acknowledge(l.ended)
		l.ended = l.ended[:0]
	}
	l.carryOut()
	l.pilots(now)
	for _, n := range l.site.Notices() {
		l.h.log.Warn(n.Text, n.About...)
	}
	l.out.Reset()
	l.coded = 0
	return nil
}

// errStore says what made the host stop.
var errStore = errors.New("the store failed, so nothing more can be promised: make room or repair the disk and start again")

// carryOut carries the effects of a turn out in order.
func (l *loop) carryOut() {
	net := l.h.net
	var spans []uint64 // of the messages; nil: nothing is traced
	if l.tracer != nil {
		spans = l.tracer.Effects(l.clock.now(), &l.out)
	}
	for _, e := range l.out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			span := uint64(0)
			if spans != nil {
				span = spans[e.Index]
			}
			net.Send(l.out.Sends[e.Index].To, l.out.Sends[e.Index].Message, span)
		case grid.EffectPublish:
			net.Publish(string(l.out.Sends[e.Index].To), l.out.Sends[e.Index].Message)
		case grid.EffectStart:
			l.exec.Start(l.left(l.out.Tasks[e.Index]))
		case grid.EffectRenew:
			t := l.left(l.out.Tasks[e.Index])
			l.exec.Renew(t.ID, t.Lease)
		case grid.EffectKill:
			l.exec.Kill(l.out.Tasks[e.Index])
		case grid.EffectClosest:
			net.Closest(l.out.Keys[e.Index])
		case grid.EffectProvide:
			net.Provide(l.out.Keys[e.Index])
		case grid.EffectProviders:
			net.FindProviders(l.out.Keys[e.Index])
		case grid.EffectProbe:
			net.Probe(l.out.Probes[e.Index])
		case grid.EffectAttend:
			p2p.Attend(net, l.out.Attended[e.Index])
		case grid.EffectExpel:
			l.expel(&l.out.Expelled[e.Index])
		}
	}
	l.h.fetch.note(l.out.Events)
	l.h.streams.note(l.out.Events)
	l.h.deposit.note(l.out.Events)
	if l.h.notify != nil {
		l.h.notify.Note(l.out.Events)
	}
	l.h.tally.Note(l.h.id, l.out.Events)
	if l.h.filer != nil {
		l.h.filer.home.note(l.out.Events)
	}
	l.h.subscribed.tell(l.out.Events)
	l.h.questions.answer(l.out.Answers)
}

// left returns a task with what is left of its lease in the place of its end: engines have
// clocks of their own.
func (l *loop) left(t grid.Task) grid.Task {
	if t.Lease > 0 {
		t.Lease = max(t.Lease-l.clock.now(), 1)
	}
	return t
}

// expelSpan is how long nothing is made of connections with a site that was expelled.
// After it, it may show whether it is a member again.
const expelSpan = 10 * time.Minute

// expel has the network end its connections with a site. A site that is out itself says so, once.
func (l *loop) expel(x *grid.Expulsion) {
	if l.site.Roll().Excluded() {
		l.h.member.sayOut()
	}
	var words []byte
	if r, ok := x.Last.(*member.Revocations); ok {
		words = r.Words()
	}
	l.h.net.Expel(x.Site, expelSpan, words)
}

// clock gives instants that never decrease: the wall clock's when the host started,
// and from then on the monotonic clock's. A step of the wall clock moves no deadline
// and no lease; the next start takes it up.
type clock struct{ started time.Time }

func (c clock) now() grid.Time {
	return grid.Time(c.started.UnixMicro()) + grid.FromDuration(time.Since(c.started))
}

// Executor runs tasks for a host. Only the host's loop calls it, and no method may
// block for long.
type Executor interface {
	// Recover returns the tasks of an earlier run of the host: those that still run,
	// and those that ended and were not acknowledged. It is called once, first. The
	// end of a running one is reported like any other.
	Recover() (running []site.Adopted, ended []grid.TaskEnded, err error)
	// Start begins a task. Its end is reported once, also if it could not begin. The
	// job belongs to the caller and does not change.
	Start(task grid.Task)
	// Renew has a task that was started with a lease go on for a span from now, whatever is
	// left of it. What is not there, or is being ended, it leaves alone. In what Start gets
	// Task.Lease is such a span, too.
	Renew(id grid.TaskID, span grid.Time)
	// Kill ends a task and everything it started. The end is reported as usual. A
	// task that is not there is reported as lost.
	Kill(task grid.Task)
	// Acknowledge says that the ends of these tasks are durable: they may be forgotten.
	Acknowledge(ended []grid.TaskID)
	// Close lets go of the tasks. Processes run on, to be recovered by the next host.
	Close() error
}
