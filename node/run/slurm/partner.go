package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridnode/grid"
)

// Partner says where jobs of one other site go, and in whose name. What it leaves empty is as
// for everybody.
type Partner struct {
	Partition, Account, QOS string
	Options                 []string
}

// partnersMax bounds how many partners a configuration names.
const partnersMax = 256

// siteKeys is the section of the keys that are for everybody, and partnerKeys of those of one.
const (
	siteKeys    = "slurm."
	partnerKeys = "slurm.partners."
)

// of returns the configuration for jobs of a partner, empty: of this site.
func (c *Config) of(name string) *Config {
	p, known := c.Partners[name]
	if !known {
		return c
	}
	own := *c
	own.Partners, own.section = nil, partnerKeys+name+"."
	for _, o := range []struct{ into, from *string }{{&own.Partition, &p.Partition}, {&own.Account, &p.Account}, {&own.QOS, &p.QOS}} {
		if *o.from != "" {
			*o.into = *o.from
		}
	}
	if p.Options != nil {
		own.Options = p.Options
	}
	return &own
}

// key returns the full name of a key, such as partition.
func (c *Config) key(name string) string {
	if c.section != "" {
		return c.section + name
	}
	return siteKeys + name
}

// rename puts the partner into the key "slurm.…" that an error names.
func (c *Config) rename(key string) string {
	return c.key(strings.TrimPrefix(key, siteKeys))
}

// checkPartners checks what is said of each.
func (c *Config) checkPartners() error {
	if len(c.Partners) > partnersMax {
		return fmt.Errorf("slurm.partners: %d sites, at most %d", len(c.Partners), partnersMax)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Partners)) {
		if err := c.of(name).Check(); err != nil {
			return err
		}
	}
	return nil
}

// partner returns the name under which the configuration speaks of a site: that in its
// certificate, or its ID; empty if it does not.
func (e *Engine) partner(home grid.SiteID) string {
	names := []string{string(home)}
	if e.guest != nil {
		names = append(names, e.guest(home))
	}
	for _, name := range names {
		if _, known := e.cfg.Partners[name]; known {
			return name
		}
	}
	return ""
}
