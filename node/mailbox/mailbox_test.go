package mailbox

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBox(t *testing.T) {
	b := New[int]()
	b.Put(1)
	b.Put(2)
	<-b.Wake() // one token for both
	if items, closed := b.Take(); !slices.Equal(items, []int{1, 2}) || closed || b.Len() != 0 {
		t.Fatalf("take: %v, closed %t, %d left, want 1 and 2 from an open box", items, closed, b.Len())
	}
	b.Put(3)
	b.Close()
	b.Put(4) // says nothing: nobody reads it
	<-b.Wake()
	if items, closed := b.Take(); !slices.Equal(items, []int{3}) || !closed {
		t.Fatalf("take after the end: %v, closed %t, want 3 and closed", items, closed)
	}
}

func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int]()
		ctx, cancel := context.WithCancel(t.Context())
		var now, most, done atomic.Int64
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			b.Work(ctx, 2, func(int) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				done.Add(1)
			})
		}()
		for i := range 5 {
			b.Put(i)
		}
		time.Sleep(2500 * time.Millisecond) // two are done, two more are, the last is under way
		if done.Load() != 4 || most.Load() != 2 {
			t.Errorf("after 2.5 s %d are done, at most %d at the same time, want 4 and 2", done.Load(), most.Load())
		}
		cancel()
		<-returned
		if done.Load() != 5 {
			t.Errorf("it returned when %d were done, want 5", done.Load())
		}
		b.Put(6)
		synctest.Wait()
		if done.Load() != 5 {
			t.Error("it works after its end")
		}
	})
}
