package reproduce

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is one of a paper's plots, drawn from our figures.
type Plot struct {
	Figure string // "Figure 2 (a)"
	Title  string
	X, Y   string // labels of the axes

	// Columns are the groups of a bar chart. If they are nil it is a line chart over At.
	Columns []string
	At      []float64

	Series []Series
}

// Series is one set of bars, or one line.
type Series struct {
	Name      string
	Values    []Number // by column, or by At; None leaves a gap
	Published bool     // pale bars, or crosses without a line
	Bound     bool     // of a line: least or greatest, drawn dashed
}

// palette is that of Okabe and Ito (2008), which colour-blind readers can tell
// apart, without the yellow, which is too pale for lines on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xd5, 0x5e, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

// Size of a plot and its text, in points; the page scales it.
const (
	plotWidth  vg.Length = 760
	plotHeight vg.Length = 330
	plotText   vg.Length = 12
)

// SVG returns the plot as an element that can stand in a page.
func (p *Plot) SVG() (template.HTML, error) {
	g := plot.New()
	g.X.Label.Text, g.Y.Label.Text = p.X, p.Y
	for _, f := range []*font.Font{
		&g.X.Label.TextStyle.Font, &g.Y.Label.TextStyle.Font, &g.X.Tick.Label.Font, &g.Y.Tick.Label.Font,
	} {
		f.Variant, f.Size = "Sans", plotText
	}
	g.Y.Min = 0
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = color.Gray{0xdd}
	g.Add(grid)
	add := p.lines
	if p.Columns != nil {
		add = p.bars
	}
	if err := add(g); err != nil {
		return "", fmt.Errorf("draw %s: %w", p.Figure, err)
	}
	g.Y.Tick.Marker = ticks{}
	g.Y.Max = max(g.Y.Max, 1e-9) // all zero
	canvas := vgsvg.New(plotWidth, plotHeight)
	g.Draw(draw.Crop(draw.New(canvas), 0, -10, 4, -8))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw %s: %w", p.Figure, err)
	}
	at := bytes.Index(b.Bytes(), []byte("<svg"))
	if at < 0 {
		return "", fmt.Errorf("draw %s: the canvas gave no SVG", p.Figure)
	}
	return template.HTML(b.Bytes()[at:]), nil // from the plot library, which escapes texts
}

// Key is an entry of a plot's legend, which stands beside it as text.
type Key struct {
	Name   string
	Mark   string // "bar", "line", "dashes" or "cross"
	Colour string // "#0072b2"
}

// Keys returns the legend.
func (p *Plot) Keys() []Key {
	keys := make([]Key, len(p.Series))
	for i, s := range p.Series {
		mark := "line"
		switch {
		case p.Columns != nil:
			mark = "bar"
		case s.Published:
			mark = "cross"
		case s.Bound:
			mark = "dashes"
		}
		c := p.colour(i)
		keys[i] = Key{s.Name, mark, fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)}
	}
	return keys
}

// colour returns that of a series. In bar charts a published series is a pale form
// of the one behind it, with which it is compared.
func (p *Plot) colour(series int) color.RGBA {
	if p.Columns == nil {
		if p.Series[series].Published {
			return color.RGBA{A: 0xff}
		}
		return palette[series%len(palette)]
	}
	hue := 0
	for _, s := range p.Series[:series] {
		if !s.Published {
			hue++
		}
	}
	c := palette[hue%len(palette)]
	if p.Series[series].Published {
		return pale(c)
	}
	return c
}

// bars draws the series side by side in each column.
func (p *Plot) bars(g *plot.Plot) error {
	const share = 0.8 // of a column that bars fill
	room := float64(plotWidth-80) / float64(len(p.Columns))
	width := vg.Length(room * share / float64(len(p.Series)))
	for i, s := range p.Series {
		values := make(plotter.Values, len(s.Values))
		for j, v := range s.Values {
			if v.Known() {
				values[j] = float64(v)
			}
		}
		bar, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bar.Offset = width * (vg.Length(i) - vg.Length(len(p.Series)-1)/2)
		bar.Color = p.colour(i)
		bar.LineStyle.Color, bar.LineStyle.Width = color.Gray{0x55}, 0.4
		g.Add(bar)
	}
	g.NominalX(p.Columns...)
	g.X.Min, g.X.Max = -0.5, float64(len(p.Columns))-0.5
	return nil
}

// lines draws the series over At.
func (p *Plot) lines(g *plot.Plot) error {
	for i, s := range p.Series {
		for _, points := range p.stretches(s.Values) {
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			c := p.colour(i)
			line.Color, line.Width = c, 1.8
			marks.Color, marks.Radius, marks.Shape = c, 3, draw.CircleGlyph{}
			if s.Bound {
				line.Dashes = []vg.Length{5, 4}
				line.Width = 1.2
			}
			if s.Published {
				marks.Radius, marks.Shape = 6, draw.CrossGlyph{}
				g.Add(marks)
				continue
			}
			g.Add(line, marks)
		}
	}
	if len(p.At) > 1 {
		g.X.Min, g.X.Max = slices.Min(p.At), slices.Max(p.At)
	}
	g.X.Tick.Marker = plot.ConstantTicks(p.ticks())
	return nil
}

// stretches returns the points of a line between its gaps.
func (p *Plot) stretches(values []Number) (all []plotter.XYs) {
	open := false
	for j, v := range values {
		if v.Known() {
			if !open {
				all = append(all, nil)
			}
			last := &all[len(all)-1]
			*last = append(*last, plotter.XY{X: p.At[j], Y: float64(v)})
		}
		open = v.Known()
	}
	return all
}

// labelsMax is how many labels an axis has room for.
const labelsMax = 20

// ticks marks what was measured and nothing between, and labels as many as there is
// room for.
func (p *Plot) ticks() []plot.Tick {
	marks := make([]plot.Tick, len(p.At))
	every := (len(p.At) + labelsMax - 1) / labelsMax
	for i, at := range p.At {
		marks[i] = plot.Tick{Value: at}
		if i%every == 0 {
			marks[i].Label = fmt.Sprint(at)
		}
	}
	return marks
}

// pale returns a colour mixed with white.
func pale(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 2*255) / 3) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

// ticks divides an axis into four to ten steps of 1, 2 or 5 times a power of ten and
// labels them with short numbers: "250", "2.5 k", "1.2 M", "2.1 G".
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(least, most float64) (marks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((most-least)/4)))
	for _, factor := range []float64{5, 2} {
		if (most-least)/(step*factor) >= 4 {
			step *= factor
			break
		}
	}
	for at := math.Ceil(least / step); at*step <= most; at++ {
		marks = append(marks, plot.Tick{Value: at * step, Label: short(at * step)})
	}
	return marks
}

func short(v float64) string {
	if v == 0 { // from below, too
		return "0"
	}
	for _, unit := range []struct {
		scale float64
		name  string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if math.Abs(v) >= unit.scale {
			return fmt.Sprintf("%.4g%s", v/unit.scale, unit.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}
