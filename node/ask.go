package node

import (
	"context"
	"errors"
	"sync"

	"gridnode/grid"
	"gridnode/node/site"
)

// ErrStopped is returned by a host's methods once it stops: what was asked for may
// or may not have happened.
var ErrStopped = errors.New("the node is stopping")

// ErrBusy is returned when too many requests wait: nothing happened, try later.
var ErrBusy = errors.New("the node is busy: too many requests wait")

// questions are what users asked and Site has not answered yet.
type questions struct {
	mu    sync.Mutex
	token uint64
	asked map[uint64]chan any
}

// ask gives out a token and the channel on which its answer will come.
func (q *questions) ask() (token uint64, answer chan any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked == nil {
		q.asked = make(map[uint64]chan any)
	}
	q.token++
	answer = make(chan any, 1)
	q.asked[q.token] = answer
	return q.token, answer
}

func (q *questions) forget(token uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, token)
}

// answer hands answers to whoever still waits for them.
func (q *questions) answer(answers []grid.Answer) {
	if len(answers) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range answers {
		if c, ok := q.asked[a.Token]; ok {
			delete(q.asked, a.Token)
			c <- a.Value // has room for the one answer
		}
	}
}

type userKey struct{}

// AsUser returns a context with which Ask and Do act for a user of this machine: users
// have equal shares of the loop's time.
func AsUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// Ask gives an input to the site and waits for its answer, which comes when what
// the input changed is durable. input is called once with the token to put into it.
// The error is ErrBusy, ErrStopped or ctx's; after the last two it is unknown
// whether the site has acted.
func (h *Host) Ask(ctx context.Context, input func(token uint64) grid.Input) (any, error) {
	token, answer := h.questions.ask()
	defer h.questions.forget(token)
	if !h.inbox.ask(userOf(ctx), input(token)) {
		return nil, h.refusal()
	}
	select {
	case value := <-answer:
		return value, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.ended:
		select {
		case value := <-answer: // it came with the last turn
			return value, nil
		default:
			return nil, ErrStopped
		}
	}
}

// look is the input by which Do runs a function on the loop.
type look struct {
	at   func(*site.Site)
	done chan struct{}
	told bool // done is closed when the turn is over
}

// Do runs at on the loop, between two steps, and waits for it, which takes no
// longer than a turn. at may read the site and must not change it, keep what it
// returns beyond the call unless it is a copy, or block. After an error, ErrBusy or
// ErrStopped or ctx's, at has not run and will not.
func (h *Host) Do(ctx context.Context, at func(s *site.Site)) error {
	return (&look{at: at, done: make(chan struct{})}).take(ctx, h)
}

// DoTold is Do, but returns only once what at has seen is durable, and everybody in this process
// has heard of the events of it.
func (h *Host) DoTold(ctx context.Context, at func(s *site.Site)) error {
	return (&look{at: at, done: make(chan struct{}), told: true}).take(ctx, h)
}

// take has the loop of h run a look.
func (l *look) take(ctx context.Context, h *Host) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !h.inbox.ask(userOf(ctx), l) {
		return h.refusal()
	}
	select {
	case <-l.done:
		return nil
	case <-h.ended:
		select {
		case <-l.done: // in the last turn
			return nil
		default:
			return ErrStopped
		}
	}
}

// refusal says why the inbox took nothing.
func (h *Host) refusal() error {
	select {
	case <-h.stopping:
		return ErrStopped
	default:
		return ErrBusy
	}
}
