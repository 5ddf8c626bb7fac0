package muscle

import (
	"fmt"
	"math"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
)

// significant is by how many percent a figure is below another's at least if the paper
// calls it significantly better.
const significant = 10

var bothOthers = []int{byDLL, byWRAND}

// ahead is the claim that MUSCLE's figure is below other policies' in all cases of a sweep
// that count, by so many percent at least. It is in shape if it is below at all in most.
func (s *muscleStudy) ahead(what string, over sweep, others []int, counts func(i int) bool, least float64, f func(*measure.Result) reproduce.Number) reproduce.Claim {
	n, held, below := 0, 0, 0
	lo, hi := math.Inf(1), math.Inf(-1)
	worst := ""
	for i, c := range over.cases {
		if counts != nil && !counts(i) {
			continue
		}
		for _, other := range others {
			margin := float64(s.margin(c, other, reproduce.None, f).Here)
			n++
			if margin > 0 {
				below++
			}
			if margin > 0 && margin >= least {
				held++
			}
			if margin < lo {
				lo, worst = margin, fmt.Sprintf("%s against %s", over.columns[i], musclePolicyNames[other])
			}
			hi = max(hi, margin)
		}
	}
	published := "always"
	if least > 0 {
		published = "significantly"
	}
	c := reproduce.NewClaim(what, published, held == n, "in %d of %d, by %.1f to %.1f %%, least at %s", held, n, lo, hi, worst)
	c.Shape = 2*below > n
	return c
}

// worsePB is the claim that MUSCLE's PB is worse than DLL's in the cases that count.
func (s *muscleStudy) worsePB(what, published string, over sweep, counts func(i int) bool) reproduce.Claim {
	n, worse, slightly, text := 0, 0, 0, ""
	for i, c := range over.cases {
		if !counts(i) {
			continue
		}
		n++
		ours, theirs := s.mean(c, pbOf), s.mean(c.by(byDLL), pbOf)
		if ours > theirs {
			worse++
		}
		if ours > theirs && ours < theirs*(1+sizeOfSlight) {
			slightly++
		}
		text += fmt.Sprintf("; %s against %s at %s", reproduce.Format(ours, 1), reproduce.Format(theirs, 1), over.columns[i])
	}
	c := reproduce.NewClaim(what, published, slightly == n || published != "slightly worse" && worse == n, "%s", text[2:])
	c.Shape = worse > 0
	return c
}

// sizeOfSlight is up to which part of the other figure one is slightly worse.
const sizeOfSlight = 0.25

// moves is the claim that the margin in MCP changes from one case to another, by so much
// in the paper.
func (s *muscleStudy) moves(what string, from, to muscleCase, other int, published [2]reproduce.Number) reproduce.Claim {
	before, after := s.margin(from, other, reproduce.None, mcpOf).Here, s.margin(to, other, reproduce.None, mcpOf).Here
	print := func(a, b reproduce.Number) string {
		return reproduce.Format(a, 1) + " → " + reproduce.Format(b, 1) + " %"
	}
	return reproduce.Sized(what, published[1]-published[0], after-before, print(published[0], published[1]), print(before, after))
}

// margins are those in MCP over a policy, in the order of the cases.
func (s *muscleStudy) margins(cases []muscleCase, other int) (margins []float64, text string) {
	for i, c := range cases {
		m := float64(s.margin(c, other, reproduce.None, mcpOf).Here)
		margins = append(margins, m)
		if i > 0 {
			text += " → "
		}
		text += reproduce.Format(reproduce.Number(m), 1)
	}
	return margins, text + " %"
}

// rises reports whether numbers rise from one to the next, and in how many of the steps.
func rises(v []float64) (always bool, steps int) {
	for i := 1; i < len(v); i++ {
		if v[i] > v[i-1] {
			steps++
		}
	}
	return steps == len(v)-1, steps
}
