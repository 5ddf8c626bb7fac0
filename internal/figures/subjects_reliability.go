package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

func reliability() subject {
	return subject{
		name: "reliability", title: "Many seeds of chaos", takes: "40 min",
		intro: "Federations under faults, seed after seed. The invariants are checked at every event; a seed with a violation ends the command with an error, " +
			"and this page could not be written. A fault point is right before or right after a daemon saves a kind of records, sends a kind of messages, or gives " +
			"another order, for each of three causes: as something comes in, on a timer, and in recovery; or between a record and an order that carries it out; " +
			"or a message on its way.",
		parts: []part{
			campaign{
				title:   "Mixtures of faults and features",
				text:    "Each seed leaves some faults and features out and exaggerates others.",
				command: "gridnode testnet run chaos --swarm --sites 6 --hours 2 --seeds 10000",
			},
			campaign{
				title:   "The usual mixture",
				text:    "Twenty sites under the usual faults.",
				command: "gridnode testnet run chaos --sites 20 --hours 2 --seeds 20",
			},
		},
	}
}

// campaign is what many seeds of chaos have seen.
type campaign struct{ title, text, command string }

// campaignResult is what is taken from one.
type campaignResult struct {
	Seeds        int
	SiteHours    float64
	Events       float64
	Jobs         float64
	MessagesLost float64
	Faults       map[string]float64
	Points       []struct {
		Name      string
		Seen, Hit float64
	}
	Violations []struct{ Seed uint64 }
}

// often is how often a fault point has to be hit to count as tried.
const often = 100

func (c campaign) measure(ctx context.Context, run runner) (string, error) {
	text, err := run.output(ctx, c.command+" -o json")
	if err != nil {
		return "", err
	}
	var r campaignResult
	if err := json.Unmarshal(text, &r); err != nil {
		return "", fmt.Errorf("%s: %w", c.command, err)
	}
	if r.Seeds == 0 || len(r.Violations) > 0 {
		return "", fmt.Errorf("%s: %d seeds, %d of them violated", c.command, r.Seeds, len(r.Violations))
	}
	faults, came, hit, tried := 0.0, 0, 0, 0
	seldom := grid{{fmt.Sprintf("hit less than %d times", often), "came", "hit"}}
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		faults += r.Faults[kind]
	}
	for _, p := range r.Points {
		if p.Seen > 0 {
			came++
		}
		if p.Hit > 0 {
			hit++
		}
		if p.Hit >= often {
			tried++
		} else {
			seldom = append(seldom, []string{p.Name, number(p.Seen, 0), number(p.Hit, 0)})
		}
	}
	table := grid{{"", "number"}}
	add := func(name string, v float64) { table = append(table, []string{name, number(v, 0)}) }
	add("seeds", float64(r.Seeds))
	add("site-hours of virtual time", r.SiteHours)
	add("events checked", r.Events)
	add("jobs acknowledged", r.Jobs)
	add("messages lost", r.MessagesLost)
	add("faults", faults)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		add("of them "+kind, r.Faults[kind])
	}
	add("fault points", float64(len(r.Points)))
	add("of them came", float64(came))
	add("hit", float64(hit))
	add(fmt.Sprintf("hit %d times and more", often), float64(tried))
	add("violations", float64(len(r.Violations)))
	page := section(c.title, c.text, table.markdown(), []string{c.command})
	if len(seldom) > 1 {
		page += "\n" + seldom.markdown()
	}
	return page, nil
}
