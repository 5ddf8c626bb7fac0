package access

import (
	"context"
	"sync"
)

// Turns let so many at a time do something that takes a processor or the loop: who has not
// had a turn for longest comes next, so that one who asks now and then waits for nobody who
// asks all the time. Those of one account come in order. Safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting map[uint32][]chan struct{}
	last    map[uint32]uint64 // when an account had its last turn, as a count of turns
	count   uint64
}

// NewTurns returns turns of which most are had at a time, at least one.
func NewTurns(most int) *Turns {
	return &Turns{free: max(1, most), waiting: make(map[uint32][]chan struct{}), last: make(map[uint32]uint64)}
}

// Take waits for a turn of an account, and returns ctx's error if that ends first. leave
// ends the turn; it is called once.
func (t *Turns) Take(ctx context.Context, uid uint32) (leave func(), err error) {
	t.mu.Lock()
	if t.free > 0 { // then nobody waits
		t.free--
		t.had(uid)
		t.mu.Unlock()
		return t.leave, nil
	}
	mine := make(chan struct{})
	t.waiting[uid] = append(t.waiting[uid], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	gone := t.drop(uid, mine)
	t.mu.Unlock()
	if !gone { // it has just been given
		t.leave()
	}
	return nil, ctx.Err()
}

// leave gives a turn to who comes next.
func (t *Turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, found := uint32(0), false
	for uid := range t.waiting {
		if at, best := t.last[uid], t.last[next]; !found || at < best || at == best && uid < next {
			next, found = uid, true
		}
	}
	if !found {
		t.free++
		return
	}
	mine := t.waiting[next][0]
	t.drop(next, mine)
	t.had(next)
	close(mine)
}

// had notes that an account has a turn. The caller holds t.mu.
func (t *Turns) had(uid uint32) {
	if len(t.last) >= knownMax {
		clear(t.last)
	}
	t.count++
	t.last[uid] = t.count
}

// drop takes one that waits off its list, and reports whether it was there. The caller
// holds t.mu.
func (t *Turns) drop(uid uint32, one chan struct{}) bool {
	list := t.waiting[uid]
	for i, c := range list {
		if c != one {
			continue
		}
		if list = append(list[:i:i], list[i+1:]...); len(list) > 0 {
			t.waiting[uid] = list
		} else {
			delete(t.waiting, uid)
		}
		return true
	}
	return false
}
