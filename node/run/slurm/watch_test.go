package slurm

import (
	"context"
	"testing"
	"time"
)

func TestEndsAreSeenAsTheyAreWritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	kept, ends := orders{t.TempDir()}, make(chan string, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := watch(ctx, kept.dir, ends); err != nil {
			t.Error(err)
		}
	}()
	write := func(end string) {
		if err := kept.note("job.1", end, nil); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for seen := ""; seen == ""; { // it may not watch yet
		write(".id")
		write(".end")
		select {
		case seen = <-ends:
			if seen != "job.1" {
				t.Errorf("the end of %q was seen", seen)
			}
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no end is seen")
		}
	}
	for len(ends) < cap(ends) { // nobody takes them, and more than are kept do not block
		write(".end")
	}
	for range 10 {
		write(".end")
	}
	cancel()
	<-done
}
