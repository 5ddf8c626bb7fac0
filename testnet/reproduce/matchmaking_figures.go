package reproduce

import (
	"fmt"
	"math"
	"strconv"

	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/delegation"
)

// matchMetric is a figure of a run.
type matchMetric struct {
	name     string
	unit     Unit
	decimals int
	of       func(r *measure.Result) Number
}

const perDay = 86400

// Days is the unit of goodput.
const Days Unit = "CPU days"

var (
	metricGoodput = matchMetric{"goodput", Days, 1, func(r *measure.Result) Number { return Number(r.Total.Goodput.Float() / perDay) }}
	metricJF      = matchMetric{"jobs finished", Percent, 2, func(r *measure.Result) Number {
		_, finished, _ := delegation.Measured(r)
		return Number(100 * finished.Float())
	}}
	metricBound = matchMetric{"jobs that could finish", Percent, 2, func(r *measure.Result) Number {
		_, share, _ := delegation.Submitted(r)
		return Number(100 * share.Float())
	}}
	metricLoad = matchMetric{"load of the generated jobs", Percent, 1, func(r *measure.Result) Number {
		_, _, load := delegation.Submitted(r)
		return Number(100 * load)
	}}
	metricLent = matchMetric{"jobs on borrowed processors", Percent, 2, func(r *measure.Result) Number {
		_, _, d := delegation.Measured(r)
		return 100 * ratio(float64(d.Brought), float64(r.Total.Submitted))
	}}
	metricAWT   = matchMetric{"mean wait", Seconds, 1, func(r *measure.Result) Number { return Number(r.Total.AWT.Float()) }}
	metricASD   = matchMetric{"mean slowdown", "", 2, func(r *measure.Result) Number { return Number(r.Total.ASD.Float()) }}
	metricPer   = matchMetric{"delegations per job", "", 3, func(r *measure.Result) Number { return Number(r.Total.DelegationsPerJob.Float()) }}
	metricChain = matchMetric{"delegations per delegated job", "", 3, func(r *measure.Result) Number {
		_, _, d := delegation.Measured(r)
		return ratio(float64(d.Hops), float64(d.Brought))
	}}
	metricShare = matchMetric{"DMM messages of all", Percent, 2, func(r *measure.Result) Number {
		o, _, _ := delegation.Measured(r)
		return 100 * ratio(float64(o.DMM), float64(o.Workload()+o.DMM+o.KeepAlive))
	}}
	metricOver = matchMetric{"DMM over workload management messages", Percent, 1, func(r *measure.Result) Number {
		o, _, _ := delegation.Measured(r)
		return 100 * ratio(float64(o.DMM), float64(o.Workload()))
	}}
)

// goodputPart returns goodput on leased processors by distance.
func goodputPart(name string, of func(r *measure.Result) measure.Decimal) matchMetric {
	return matchMetric{name, Days, 1, func(r *measure.Result) Number { return Number(of(r).Float() / perDay) }}
}

// messageCount counts messages of one type, in thousands.
func messageCount(name string, of func(o delegation.Overhead) int64) matchMetric {
	return matchMetric{name, "thousands", 1, func(r *measure.Result) Number {
		o, _, _ := delegation.Measured(r)
		return Number(float64(of(o)) / 1000)
	}}
}

// numbers returns a metric over the sets of a case.
func (s *matchStudy) numbers(c matchCase, m matchMetric) (list []Number) {
	for set := range s.sets {
		c.set = set + 1
		if r := s.results[c]; r != nil {
			list = append(list, m.of(r))
		}
	}
	return list
}

// mean returns the mean of a metric over the sets of a case; None if it was not run.
func (s *matchStudy) mean(c matchCase, m matchMetric) Number { return spreadOf(s.numbers(c, m)).Mean }

// student is the 97.5 % quantile of Student's t by degrees of freedom from 1 on; the
// last is used beyond.
var student = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
}

// halfWidth returns half the width of the 95 % confidence interval of the mean.
func halfWidth(numbers []Number) Number {
	spread := spreadOf(numbers)
	if spread.N < 2 {
		return None
	}
	squares := 0.0
	for _, n := range numbers {
		if n.Known() {
			squares += math.Pow(float64(n-spread.Mean), 2)
		}
	}
	n := float64(spread.N)
	return Number(student[min(spread.N-2, len(student)-1)] * math.Sqrt(squares/(n-1)/n))
}

