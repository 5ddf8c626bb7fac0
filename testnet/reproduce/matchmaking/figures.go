package matchmaking

import (
	"math"

	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// matchMetric is a figure of a run.
type matchMetric struct {
	name     string
	unit     reproduce.Unit
	decimals int
	of       func(r *measure.Result) reproduce.Number
}

const perDay = 86400

// Days is the unit of goodput.
const Days reproduce.Unit = "CPU days"

var (
	metricGoodput = matchMetric{"goodput", Days, 1, func(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.Goodput.Float() / perDay) }}
	metricJF      = matchMetric{"jobs finished", reproduce.Percent, 2, func(r *measure.Result) reproduce.Number {
		_, finished, _ := delegation.Measured(r)
		return reproduce.Number(100 * finished.Float())
	}}
	metricBound = matchMetric{"jobs that could finish", reproduce.Percent, 2, func(r *measure.Result) reproduce.Number {
		_, share, _ := delegation.Submitted(r)
		return reproduce.Number(100 * share.Float())
	}}
	metricStarted = matchMetric{"jobs started", reproduce.Percent, 2, func(r *measure.Result) reproduce.Number {
		return reproduce.Number(100 * delegation.Started(r).Float())
	}}
	metricPossible = matchMetric{"goodput if no job waited", Days, 1, func(r *measure.Result) reproduce.Number {
		return reproduce.Number(delegation.Possible(r).Float() / perDay)
	}}
	metricLent = matchMetric{"jobs on borrowed processors", reproduce.Percent, 2, func(r *measure.Result) reproduce.Number {
		_, _, d := delegation.Measured(r)
		return 100 * reproduce.Ratio(float64(d.Brought), float64(r.Total.Submitted))
	}}
	metricAWT   = matchMetric{"mean wait", reproduce.Seconds, 1, func(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.AWT.Float()) }}
	metricASD   = matchMetric{"mean slowdown", "", 2, func(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.ASD.Float()) }}
	metricPer   = matchMetric{"delegations per job", "", 3, func(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.DelegationsPerJob.Float()) }}
	metricChain = matchMetric{"delegations per delegated job", "", 3, func(r *measure.Result) reproduce.Number {
		_, _, d := delegation.Measured(r)
		return reproduce.Ratio(float64(d.Hops), float64(d.Brought))
	}}
	metricShare = matchMetric{"DMM messages of all", reproduce.Percent, 2, func(r *measure.Result) reproduce.Number {
		o, _, _ := delegation.Measured(r)
		return 100 * reproduce.Ratio(float64(o.DMM), float64(o.Workload()+o.DMM+o.KeepAlive))
	}}
	metricOver = matchMetric{"DMM over workload management messages", reproduce.Percent, 1, func(r *measure.Result) reproduce.Number {
		o, _, _ := delegation.Measured(r)
		return 100 * reproduce.Ratio(float64(o.DMM), float64(o.Workload()))
	}}
)

// goodputPart returns goodput on leased processors by distance.
func goodputPart(name string, of func(r *measure.Result) measure.Decimal) matchMetric {
	return matchMetric{name, Days, 1, func(r *measure.Result) reproduce.Number { return reproduce.Number(of(r).Float() / perDay) }}
}

// messageCount counts messages of one type, in thousands.
func messageCount(name string, of func(o delegation.Overhead) int64) matchMetric {
	return matchMetric{name, "thousands", 1, func(r *measure.Result) reproduce.Number {
		o, _, _ := delegation.Measured(r)
		return reproduce.Number(float64(of(o)) / 1000)
	}}
}

// numbers returns a metric over the sets of a case.
func (s *matchStudy) numbers(c matchCase, m matchMetric) (list []reproduce.Number) {
	for set := range s.sets {
		c.set = set + 1
		if r := s.results[c]; r != nil {
			list = append(list, m.of(r))
		}
	}
	return list
}

// mean returns the mean of a metric over the sets of a case; None if it was not run.
func (s *matchStudy) mean(c matchCase, m matchMetric) reproduce.Number {
	return reproduce.SpreadOf(s.numbers(c, m)).Mean
}

