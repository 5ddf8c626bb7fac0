package scale

import (
	"fmt"

	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/scale"
)

// Target is what the measurements are to be, and what they are.
type Target struct {
	Text   string `json:"text"`
	Wanted string `json:"wanted"`
	Here   string `json:"here"`
	Met    bool   `json:"met"`
}

// What the federation is designed for.
const (
	negotiationMax   = 6   // messages per job at fifty sites
	growthMax        = 1.2 // times those, at a thousand and ten thousand
	queriesMaxSmall  = 3   // directory messages per job at fifty sites, look-ups included
	queriesMaxLarge  = 6   // at ten thousand
	upkeepGrowthMax  = 1.2 // of publishing and gossip per site and minute, from fifty sites on
	shareMax         = 5   // times the mean of messages that a site handles
	wallMax          = 300 // seconds for all sizes
	speedSpread      = 1.3 // fastest over slowest, in events a second
	sizeOfComparison = 50
)

// Targets returns what is wanted of the sizes that were measured.
func (r *Report) Targets() []Target {
	if r.Options.Live {
		return r.liveTargets()
	}
	var targets []Target
	add := func(text, wanted, here string, met bool) {
		targets = append(targets, Target{text, wanted, here, met})
	}
	for _, oft := range r.Options.OFT {
		base := r.result(sizeOfComparison, oft)
		for _, m := range r.of(oft) {
			where := fmt.Sprintf("%d sites, %d %% OFT: ", m.Sites, oft)
			for _, g := range []struct {
				name string
				of   func(*scale.Result) measure.Spread
			}{
				{"cheapest", func(m *scale.Result) measure.Spread { return m.Cheapest }},
				{"fastest", func(m *scale.Result) measure.Spread { return m.Fastest }},
			} {
				mean, text := g.of(m).Mean.Float(), where+"negotiation messages per job, "+g.name
				switch {
				case m.Sites == sizeOfComparison && g.of(m).Max > 0:
					add(text, fmt.Sprintf("at most %d", negotiationMax), number(mean), mean <= negotiationMax)
				case m.Sites > sizeOfComparison && base != nil && g.of(base).Mean > 0:
					most := growthMax * g.of(base).Mean.Float()
					add(text, fmt.Sprintf("at most %s (%.1f × that at %d)", number(most), growthMax, base.Sites), number(mean), mean <= most)
				}
			}
			queries := (m.PerJob.Queries + m.PerJob.QueryLookups).Float()
			if m.Sites <= sizeOfComparison {
				add(where+"directory query messages per job, look-ups included", fmt.Sprintf("at most %d", queriesMaxSmall), number(queries), queries <= queriesMaxSmall)
			} else {
				add(where+"directory query messages per job, look-ups included", fmt.Sprintf("at most %d", queriesMaxLarge), number(queries), queries <= queriesMaxLarge)
			}
			upkeep := m.UpkeepPerSiteMinute.Total.Float()
			if m.Sites > sizeOfComparison && base != nil {
				most := upkeepGrowthMax * base.UpkeepPerSiteMinute.Total.Float()
				add(where+"publishing, gossip and their look-ups per site and minute", fmt.Sprintf("at most %s (%.1f × that at %d)", number(most), upkeepGrowthMax, base.Sites), number(upkeep), upkeep <= most)
			}
			if m.Sites >= 10 {
				times := m.MessagesPerSite[0].Times.Float()
				add(where+"busiest site's messages over the mean", fmt.Sprintf("at most %d", shareMax), number(times), times <= shareMax)
			}
		}
	}
	slowest, fastest := int64(0), int64(0)
	for _, m := range r.Results {
		if slowest == 0 || m.EventsPerSecond < slowest {
			slowest = m.EventsPerSecond
		}
		fastest = max(fastest, m.EventsPerSecond)
	}
	if len(r.Results) > 1 {
		spread := float64(fastest) / float64(max(slowest, 1))
		add("events a second of processor time, fastest over slowest size", fmt.Sprintf("at most %.1f", speedSpread), fmt.Sprintf("%.2f (%d k to %d k)", spread, slowest/1000, fastest/1000), spread <= speedSpread)
	}
	add("all sizes, in seconds", fmt.Sprintf("at most %d", wallMax), number(r.WallSeconds), r.WallSeconds <= wallMax)
	return targets
}

// of returns the measurements of one population, by rising size.
func (r *Report) of(oft int) (list []*scale.Result) {
	for _, m := range r.Results {
		if m.OFT == oft {
			list = append(list, m)
		}
	}
	return list
}

// result returns one measurement, or nil.
func (r *Report) result(sites, oft int) *scale.Result {
	for _, m := range r.of(oft) {
		if m.Sites == sites {
			return m
		}
	}
	return nil
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }
