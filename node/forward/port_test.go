package forward

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"gridnode/grid"
)

func TestPortsThatTheSystemDoesNotGiveAway(t *testing.T) {
	for _, tt := range []struct {
		spans []span
		away  span
		want  []span
	}{
		{[]span{{10, 19}, {32, 65}}, span{32, 60}, []span{{10, 19}, {61, 65}}},
		{[]span{{10, 19}, {32, 65}}, span{15, 40}, []span{{10, 14}, {41, 65}}},
		{[]span{{10, 19}}, span{12, 13}, []span{{10, 11}, {14, 19}}},
		{[]span{{10, 19}}, span{20, 30}, []span{{10, 19}}},
		{[]span{{10, 19}}, span{1, 9}, []span{{10, 19}}},
		{[]span{{10, 19}}, span{1, 99}, nil},
	} {
		if got := without(tt.spans, tt.away); !slices.Equal(got, tt.want) {
			t.Errorf("%v without %v: %v, want %v", tt.spans, tt.away, got, tt.want)
		}
	}
	if got := []int{nth([]span{{10, 11}, {20, 20}}, 0), nth([]span{{10, 11}, {20, 20}}, 1), nth([]span{{10, 11}, {20, 20}}, 2)}; !slices.Equal(got, []int{10, 11, 20}) {
		t.Errorf("the ports are %v", got)
	}
}

// A port is neither that of somebody who listens nor of a task that does not do so yet.
func TestNoPortIsGivenTwice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	port, err := freePort([]span{{busy, busy}}, nil)
	if err != nil || port == busy {
		t.Errorf("got %d, %v, where somebody listens at %d", port, err, busy)
	}
	taken := make(map[int]bool)
	for range 200 {
		port, err := freePort(spared(), taken)
		if err != nil || taken[port] {
			t.Fatalf("got %d, %v", port, err)
		}
		taken[port] = true
	}
}

// Before its tasks listen, ports of a group are nobody's: not when the system gives some away,
// nor of another group.
func TestPortsOfTasksThatDoNotListenYet(t *testing.T) {
	spans := spared()
	if len(spans) == 0 {
		t.Skip("this system gives all ports away, or does not say which")
	}
	f := New("me", nil, "", nil)
	defer f.Close()
	id := func(n uint64) ID { return ID{"you", grid.TaskID{Job: grid.JobID{Lo: n}}} }
	sites := slices.Repeat([]grid.SiteID{"me"}, 100)
	seen := make(map[string]bool)
	for n := range uint64(4) {
		addresses, err := f.Add(Group{id(n), sites})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			_, text, _ := net.SplitHostPort(a)
			port, err := strconv.Atoi(text)
			if err != nil || seen[a] || !slices.ContainsFunc(spans, func(s span) bool { return s.first <= port && port <= s.last }) {
				t.Fatalf("%s: %v, given before: %t; want one of %v", a, err, seen[a], spans)
			}
			seen[a] = true
		}
	}
	for n := range uint64(4) {
		f.Remove(id(n))
	}
	if len(f.given) > 0 {
		t.Errorf("%d ports are kept of groups that are gone", len(f.given))
	}
}
