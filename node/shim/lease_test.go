package shim

import (
	"testing"
	"time"

	"gridnode/grid"
)

// TestLease: a task whose lease is not renewed ends, whether it wants to or not and whether
// a daemon is there or not; one whose lease is renewed goes on.
func TestLease(t *testing.T) {
	s := newTestShim(t)
	deaf := s.spec("trap '' TERM; while :; do sleep 0.01; done")
	deaf.Lease, deaf.Limit = 100*grid.Millisecond, grid.Hour
	s.start(deaf)
	e := s.event()
	if e.ID != deaf.ID || e.Cause != CauseLease || e.Reason == "" || e.End-e.Start < deaf.Lease {
		t.Errorf("%+v, want the end of its lease after %v", e, deaf.Lease)
	}

	kept := s.spec("sleep 1000")
	kept.Lease = grid.Hour
	s.start(kept)
	for _, span := range []grid.Time{grid.Hour, 50 * grid.Millisecond} { // it may get shorter, too
		if err := s.client.Renew(kept.ID, span); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.event(); e.ID != kept.ID || e.Cause != CauseLease {
		t.Errorf("%+v, want the end of its lease", e)
	}

	longer := s.spec("sleep 1000")
	longer.Lease = 300 * grid.Millisecond
	s.start(longer)
	if err := s.client.Renew(longer.ID, grid.Hour); err != nil {
		t.Fatal(err)
	}
	free := s.spec("sleep 1000") // it has no lease, and gets none by a renewal
	s.start(free)
	if err := s.client.Renew(free.ID, 1); err != nil {
		t.Fatal(err)
	}
	later := s.spec("sleep 1000") // ends after longer would have
	later.Lease = 400 * grid.Millisecond
	s.start(later)
	if e := s.event(); e.ID != later.ID {
		t.Fatalf("%+v ends first, although its lease was renewed", e)
	}
	if err := s.client.Renew("unknown", 1); err != nil {
		t.Errorf("renewal of what is not there: %v", err)
	}
	if err := s.client.Renew(free.ID, -1); err == nil {
		t.Error("a negative lease is taken")
	}
}

// TestLeaseDuringKill: a task that is being ended with a long grace when its lease ends is
// killed within the grace of the lease.
func TestLeaseDuringKill(t *testing.T) {
	now := time.Now()
	s := &shim{config: Config{Grace: time.Hour}, tasks: make(map[string]*task), inbox: make(chan func(), 4), quit: make(chan struct{})}
	x := &task{id: "x", killAt: now.Add(time.Hour), lease: 1}
	s.tasks[x.id] = x
	s.lapse(x)
	if left := x.killAt.Sub(now); left > 2*grid.LeaseKill.Duration() {
		t.Errorf("it is killed in %v", left)
	}
	close(s.quit) // before the timer
}

// TestLeaseIsCountedInFull: a lease ends when its span is over, and not before.
func TestLeaseIsCountedInFull(t *testing.T) {
	s := stillShim(t)
	x := &task{id: "x"}
	if s.lease(x, grid.Hour); x.lease-sinceBoot() < time.Hour/2 {
		t.Errorf("a lease of an hour ends in %v", x.lease-sinceBoot())
	}
}

// TestSpecWithLease: what an earlier shim knows is encoded as it knows it.
func TestSpecWithLease(t *testing.T) {
	spec := Spec{ID: "a", Args: []string{"true"}, Dir: "/", Stdout: "/o", Stderr: "/e", Limit: 5}
	plain := spec.append(nil)
	spec.Lease = 7
	leased := spec.append(nil)
	if len(leased) <= len(plain) {
		t.Fatal("the lease is not encoded")
	}
	var back Spec
	if err := back.decode(leased); err != nil || back.Lease != 7 || back.Limit != 5 || back.Plan != nil {
		t.Errorf("%+v, %v", back, err)
	}
	if err := back.decode(plain); err != nil || back.Lease != 0 {
		t.Errorf("%+v, %v", back, err)
	}
}
