package forward

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"gridnode/grid"
)

// Bounds of a Forwarder.
const (
	groupsMax      = 256  // jobs with tasks here
	connectionsMax = 4096 // in both directions together
)

// ID names a group. The home is part of it, so that a site that hears of a job of
// another's cannot be in its place: it only makes a group of its own, which nobody
// of that job speaks to.
type ID struct {
	Home grid.SiteID // the job's co-allocator
	Task grid.TaskID // the job and its epoch
}

// Group is the tasks of one job.
type Group struct {
	ID                  // the same at every site of it
	Sites []grid.SiteID // by rank: where the task runs; 1 to grid.PeersMax
}

// ErrGroup is wrapped by Add's errors about the group itself.
var ErrGroup = errors.New("bad group of tasks")

// ErrBusy is returned by Add if there are too many groups already.
var ErrBusy = errors.New("too many jobs with tasks at other sites")

func (g *Group) check(self grid.SiteID) error {
	switch {
	case g.Home == "":
		return fmt.Errorf("%w: it has no home", ErrGroup)
	case len(g.Sites) == 0 || len(g.Sites) > grid.PeersMax:
		return fmt.Errorf("%w: %d tasks, want 1 to %d", ErrGroup, len(g.Sites), grid.PeersMax)
	case slices.Contains(g.Sites, ""):
		return fmt.Errorf("%w: task %d has no site", ErrGroup, slices.Index(g.Sites, ""))
	case !slices.Contains(g.Sites, self):
		return fmt.Errorf("%w: none of its tasks is at this site", ErrGroup)
	}
	return nil
}

// group is a Group with its addresses at this site.
type group struct {
	Group
	addresses []string           // by rank: of the task itself if it is here, else of listeners[rank]
	listeners []net.Listener     // by rank, nil for tasks here
	given     []int              // ports that tasks here are to listen at
	conns     map[*link]struct{} // under Forwarder.mu
}

func newGroup(g Group) *group { return &group{Group: g, conns: make(map[*link]struct{})} }

// listen finds an address for each task here, and listens for those elsewhere. taken are ports
// that tasks here were given and may not listen at yet.
func (g *group) listen(self grid.SiteID, taken map[int]bool) error {
	g.addresses = make([]string, len(g.Sites))
	g.listeners = make([]net.Listener, len(g.Sites))
	spans := spared()
	for rank, site := range g.Sites {
		if site == self {
			port, err := freePort(spans, taken)
			if err != nil {
				g.close()
				return fmt.Errorf("find a port for task %d: %w", rank, err)
			}
			taken[port] = true
			g.given = append(g.given, port)
			g.addresses[rank] = net.JoinHostPort(loopback, strconv.Itoa(port))
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			g.close()
			return fmt.Errorf("listen for task %d: %w", rank, err)
		}
		g.addresses[rank], g.listeners[rank] = l.Addr().String(), l
	}
	return nil
}

func (g *group) close() {
	for _, l := range g.listeners {
		if l != nil {
			l.Close()
		}
	}
}
