package testnet

import (
	"testing"

	"gridnode/grid"
)

// TestClockStep: a daemon goes on by the clock with which it has started, and takes up at its next
// start what the machine's shows then; the end of the fault has it started anew.
func TestClockStep(t *testing.T) {
	n := clockNetwork(t)
	var jumps []grid.Time
	n.Observe(Observer{Step: func(_ grid.Time, _ int, by grid.Time) { jumps = append(jumps, by) }})
	for _, f := range []Fault{
		{Kind: FaultStep, At: 10 * grid.Minute, For: 20 * grid.Minute, Delay: grid.Hour},
		{Kind: FaultDaemon, At: 15 * grid.Minute, For: grid.Minute},
		{Kind: FaultStill, At: 40 * grid.Minute, For: 20 * grid.Minute},
		{Kind: FaultDaemon, At: 49 * grid.Minute, For: grid.Minute},
	} {
		f.Sites = []int{0}
		if err := n.Schedule(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct{ at, shows grid.Time }{
		{12 * grid.Minute, 12 * grid.Minute},
		{17 * grid.Minute, grid.Hour + 17*grid.Minute},
		{31 * grid.Minute, 31 * grid.Minute},
		{45 * grid.Minute, 45 * grid.Minute},
		{51 * grid.Minute, 41 * grid.Minute},
		{61 * grid.Minute, 61 * grid.Minute},
	} {
		if err := n.Run(t.Context(), want.at, nil); err != nil {
			t.Fatal(err)
		}
		if got := n.Clock(0).Local(want.at); got != want.shows {
			t.Errorf("at %v the daemon's clock shows %v, want %v", want.at, got, want.shows)
		}
	}
	if len(jumps) != 4 {
		t.Errorf("jumps by %v, want 4", jumps)
	}
}

// TestClockSlew: a slewed clock never jumps, nor gains more than SlewMax.
func TestClockSlew(t *testing.T) {
	n := clockNetwork(t)
	for i := range 3 {
		f := Fault{Kind: FaultSlew, At: 10 * grid.Minute, For: grid.Hour + grid.Time(i), Sites: []int{0}, Delay: 500}
		if err := n.Schedule(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(t.Context(), 2*grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	const want = SlewMax * 3600 // microseconds
	if got := n.Clock(0).Local(2*grid.Hour) - 2*grid.Hour; got < want-1 || got > want+1 {
		t.Errorf("an hour of slews has gained %v, want %v", got, grid.Time(want))
	}
}

// TestSlewOfOneThatComesUp: a site that comes up as its clock changes, and has something overdue, has
// its Ticks later on, too.
func TestSlewOfOneThatComesUp(t *testing.T) {
	ticks := &ticker{}
	n, err := New(Config{Durable: true})
	if err == nil {
		_, err = n.Add(Member{ID: "a", New: func(int) (Site, error) { *ticks = ticker{}; return ticks, nil }})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Fault{
		{Kind: FaultDaemon, At: 10 * grid.Minute, For: 5 * grid.Minute},
		{Kind: FaultSlew, At: 12 * grid.Minute, For: 3 * grid.Minute, Delay: -25},
	} {
		f.Sites = []int{0}
		if err := n.Schedule(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(t.Context(), grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	if ticks.last < 59*grid.Minute {
		t.Errorf("the last Tick of one that wants one every minute came at %v of an hour", ticks.last)
	}
}

// ticker wants a Tick every minute, and as it comes up two at once.
type ticker struct {
	next, last grid.Time
	up         bool
}

func (s *ticker) Step(now grid.Time, in grid.Input, _ *grid.Outbox) {
	if _, tick := in.(grid.Tick); tick && now >= s.next {
		s.last = now
		if s.up {
			s.next = now + grid.Minute
		}
		s.up = true
	}
}
func (s *ticker) NextTimer() grid.Time { return s.next }

// clockNetwork returns a network of one site that does nothing.
func clockNetwork(t *testing.T) *Network {
	n, err := New(Config{Durable: true})
	if err == nil {
		_, err = n.Add(Member{ID: "a", New: func(int) (Site, error) { return idle{}, nil }})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type idle struct{}

func (idle) Step(grid.Time, grid.Input, *grid.Outbox) {}
func (idle) NextTimer() grid.Time                     { return grid.Never }
