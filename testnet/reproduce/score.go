package reproduce

import "math"

// Score says how near a report comes to its paper. Counted are the figures that the
// paper prints and what it says in words, each once: alternative readings and what is
// beyond the paper are left out.
type Score struct {
	Figures  int `json:"figures"`  // that the paper prints
	Within5  int `json:"within5"`  // of them, ours is within 5 % of; points for a percentage
	Within10 int `json:"within10"` // and so on
	Within25 int `json:"within25"`
	Shape    int `json:"shape"` // within 25 %, or as far up or down its row as published

	Claims      int `json:"claims"`      // in words
	Hold        int `json:"hold"`        // of them, those that hold with their sizes
	ClaimsShape int `json:"claimsShape"` // those that hold, or go the way that is said
}

// Shapes returns how many figures and claims there are, and how many are in shape.
func (s *Score) Shapes() (all, in int) { return s.Figures + s.Claims, s.Shape + s.ClaimsShape }

// Plus adds the score of another report.
func (s *Score) Plus(t Score) {
	s.Figures += t.Figures
	s.Within5 += t.Within5
	s.Within10 += t.Within10
	s.Within25 += t.Within25
	s.Shape += t.Shape
	s.Claims += t.Claims
	s.Hold += t.Hold
	s.ClaimsShape += t.ClaimsShape
}

// ScoreOf counts the figures and claims of experiments.
func ScoreOf(experiments []Experiment) (s Score) {
	for i := range experiments {
		e := &experiments[i]
		if e.Beyond {
			continue
		}
		for _, c := range e.Claims {
			s.claim(&c)
		}
		for j := range e.Tables {
			for k := range e.Tables[j].Measures {
				s.row(&e.Tables[j].Measures[k])
			}
		}
	}
	return s
}

// unsaid stands in the place of what a paper says where it says nothing: the claim is
// our own.
const unsaid = "–"

func (s *Score) claim(c *Claim) {
	if c.Published == unsaid {
		return
	}
	s.Claims++
	if c.Holds {
		s.Hold++
	}
	if c.Holds || c.Shape {
		s.ClaimsShape++
	}
}

func (s *Score) row(m *Measure) {
	if m.Alternative {
		return
	}
	for i := range m.Cells {
		if !m.Cells[i].Published.Known() {
			continue
		}
		s.Figures++
		off := math.Abs(float64(m.Deviation(i))) // of what is not known it is not a number, and within nothing
		if off <= 5 {
			s.Within5++
		}
		if off <= 10 {
			s.Within10++
		}
		if off <= 25 {
			s.Within25++
		}
		if off <= 25 || m.ordered(i) {
			s.Shape++
		}
	}
}

// apart is by which part of the greater two published figures of a row differ if one
// counts as greater than the other.
const apart = 0.1

// ordered reports whether figure i is above and below the same others of its row as in
// the paper, as far as those are apart there. It is not if there is nothing to compare.
func (m *Measure) ordered(i int) bool {
	a := m.Cells[i]
	if !a.Here.Known() {
		return false
	}
	compared := false
	for j, b := range m.Cells {
		if i == j || !b.Published.Known() || !b.Here.Known() {
			continue
		}
		greatest := max(math.Abs(float64(a.Published)), math.Abs(float64(b.Published)))
		if math.Abs(float64(a.Published-b.Published)) <= apart*greatest {
			continue
		}
		compared = true
		if (a.Published > b.Published) != (a.Here > b.Here) || a.Here == b.Here {
			return false
		}
	}
	return compared
}
