package directory

import (
	"errors"
	"fmt"

	"gridnode/grid"
)

// Config is what a directory is told about its site. A zero field takes the
// default named beside it.
type Config struct {
	Self       grid.SiteID
	Federation string // its name, part of every cell's key; may be empty; at most 64 bytes

	Lifetime     grid.Time // of quotes, at most a day; 10 min
	Replicas     int       // sites that hold a cell, r, at most 16; 4
	Witnesses    int       // holders that a query asks besides the one whose word would be enough, now and then, less than Replicas; 0
	CellMax      int       // live quotes in a cell before it splits, B, 8 to 1024; 64
	LoadInterval grid.Time // least time between quotes that differ in load only, at first; 1 s
	Timeout      grid.Time // of one request to a holder, at most Lifetime/4; 2 s or Lifetime/4

	// Siblings returns the sites that hear this one's load reports; the slice is not kept.
	// Nil: those that listen to Topic. Watchers returns those of them who are to miss it if
	// it falls silent though connections with it last; nil: all are.
	Siblings, Watchers func() []grid.SiteID

	Topic             string    // gossip topic for load reports; empty: none are published but to Siblings
	GossipInterval    grid.Time // least time between load reports; 2 s
	HeartbeatInterval grid.Time // Topic has a report at least so often, who heads the site six times as often, Watchers a tenth as often; 36 s
	RefreshInterval   grid.Time // all siblings have one at least so often; fifty times as long

	// Seal signs a quote's payload: wire.Seal with Domain. It is nil in virtual
	// time, where messages are never encoded. An error of it is fatal.
	Seal func(payload []byte) ([]byte, error)

	Slabs *Slabs // for messages; nil: its own
}

// ErrConfig is wrapped by every error of Config.Validate.
var ErrConfig = errors.New("directory configuration")

// Validate returns an error wrapping ErrConfig that names the first bad field.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case len(c.Self) == 0 || len(c.Self) > siteMax:
		return bad("site ID of %d bytes, want 1 to %d", len(c.Self), siteMax)
	case len(c.Federation) > nameMax:
		return bad("federation name of %d bytes, at most %d", len(c.Federation), nameMax)
	case c.Lifetime < 0 || c.Lifetime > lifetimeMax:
		return bad("lifetime of %v, want more than 0, at most %v", c.Lifetime, lifetimeMax)
	case c.Replicas < 0 || c.Replicas > replicasMax:
		return bad("%d replicas, want 1 to %d", c.Replicas, replicasMax)
	case c.Witnesses < 0 || c.Witnesses > 0 && c.Witnesses >= c.withDefaults().Replicas:
		return bad("%d witnesses of %d replicas", c.Witnesses, c.withDefaults().Replicas)
	case c.CellMax < 0 || c.CellMax > cellMaxMax || c.CellMax > 0 && c.CellMax < cellMaxMin:
		return bad("%d quotes in a cell, want %d to %d", c.CellMax, cellMaxMin, cellMaxMax)
	case c.LoadInterval < 0 || c.Timeout < 0 || c.GossipInterval < 0 || c.HeartbeatInterval < 0 || c.RefreshInterval < 0:
		return bad("a span is negative")
	case max(c.LoadInterval, c.GossipInterval, c.HeartbeatInterval, c.RefreshInterval) > grid.Day:
		return bad("a span is over %v", grid.Day)
	case c.Timeout > c.withDefaults().Lifetime/4:
		return bad("timeout of %v, at most a quarter of the lifetime of quotes", c.Timeout)
	}
	return nil
}

// Bounds of a configuration.
const (
	replicasMax = 16
	cellMaxMin  = 8
	cellMaxMax  = 1024
)

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	orTime := func(v *grid.Time, def grid.Time) {
		if *v == 0 {
			*v = def
		}
	}
	orTime(&c.Lifetime, 10*grid.Minute)
	orTime(&c.LoadInterval, grid.Second)
	orTime(&c.Timeout, min(2*grid.Second, max(c.Lifetime/4, 1)))
	orTime(&c.GossipInterval, 2*grid.Second)
	orTime(&c.HeartbeatInterval, 36*grid.Second)
	orTime(&c.RefreshInterval, min(50*c.HeartbeatInterval, grid.Day))
	if c.Replicas == 0 {
		c.Replicas = 4
	}
	if c.CellMax == 0 {
		c.CellMax = 64
	}
	return c
}
