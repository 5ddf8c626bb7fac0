package node

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/node/store"
)

// turnMax bounds the inputs of one turn, and with it how long an answer waits for
// the others of its turn.
const turnMax = 512

// spinMax is how many turns without any input may follow each other at once. A site
// asks for one or two; more are a defect that must not take a whole processor.
const (
	spinMax   = 100
	spinPause = time.Millisecond
)

// loop is the only goroutine that touches the site. It makes turns: take the inputs
// that are there, read the clock once, step each, tick, make what they saved durable
// in one commit, and only then carry out the rest.
type loop struct {
	h     *Host
	site  *site.Site
	store *store.Store // nil: nothing is kept
	exec  Executor
	clock clock

	inputs []grid.Input
	ended  []grid.TaskID // stepped in this turn
	out    grid.Outbox
	coded  int // effects whose records are in the batch
	batch  store.Batch
	value  []byte
	steps  atomic.Int64
}

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
	l.inputs = l.h.inbox.take(l.inputs[:0], turnMax)
	now := l.clock.now()
	aside := 0 // inputs that the site does not see
	for _, in := range l.inputs {
		switch in := in.(type) {
		case *look:
			in.at(l.site)
			close(in.done)
			aside++
			continue
		case *pilotInput:
			l.h.pilots.take(in)
			aside++
			continue
		case *grid.TaskEnded:
			l.ended = append(l.ended, in.ID)
		case *site.Submit:
			if l.full(in) {
				continue
			}
		}
		l.step(now, in)
	}
	all := len(l.inputs)
	clear(l.inputs)
	if aside == all && aside > 0 {
		l.pilots(now) // the site's time can wait for its timer
		return nil
	}
	return l.finish(now)
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
			l.batch.Set(record.RecordKey(), l.value)
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
	for _, e := range l.out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			net.Send(l.out.Sends[e.Index].To, l.out.Sends[e.Index].Message)
		case grid.EffectPublish:
			net.Publish(string(l.out.Sends[e.Index].To), l.out.Sends[e.Index].Message)
		case grid.EffectStart:
			l.exec.Start(l.out.Tasks[e.Index])
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
		}
	}
	l.h.fetch.note(l.out.Events)
	l.h.subscribed.tell(l.out.Events)
	l.h.questions.answer(l.out.Answers)
}

// clock gives instants that never decrease: the wall clock's when the host started,
// and from then on the monotonic clock's. A step of the wall clock moves no deadline
// and no lease; the next start takes it up.
type clock struct{ started time.Time }

func (c clock) now() grid.Time {
	return grid.Time(c.started.UnixMicro()) + grid.FromDuration(time.Since(c.started))
}
