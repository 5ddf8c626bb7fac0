package market

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gridnode/grid"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Offer: Offer{Site: "a", Resources: grid.Resources{Processors: 0}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Price: 1}}
	if err := good.Validate(); err != nil {
		t.Fatalf("a site without processors: %v", err)
	}
	most := good
	most.Rating = grid.Rating{Speed: grid.RatingMax, Bandwidth: grid.RatingMax}
	if err := most.Validate(); err != nil {
		t.Errorf("the fastest site there may be: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"no site":            func(c *Config) { c.Site = "" },
		"processors":         func(c *Config) { c.Processors = -1 },
		"speed 0":            func(c *Config) { c.Speed = 0 },
		"speed":              func(c *Config) { c.Speed = grid.RatingMax + 1 },
		"bandwidth":          func(c *Config) { c.Bandwidth = grid.RatingMax + 1 },
		"bandwidth 0":        func(c *Config) { c.Bandwidth = 0 },
		"price":              func(c *Config) { c.Price = -1 },
		"no price":           func(c *Config) { c.Price = 0 },
		"pricing":            func(c *Config) { c.Pricing = PricingDemand + 1 },
		"floor":              func(c *Config) { c.Pricing, c.Demand.Floor = PricingDemand, 2 },
		"price too high":     func(c *Config) { c.Price = grid.CreditsMax + 1 },
		"placement":          func(c *Config) { c.Placement = Placement(2) },
		"page":               func(c *Config) { c.Page = -1 },
		"pages":              func(c *Config) { c.Pages = -1 },
		"asks":               func(c *Config) { c.Asks = -1 },
		"hopes":              func(c *Config) { c.Hopes = -1 },
		"parallel":           func(c *Config) { c.Parallel = -1 },
		"near":               func(c *Config) { c.Near = -1 },
		"reply timeout":      func(c *Config) { c.ReplyTimeout = -1 },
		"find timeout":       func(c *Config) { c.FindTimeout = -1 },
		"hold":               func(c *Config) { c.HoldSpan = -1 },
		"long reply timeout": func(c *Config) { c.ReplyTimeout = 2 * grid.Day },
		"long find timeout":  func(c *Config) { c.FindTimeout = 2 * grid.Day },
		"short lease":        func(c *Config) { c.Lease = grid.LeaseMin - 1 },
		"long lease":         func(c *Config) { c.Lease = grid.SpanMax + 1 },
		"asks per peer":      func(c *Config) { c.AsksPerPeer = -1 },
		"previews":           func(c *Config) { c.PreviewsMax = -1 },
		"negative share":     func(c *Config) { c.HoldShare = -1 },
		"hold of two days":   func(c *Config) { c.HoldSpan = 2 * grid.Day },
		"allowance":          func(c *Config) { c.Allowance = -1 },
		"holds per peer":     func(c *Config) { c.HoldsPerPeer = -1 },
		"hold share":         func(c *Config) { c.HoldShare = 1001 },
		"negative placement": func(c *Config) { c.PlacementsMax = -1 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v, want ErrConfig", name, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	c := Config{Page: 3}.WithDefaults()
	if c.Page != 3 || c.HoldSpan != 10*grid.Second || c.ReplyTimeout != 5*grid.Second || c.HoldsPerPeer != 8 || c.Parallel != 1 || c.Allowance != 0 {
		t.Errorf("defaults are %+v", c)
	}
	if again := c.WithDefaults(); !reflect.DeepEqual(again, c) {
		t.Errorf("defaults of defaults are %+v", again)
	}
}

func TestParsePlacement(t *testing.T) {
	for _, p := range []Placement{PlacementCoordinated, PlacementPaper} {
		if got, err := ParsePlacement(p.String()); err != nil || got != p {
			t.Errorf("%v parses as %v, %v", p, got, err)
		}
	}
	if _, err := ParsePlacement("best"); err == nil {
		t.Error("an unknown placement was parsed")
	}
}

// TestNumbersRise checks that requests and guarantees are never named alike, and
// that their distance tells time.
func TestNumbersRise(t *testing.T) {
	var last uint64
	for _, now := range []grid.Time{0, 0, 5, 5, 5, 3, testEpoch, testEpoch + grid.Second} {
		next := number(last, now)
		if next <= last {
			t.Fatalf("number %d at %v after %d", next, now, last)
		}
		last = next
	}
	if got := numberSpan(number(0, testEpoch+grid.Minute), number(0, testEpoch)); got != grid.Minute {
		t.Errorf("a minute between two requests is taken for %v", got)
	}
	if got := numberSpan(1, 2); got != 0 {
		t.Errorf("an older number is %v newer", got)
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	long := strings.Repeat("€", 100) // of three bytes each
	if got := cut(long); len(got) != 255 || got != long[:255] {
		t.Errorf("cut to %d bytes, want 255: 85 whole characters", len(got))
	}
	if got := cut("short"); got != "short" {
		t.Errorf("cut(short) = %q", got)
	}
	if got := cut(strings.Repeat("\x80", 300)); len(got) > textMax {
		t.Errorf("cut to %d bytes", len(got))
	}
}
