package slurm

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

func TestEndsAreSeenAsTheyAreWritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := &Engine{ctx: ctx, orders: orders{t.TempDir()}, ends: make(chan string, 2), log: slog.New(slog.DiscardHandler)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.watch()
	}()
	write := func(end string) {
		if err := e.orders.note("job.1", end, nil); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for seen := ""; seen == ""; { // it may not watch yet
		write(".id")
		write(".end")
		select {
		case seen = <-e.ends:
			if seen != "job.1" {
				t.Errorf("the end of %q was seen", seen)
			}
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no end is seen")
		}
	}
	for len(e.ends) < cap(e.ends) { // nobody takes them, and more than are kept do not block
		write(".end")
	}
	for range 10 {
		write(".end")
	}
	cancel()
	<-done
}
