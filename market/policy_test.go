package market

import (
	"fmt"
	"strings"
	"testing"

	"gridnode/grid"
)

// scripted is a policy that makes the moves it is told to, one after the other.
type scripted struct {
	coordinated
	moves []Move
}

func (p scripted) Next(s *Search) Move {
	s.Marks[3]++
	return p.moves[s.Marks[3]-1]
}

// scriptedNetwork is home and three others, with the quotes of the others at 0 to 2 and
// home's at 3.
func scriptedNetwork(t *testing.T, moves ...Move) *network {
	n := newNetwork(t)
	for i, id := range []grid.SiteID{"a", "b", "c", "home"} {
		cfg := Config{
			Offer: Offer{
				Site: id, Name: string(id), Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
				Price: grid.Credits(i+1) * grid.Credit, Foreign: true,
			},
		}
		if id == "home" {
			cfg.Placement = scripted{moves: moves}
		}
		n.add(cfg, 0).publish()
	}
	return n
}

// TestPolicyMoves checks that the agent does what a policy says, whatever that is.
func TestPolicyMoves(t *testing.T) {
	ask := func(quote int, again bool) Move { return Move{Act: ActAsk, Quote: quote, Again: again} }
	award := func(quote int) Move { return Move{Act: ActAward, Quote: quote} }
	wait, page, refuse := Move{Act: ActWait}, Move{Act: ActPage}, Move{Act: ActRefuse}
	for _, tt := range []struct {
		name  string
		moves []Move
		site  grid.SiteID // empty: refused
		panic string
	}{
		{"dearest of all", []Move{ask(2, false), award(2)}, "c", ""},
		{"two at once, second taken", []Move{ask(0, true), ask(1, false), wait, award(1)}, "b", ""},
		{"home", []Move{ask(3, false)}, "home", ""},
		{"no more pages", []Move{page}, "", ""},
		{"gives up", []Move{refuse}, "", ""},
		{"gives up with a guarantee", []Move{ask(0, false), refuse}, "", ""},
		{"waits for nobody", []Move{wait}, "", "waits for nobody"},
		{"nothing", []Move{{}}, "", "makes no move"},
		{"beyond the quotes", []Move{ask(4, false)}, "", "asks a quote that is not there"},
		{"before the quotes", []Move{award(-1)}, "", "awards a quote that is not there"},
		{"asks twice", []Move{ask(1, true), ask(1, false)}, "", "asks a site that is being asked"},
		{"asks whoever has granted", []Move{ask(1, false), ask(1, false)}, "", "asks a site that is being asked"},
		{"asks home again, which is full", []Move{ask(3, false), ask(3, false)}, "", "asks home twice"},
		{"awards what was not asked", []Move{award(1)}, "", "awards what is not granted"},
		{"awards what is not granted yet", []Move{ask(1, true), award(1)}, "", "awards what is not granted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := scriptedNetwork(t, tt.moves...)
			defer func() {
				if got := fmt.Sprint(recover()); tt.panic != "" && !strings.Contains(got, tt.panic) {
					t.Errorf("panics with %q, want %q", got, tt.panic)
				} else if tt.panic == "" && got != "<nil>" {
					t.Errorf("panics with %q", got)
				}
			}()
			if strings.Contains(tt.name, "full") {
				n.fill("home", grid.Day)
			}
			job := n.job(1, "home", 1, grid.Hour, grid.GoalCost)
			job.Deadline = n.now + 2*grid.Hour
			n.place(job)
			n.deliverAll()
			if got := n.sites["home"].jobs[job.ID].award.Site; got != tt.site {
				t.Errorf("placed at %q, want %q", got, tt.site)
			}
			for id, s := range n.sites {
				if id != tt.site && s.cluster.State(n.now).Reserved > 0 {
					t.Errorf("%s still holds processors", id)
				}
			}
		})
	}
}

// erratic is a policy that does whatever it may, at random.
type erratic struct{ coordinated }

func (erratic) Next(s *Search) Move {
	var open, granted []int
	waits, queued := false, false
	for i := range s.Quotes() {
		switch s.Standing(i) {
		case StandingQueued:
			waits, queued = true, true
		case StandingAsked:
			waits = true
		case StandingGranted:
			granted = append(granted, i)
		case StandingOpen:
			if s.Verdict(i).Outcome == OutcomeCandidate {
				open = append(open, i)
			}
		}
	}
	switch {
	case len(granted) > 0 && s.Draw(2) == 0:
		return Move{Act: ActAward, Quote: granted[s.Draw(len(granted))]}
	case len(open) > 0 && !queued && s.Asked() < 9 && s.Draw(4) > 0:
		return Move{Act: ActAsk, Quote: open[s.Draw(len(open))], Again: s.Draw(2) == 0}
	case waits && (queued || s.Draw(4) > 0):
		return Move{Act: ActWait}
	case s.Draw(8) == 0:
		return Move{Act: ActRefuse} // whatever is granted or under way is given back
	case waits:
		return Move{Act: ActWait}
	}
	return Move{Act: ActPage}
}

// TestPlacementNames: a placement is what its name says, and another name is none.
func TestPlacementNames(t *testing.T) {
	for _, p := range []Placement{PlacementCoordinated, PlacementPaper} {
		if back, err := ParsePlacement(p.String()); back != p || err != nil {
			t.Errorf("%v is taken as %v, %v", p, back, err)
		}
	}
	if p, err := ParsePlacement("none"); p != 0 || err == nil {
		t.Errorf("a name that is none is taken as %v, %v", p, err)
	}
}

// TestOneIsChosen: of those that a user is shown one is the chosen one, also if another would be chosen by now.
func TestOneIsChosen(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	for id, price := range map[grid.SiteID]grid.Price{"home": 9, "b": 1, "c": 2} {
		n.add(Config{Offer: Offer{Site: id, Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: price * grid.Credit, Foreign: true}}, 0)
	}
	job := n.job(1, "home", 1, grid.Hour, grid.GoalCost)
	job.Budget = grid.NoBudget
	n.place(job)
	broker := n.sites["home"].agent.broker
	for _, chosen := range []grid.SiteID{"b", "c", "home"} {
		var got []grid.SiteID
		for _, v := range broker.verdicts(n.now, broker.placing[job.ID], chosen) {
			if v.Outcome == OutcomeChosen {
				got = append(got, v.Site)
			}
		}
		if len(got) != 1 || got[0] != chosen {
			t.Errorf("chosen are %v, want %v", got, chosen)
		}
	}
}
