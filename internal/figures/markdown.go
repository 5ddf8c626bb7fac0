package main

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// widthMax is the greatest width of a line.
const widthMax = 120

// grid is a table of texts. Its first row is the head, its first column names the rows.
type grid [][]string

// markdown writes the table. One that is too wide is divided: its last columns go to
// a second table with the same first column. Where two columns are too wide
// already, their texts are broken over several rows.
func (g grid) markdown() string {
	if len(g) == 0 {
		return ""
	}
	if widths := g.widths(); len(widths) > 1 && widths[0]+widths[1]+rule(2) > widthMax {
		first := min(widths[0], 52)
		limits := []int{first, widthMax - first - rule(2)}
		for range len(widths) - 2 {
			limits = append(limits, limits[1])
		}
		g = g.wrapped(limits...)
	}
	widths := g.widths()
	used, fit := widths[0], 1
	for fit < len(widths) && (fit < 2 || used+widths[fit]+rule(fit+1) <= widthMax) {
		used += widths[fit]
		fit++
	}
	if fit == len(widths) {
		return g.rows(widths)
	}
	left, right := g.split(fit)
	return left.markdown() + "\n" + right.markdown()
}

// rule is the width of what separates so many columns.
func rule(columns int) int { return 3*columns + 1 }

// widths returns how wide each column is.
func (g grid) widths() []int {
	widths := make([]int, len(g[0]))
	for _, row := range g {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	return widths
}

// split divides the table before a column.
func (g grid) split(at int) (left, right grid) {
	for _, row := range g {
		left = append(left, row[:at])
		right = append(right, append([]string{row[0]}, row[at:]...))
	}
	return left, right
}

// wrapped returns the table with the texts of each column broken at so many
// characters; what does not fit goes to further rows.
func (g grid) wrapped(limits ...int) grid {
	var out grid
	for _, row := range g {
		lines, most := make([][]string, len(row)), 1
		for i, cell := range row {
			lines[i] = strings.Split(strings.TrimSuffix(wrap(cell, limits[i]), "\n"), "\n")
			most = max(most, len(lines[i]))
		}
		for at := range most {
			part := make([]string, len(row))
			for i := range row {
				if at < len(lines[i]) {
					part[i] = lines[i][at]
				}
			}
			out = append(out, part)
		}
	}
	return out
}

// rows writes the table with its columns at those widths, numbers to the right.
func (g grid) rows(widths []int) string {
	right := make([]bool, len(widths))
	for i := range widths {
		right[i] = i > 0
		for _, row := range g[1:] {
			right[i] = right[i] && isNumber(row[i])
		}
	}
	var b strings.Builder
	for n, row := range g {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell = space + cell
			} else {
				cell += space
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, w := range widths {
				b.WriteString("|" + strings.Repeat("-", w+1))
				if right[i] {
					b.WriteString(":")
				} else {
					b.WriteString("-")
				}
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

// isNumber reports whether a cell is a number, with a unit or not, or none.
func isNumber(cell string) bool {
	return cell == "" || strings.IndexAny(cell, "0123456789−+–") == 0
}

// number prints a figure with that many decimals and spaces between thousands; "–"
// if there is none.
func number(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole := len(text)
	if decimals > 0 {
		whole -= decimals + 1
	}
	for at := whole - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	if v < 0 && strings.ContainsAny(text, "123456789") {
		return "−" + text
	}
	return text
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if column > 0 && column+1+n > width {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

// code writes commands as a block, long ones over several lines as a shell takes them,
// broken before a flag.
func code(commands []string) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, c := range commands {
		column := 0
		for i, part := range strings.Split(c, " -") {
			if i > 0 {
				part = "-" + part
			}
			n := utf8.RuneCountInString(part)
			switch {
			case column == 0:
			case column+1+n > widthMax-2:
				b.WriteString(" \\\n    ")
				column = 4
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(part)
			column += n
		}
		b.WriteByte('\n')
	}
	b.WriteString("```\n")
	return b.String()
}
