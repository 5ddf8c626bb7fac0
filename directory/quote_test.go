package directory

import (
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
)

func goodQuote() Quote {
	return Quote{
		Site: "site", Name: "Zürich 1", Resources: grid.Resources{Processors: 512, Memory: 1 << 30}, Rating: grid.Rating{Speed: 850, Bandwidth: 2000},
		Price: 4_840_000, Free: 12, Widest: 12, Wait: grid.Hour, Foreign: true, Modules: true, GPUs: grid.GPUStock{{Type: "a100", Count: 4, Free: 1, Wait: grid.Hour}, {Type: "v100", Count: 2, Free: 2}}, GPUWeight: 8, Sequence: 7, Issued: 3 * grid.Second, Lifetime: 10 * grid.Minute,
	}
}

func TestQuoteBounds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(q *Quote)
		bad    bool
	}{
		{"as it is", func(q *Quote) {}, false},
		{"no site", func(q *Quote) { q.Site = "" }, true},
		{"longest site", func(q *Quote) { q.Site = grid.SiteID(strings.Repeat("x", siteMax)) }, false},
		{"longer site", func(q *Quote) { q.Site = grid.SiteID(strings.Repeat("x", siteMax+1)) }, true},
		{"no name", func(q *Quote) { q.Name = "" }, false},
		{"longest name", func(q *Quote) { q.Name = strings.Repeat("x", nameMax) }, false},
		{"longer name", func(q *Quote) { q.Name = strings.Repeat("x", nameMax+1) }, true},
		{"name that clears the screen", func(q *Quote) { q.Name = "\x1b[2J" }, true},
		{"name that is not UTF-8", func(q *Quote) { q.Name = "\xff" }, true},
		{"no processors", func(q *Quote) { q.Processors, q.Free, q.Widest = 0, 0, 0 }, false},
		{"most processors", func(q *Quote) { q.Processors = processorsMax }, false},
		{"more processors", func(q *Quote) { q.Processors = processorsMax + 1 }, true},
		{"negative processors", func(q *Quote) { q.Processors = -1 }, true},
		{"most memory", func(q *Quote) { q.Memory = memoryMax }, false},
		{"more memory", func(q *Quote) { q.Memory = memoryMax + 1 }, true},
		{"negative memory", func(q *Quote) { q.Memory = -1 }, true},
		{"no speed", func(q *Quote) { q.Speed = 0 }, true},
		{"highest speed", func(q *Quote) { q.Speed = grid.RatingMax }, false},
		{"higher speed", func(q *Quote) { q.Speed = grid.RatingMax + 1 }, true},
		{"no bandwidth", func(q *Quote) { q.Bandwidth = 0 }, true},
		{"higher bandwidth", func(q *Quote) { q.Bandwidth = grid.RatingMax + 1 }, true},
		{"free of charge", func(q *Quote) { q.Price = 0 }, false},
		{"negative price", func(q *Quote) { q.Price = -1 }, true},
		{"highest price", func(q *Quote) { q.Price = grid.CreditsMax }, false},
		{"higher price", func(q *Quote) { q.Price = grid.CreditsMax + 1 }, true},
		{"unknown cost model", func(q *Quote) { q.Cost = grid.CostPaper + 1 }, true},
		{"all free", func(q *Quote) { q.Free = q.Processors }, false},
		{"more free than there are", func(q *Quote) { q.Free = q.Processors + 1 }, true},
		{"negative free", func(q *Quote) { q.Free = -1 }, true},
		{"wider than the site", func(q *Quote) { q.Widest = q.Processors + 1 }, true},
		{"negative width", func(q *Quote) { q.Widest = -1 }, true},
		{"longest wait", func(q *Quote) { q.Wait = grid.SpanMax }, false},
		{"longer wait", func(q *Quote) { q.Wait = grid.SpanMax + 1 }, true},
		{"negative wait", func(q *Quote) { q.Wait = -1 }, true},
		{"no sequence", func(q *Quote) { q.Sequence = 0 }, true},
		{"issued before time began", func(q *Quote) { q.Issued = -1 }, true},
		{"issued beyond all time", func(q *Quote) { q.Issued = grid.SpanMax + 1 }, true},
		{"no lifetime", func(q *Quote) { q.Lifetime = 0 }, true},
		{"longest lifetime", func(q *Quote) { q.Lifetime = grid.Day }, false},
		{"longer lifetime", func(q *Quote) { q.Lifetime = grid.Day + 1 }, true},
		{"largest", func(q *Quote) { q.Sealed = make([]byte, quoteBytesMax) }, false},
		{"larger", func(q *Quote) { q.Sealed = make([]byte, quoteBytesMax+1) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := goodQuote()
			tt.change(&q)
			err := q.Check()
			if (err != nil) != tt.bad || err != nil && !errors.Is(err, ErrQuote) {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

func TestConfigBounds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		bad    bool
	}{
		{"defaults", func(c *Config) {}, false},
		{"nobody", func(c *Config) { c.Self = "" }, true},
		{"lifetime", func(c *Config) { c.Lifetime = grid.Day + 1 }, true},
		{"short lifetime", func(c *Config) { c.Lifetime = grid.Second }, false},
		{"replicas", func(c *Config) { c.Replicas = replicasMax + 1 }, true},
		{"tiny cells", func(c *Config) { c.CellMax = cellMaxMin - 1 }, true},
		{"huge cells", func(c *Config) { c.CellMax = cellMaxMax + 1 }, true},
		{"negative interval", func(c *Config) { c.LoadInterval = -1 }, true},
		{"endless interval", func(c *Config) { c.GossipInterval = 2 * grid.Day }, true},
		{"patience beyond the lifetime", func(c *Config) { c.Lifetime, c.Timeout = grid.Minute, 16*grid.Second }, true},
		{"long federation", func(c *Config) { c.Federation = strings.Repeat("x", nameMax+1) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Self: "a"}
			tt.change(&c)
			if err := c.Validate(); (err != nil) != tt.bad || err != nil && !errors.Is(err, ErrConfig) {
				t.Errorf("Validate() = %v", err)
			}
		})
	}
}

func TestQueryBounds(t *testing.T) {
	q := goodQuote()
	for _, tt := range []struct {
		name  string
		query Query
		bad   bool
	}{
		{"everything", Query{}, false},
		{"no attribute", Query{Attribute: attributes}, true},
		{"limit", Query{Limit: LimitMax + 1}, true},
		{"negative limit", Query{Limit: -1}, true},
		{"negative price", Query{Filter: Filter{PriceMax: -1}}, true},
		{"overflowing price", Query{Filter: Filter{PriceMax: grid.CreditsMax + 1}}, true},
		{"speed", Query{Filter: Filter{SpeedMin: grid.RatingMax + 1}}, true},
		{"free", Query{Filter: Filter{FreeMin: -1}}, true},
		{"processors", Query{Filter: Filter{ProcessorsMin: processorsMax + 1}}, true},
		{"cursor", Query{After: Behind(&q, Price)}, false},
		{"cursor of another order", Query{After: Behind(&q, Speed)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.query.Check(); (err != nil) != tt.bad || err != nil && !errors.Is(err, ErrQuery) {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}
