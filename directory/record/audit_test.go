package record

import (
	"testing"

	"gridnode/grid"
)

// TestAudit: what is not as it has to be is found.
func TestAudit(t *testing.T) {
	late := 100 * grid.Day
	for name, spoil := range map[string]func(g *Registry){
		"news are published":            func(g *Registry) { g.publisher.offer.Name = "other" },
		"a record is renewed":           func(g *Registry) { g.publisher.renew = late },
		"holders are looked for":        func(g *Registry) { g.publisher.places[0].look = late },
		"an answer is not waited for":   func(g *Registry) { g.publisher.places[0].looking = true },
		"holders are sent it":           func(g *Registry) { g.publisher.copies = nil },
		"tries are counted":             func(g *Registry) { g.publisher.copies[0].tries = triesMax + 1 },
		"the newest is sent":            func(g *Registry) { g.publisher.copies[0].due, g.publisher.copies[0].sent = grid.Never, 0 },
		"a holder is not waited for":    func(g *Registry) { g.publisher.copies[0].due = late },
		"copies are where one looks":    func(g *Registry) { g.publisher.places[0].holders = nil },
		"names are found":               func(g *Registry) { clear(g.holder.claims) },
		"names go":                      func(g *Registry) { clear(g.holder.held) },
		"records go":                    func(g *Registry) { g.holder.sweep = grid.Never },
		"the router is not waited for":  func(g *Registry) { g.seeker.searches[0].deadline = late },
		"who is asked is waited for":    func(g *Registry) { g.seeker.searches[0].looking = false },
		"what is remembered is counted": func(g *Registry) { g.seeker.order = append(g.seeker.order, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t)
			var out grid.Outbox
			l.Set(0, Offer{Name: "mine"}, &out)
			key := out.Keys[0]
			l.Step(0, &grid.Closest{Key: key, Peers: names("s", 8)}, &out)
			l.Step(0, &grid.Delivery{From: "they", Message: &Enter{recordOf("they", "theirs", 5, 0)}}, &out)
			l.Step(0, &Find{Token: 1, Text: "somebody"}, &out)
			if err := Audit(0, l.Registry); err != nil {
				t.Fatal(err)
			}
			if spoil(l.Registry); Audit(0, l.Registry) == nil {
				t.Error("it is not seen")
			}
		})
	}
}