// student is the 97.5 % quantile of Student's t by degrees of freedom from 1 on; the
// last is used beyond.
var student = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
}

// halfWidth returns half the width of the 95 % confidence interval of the mean.
func halfWidth(numbers []reproduce.Number) reproduce.Number {
	spread := reproduce.SpreadOf(numbers)
	if spread.N < 2 {
		return reproduce.None
	}
	squares := 0.0
	for _, n := range numbers {
		if n.Known() {
			squares += math.Pow(float64(n-spread.Mean), 2)
		}
	}
	n := float64(spread.N)
	return reproduce.Number(student[min(spread.N-2, len(student)-1)] * math.Sqrt(squares/(n-1)/n))
}

// pairs returns by how much percent a is above b in the mean, and half the width of the
// 95 % confidence interval of that: sets are compared one by one, as both had the same
// jobs.
func (s *matchStudy) pairs(a, b matchCase, m matchMetric) (gain, half reproduce.Number) {
	of, with := s.numbers(a, m), s.numbers(b, m)
	if len(of) != len(with) {
		return reproduce.None, reproduce.None
	}
	differences := make([]reproduce.Number, len(of))
	for i := range of {
		differences[i] = of[i] - with[i]
	}
	base := reproduce.SpreadOf(with).Mean
	return 100 * reproduce.SpreadOf(differences).Mean / base, 100 * halfWidth(differences) / base
}

// over prints what pairs returns.
func (s *matchStudy) over(a, b matchCase, m matchMetric) string {
	gain, half := s.pairs(a, b, m)
	text := reproduce.FormatDeviation(gain, reproduce.Jobs)
	if half.Known() {
		text += " (± " + reproduce.Format(half, 1) + ")"
	}
	return text
}

// row is a measure over cases, with the confidence of each figure in another.
func (s *matchStudy) row(name string, m matchMetric, cases []matchCase) []reproduce.Measure {
	value := reproduce.Measure{Name: name, Unit: m.unit, Decimals: m.decimals}
	width := reproduce.Measure{Name: name + " ± 95 %", Unit: m.unit, Decimals: m.decimals}
	for _, c := range cases {
		numbers := s.numbers(c, m)
		spread := reproduce.SpreadOf(numbers)
		value.Cells = append(value.Cells, reproduce.Cell{Published: reproduce.None, Here: spread.Mean, Spread: &spread})
		width.Cells = append(width.Cells, reproduce.Cell{Published: reproduce.None, Here: halfWidth(numbers)})
	}
	return []reproduce.Measure{value, width}
}

// compare makes a table and a plot of a metric, a row for each series of cases.
func (s *matchStudy) compare(figure, title, x string, at []int, m matchMetric, series []string, of func(series string, at int) matchCase) (reproduce.Table, reproduce.Plot) {
	y := m.name
	if m.unit != "" {
		y += " (" + string(m.unit) + ")"
	}
	t, p := reproduce.NewFigure(figure, title, x, y, at)
	for _, name := range series {
		s.add(&t, &p, name, m, at, func(at int) matchCase { return of(name, at) })
	}
	return t, p
}

// list makes a table and a plot of several metrics, a row for each.
func (s *matchStudy) list(figure, title, x string, at []int, metrics []matchMetric, of func(at int) matchCase) (reproduce.Table, reproduce.Plot) {
	t, p := reproduce.NewFigure(figure, title, x, string(metrics[0].unit), at)
	for _, m := range metrics {
		s.add(&t, &p, m.name, m, at, of)
	}
	return t, p
}

// add adds the rows of a metric to a table and the first of them to its plot.
func (s *matchStudy) add(t *reproduce.Table, p *reproduce.Plot, name string, m matchMetric, at []int, of func(at int) matchCase) {
	var cases []matchCase
	for _, v := range at {
		cases = append(cases, of(v))
	}
	rows := s.row(name, m, cases)
	t.Measures = append(t.Measures, rows...)
	line := reproduce.Series{Name: name}
	for _, c := range rows[0].Cells {
		line.Values = append(line.Values, c.Here)
	}
	p.Series = append(p.Series, line)
}
