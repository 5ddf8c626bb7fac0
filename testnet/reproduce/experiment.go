package reproduce

import (
	"fmt"
	"strconv"
)

// NewFigure returns a table and a plot with columns and points, and nothing in them.
func NewFigure(figure, title, x, y string, at []int) (Table, Plot) {
	t := Table{Title: title}
	p := Plot{Figure: figure, Title: title, X: x, Y: y}
	for _, v := range at {
		t.Columns = append(t.Columns, strconv.Itoa(v))
		p.At = append(p.At, float64(v))
	}
	return t, p
}

// Because says why the claim added last does not hold, if it does not. The reason may be
// formatted as by fmt.Sprintf.
func (e *Experiment) Because(format string, args ...any) {
	c := e.Claims[len(e.Claims)-1]
	if !c.Holds {
		e.Text = append(e.Text, fmt.Sprintf("Not as published: %s: %s, here %s. %s", c.Text, c.Published, c.Here, fmt.Sprintf(format, args...)))
	}
}

// Gain prints by how much percent a is above b.
func Gain(a, b Number) string { return FormatDeviation(100*(a-b)/b, Jobs) }

// NewClaim makes a Claim.
func NewClaim(text, published string, holds bool, format string, args ...any) Claim {
	return Claim{Text: text, Published: published, Here: fmt.Sprintf(format, args...), Holds: holds}
}

// Line turns a measure into a line of a plot; figures beyond the bounds leave gaps.
func (m *Measure) Line(name string, low, high Number) Series {
	s := Series{Name: name}
	for _, c := range m.Cells {
		v := c.Here
		if v < low || v > high {
			v = None
		}
		s.Values = append(s.Values, v)
	}
	return s
}

// Ratio returns a/b, or None if b is 0.
func Ratio(a, b float64) Number {
	if b == 0 {
		return None
	}
	return Number(a / b)
}

// PercentOf returns a in percent of b, or None if b is 0.
func PercentOf(a, b int64) Number { return 100 * Ratio(float64(a), float64(b)) }

// Change prints how a figure changes, with the change in percent.
func Change(from, to Number, decimals int) string {
	text := Format(from, decimals) + " → " + Format(to, decimals)
	if from.Known() && to.Known() && from != 0 {
		text += " (" + FormatDeviation(100*(to-from)/from, Credits) + ")"
	}
	return text
}