// pairs returns by how much percent a is above b in the mean, and half the width of the
// 95 % confidence interval of that: sets are compared one by one, as both had the same
// jobs.
func (s *matchStudy) pairs(a, b matchCase, m matchMetric) (gain, half Number) {
	of, with := s.numbers(a, m), s.numbers(b, m)
	if len(of) != len(with) {
		return None, None
	}
	differences := make([]Number, len(of))
	for i := range of {
		differences[i] = of[i] - with[i]
	}
	base := spreadOf(with).Mean
	return 100 * spreadOf(differences).Mean / base, 100 * halfWidth(differences) / base
}

// over prints what pairs returns.
func (s *matchStudy) over(a, b matchCase, m matchMetric) string {
	gain, half := s.pairs(a, b, m)
	text := formatDeviation(gain, Jobs)
	if half.Known() {
		text += " (± " + format(half, 1) + ")"
	}
	return text
}

// row is a measure over cases, with the confidence of each figure in another.
func (s *matchStudy) row(name string, m matchMetric, cases []matchCase) []Measure {
	value := Measure{Name: name, Unit: m.unit, Decimals: m.decimals}
	width := Measure{Name: name + " ± 95 %", Unit: m.unit, Decimals: m.decimals}
	for _, c := range cases {
		numbers := s.numbers(c, m)
		spread := spreadOf(numbers)
		value.Cells = append(value.Cells, Cell{Published: None, Here: spread.Mean, Spread: &spread})
		width.Cells = append(width.Cells, Cell{Published: None, Here: halfWidth(numbers)})
	}
	return []Measure{value, width}
}

// compare makes a table and a plot of a metric, a row for each series of cases.
func (s *matchStudy) compare(figure, title, x string, at []int, m matchMetric, series []string, of func(series string, at int) matchCase) (Table, Plot) {
	y := m.name
	if m.unit != "" {
		y += " (" + string(m.unit) + ")"
	}
	t, p := newFigure(figure, title, x, y, at)
	for _, name := range series {
		s.add(&t, &p, name, m, at, func(at int) matchCase { return of(name, at) })
	}
	return t, p
}

// list makes a table and a plot of several metrics, a row for each.
func (s *matchStudy) list(figure, title, x string, at []int, metrics []matchMetric, of func(at int) matchCase) (Table, Plot) {
	t, p := newFigure(figure, title, x, string(metrics[0].unit), at)
	for _, m := range metrics {
		s.add(&t, &p, m.name, m, at, of)
	}
	return t, p
}

// newFigure returns a table and a plot with columns and points, and nothing in them.
func newFigure(figure, title, x, y string, at []int) (Table, Plot) {
	t := Table{Title: title}
	p := Plot{Figure: figure, Title: title, X: x, Y: y}
	for _, v := range at {
		t.Columns = append(t.Columns, strconv.Itoa(v))
		p.At = append(p.At, float64(v))
	}
	return t, p
}

// add adds the rows of a metric to a table and the first of them to its plot.
func (s *matchStudy) add(t *Table, p *Plot, name string, m matchMetric, at []int, of func(at int) matchCase) {
	var cases []matchCase
	for _, v := range at {
		cases = append(cases, of(v))
	}
	rows := s.row(name, m, cases)
	t.Measures = append(t.Measures, rows...)
	line := Series{Name: name}
	for _, c := range rows[0].Cells {
		line.Values = append(line.Values, c.Here)
	}
	p.Series = append(p.Series, line)
}

// because says why the claim added last does not hold, if it does not. The reason may be
// formatted as by fmt.Sprintf.
func (e *Experiment) because(format string, args ...any) {
	c := e.Claims[len(e.Claims)-1]
	if !c.Holds {
		e.Text = append(e.Text, fmt.Sprintf("Not as published: %s: %s, here %s. %s", c.Text, c.Published, c.Here, fmt.Sprintf(format, args...)))
	}
}

// gain prints by how much percent a is above b.
func gain(a, b Number) string { return formatDeviation(100*(a-b)/b, Jobs) }

// claim makes a Claim.
func claim(text, published string, holds bool, format string, args ...any) Claim {
	return Claim{Text: text, Published: published, Here: fmt.Sprintf(format, args...), Holds: holds}
}
