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

// sizeFactor is how many times as large, or as small, as published a size may be if
// what the paper says of it is to hold.
const sizeFactor = 2

// Sized makes a Claim of something whose size the paper gives: it holds if ours has the
// same sign and is at least half and at most twice as large, and is in shape if only the
// sign is the same.
func Sized(text string, published, here Number, publishedText, hereText string) Claim {
	c := Claim{Text: text, Published: publishedText, Here: hereText}
	ratio := float64(here / published)
	c.Shape = ratio > 0
	c.Holds = ratio >= 1.0/sizeFactor && ratio <= sizeFactor
	return c
}

// Moved makes a Claim of a figure that goes from one value to another, as printed; its
// size is the change as a part of the first.
func Moved(text string, published, here [2]Number, decimals int) Claim {
	part := func(m [2]Number) Number { return (m[1] - m[0]) / m[0] }
	return Sized(text, part(published), part(here), Change(published[0], published[1], decimals), Change(here[0], here[1], decimals))
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
