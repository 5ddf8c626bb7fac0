package matchmaking

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// The long run of §6.1: four months from 1 November on, with as many jobs and as much
// processor-time as table 3 says. The paper says nothing of the sizes of batches but
// that some have "500 or more jobs", and that more than a thousand jobs arrived at one
// cluster in an hour.
var longRun = delegation.LongRun{
	Days: 120, Jobs: 455_400, Work: grid.Time(117*365.25*86400) * grid.Second,
	Batched: 0.7, BatchMost: 1000, Imbalance: 3,
}

// shortLongRun is how many days of it are run where the rest is made small, too (tests).
const shortLongRun = 4

const (
	sampleSeconds = 900 // between two points of figure 7
	figure7Hours  = 48
)

// longCase is the long run under an architecture.
func longCase(architecture string) matchCase {
	return matchCase{architecture: architecture, threshold: 100, ordering: "neighbours", long: true}
}

// long is §6.1, figure 7 and table 3.
func (s *matchStudy) long() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Four months (§6.1, figure 7, table 3)", Text: []string{s.longText()}}
	e.Tables = append(e.Tables, s.table3())
	s.longClaims(&e)
	if at, ok := s.busyDays(); ok {
		text, plots, claims := s.figure7(at)
		e.Text, e.Plots, e.Claims = append(e.Text, text), plots, append(e.Claims, claims...)
	}
	return e
}

// generatedText says what stands for the logs.
func (s *matchStudy) generatedText() string {
	w := s.longRun
	return fmt.Sprintf("The traces of the DAS and Grid'5000 (GWA-T-1 and GWA-T-2) are not to be had. In their place: generated jobs with what is printed of them, %d jobs with %.0f CPU-years in %d days in expectation (a load of %s %%), %.0f %% of them in batches of 2 to %d within 120 s (§5.2), and clusters of which the busiest has up to %.0f times the jobs per processor of the idlest (§2.2). How large batches are, and which cluster is how busy, is not printed; by these the waits stand or fall. The run goes on until every job has ended.",
		w.Jobs, w.Work.Seconds()/86400/365.25, w.Days, reproduce.Format(reproduce.Number(100*w.Work.Seconds()/86400/float64(w.Days)/dualGridProcessors), 1), 100*w.Batched, w.BatchMost, w.Imbalance)
}

// dualGridProcessors are those of all twenty clusters.
const dualGridProcessors = 3326

// table3 sets our figures beside the published ones.
func (s *matchStudy) table3() reproduce.Table {
	title := "Table 3 (generated jobs)"
	if s.logs != nil {
		title = "Table 3"
	}
	t := reproduce.Table{Title: title, Columns: slices.Clone(delegation.Architectures)}
	years := matchMetric{"goodput", "CPU years", 1, func(r *measure.Result) reproduce.Number { return metricGoodput.of(r) / 365.25 }}
	jobs := matchMetric{"jobs", "thousands", 1, func(r *measure.Result) reproduce.Number { return reproduce.Number(r.Total.Submitted) / 1000 }}
	for _, row := range []struct {
		m         matchMetric
		published func(publishedRow) reproduce.Number
	}{
		{jobs, func(publishedRow) reproduce.Number { return 455.4 }},
		{metricAWT, func(p publishedRow) reproduce.Number { return p.wait }},
		{metricASD, func(p publishedRow) reproduce.Number { return p.slowdown }},
		{years, func(publishedRow) reproduce.Number { return 117 }},
		{metricJF, func(publishedRow) reproduce.Number { return 100 }},
	} {
		measure := reproduce.Measure{Name: row.m.name, Unit: row.m.unit, Decimals: row.m.decimals}
		for _, a := range delegation.Architectures {
			c := reproduce.Cell{Published: reproduce.None, Here: s.longMetric(a, row.m)}
			if p, ok := publishedTable3[a]; ok {
				c.Published = row.published(p)
			}
			measure.Cells = append(measure.Cells, c)
		}
		t.Measures = append(t.Measures, measure)
	}
	return t
}

// longMetric returns a figure of the long run.
func (s *matchStudy) longMetric(architecture string, m matchMetric) reproduce.Number {
	c := longCase(architecture)
	c.set = 1
	if r := s.results[c]; r != nil {
		return m.of(r)
	}
	return reproduce.None
}

// longClaims compares what the text says of table 3.
func (s *matchStudy) longClaims(e *reproduce.Experiment) {
	wait := func(a string) reproduce.Number { return s.longMetric(a, metricAWT) }
	all := reproduce.Number(100)
	for _, a := range delegation.Architectures {
		all = min(all, s.longMetric(a, metricJF))
	}
	least := slices.Min([]reproduce.Number{wait("dmm"), wait("fcondor"), wait("condor"), wait("sep-c")})
	add := func(text, published string, holds bool, format string, args ...any) {
		e.Claims = append(e.Claims, reproduce.NewClaim(text, published, holds, format, args...))
	}
	add("jobs finished by every architecture in four months", "100 %", all == 100, "%s %%", reproduce.Format(all, 2))
	add("mean wait of cern against the least of the decentralized ones", "least, by a large margin", wait("cern") < least, "%s against %s s", reproduce.Format(wait("cern"), 0), reproduce.Format(least, 0))
	e.Because("One wide job at the head of its one queue holds up all others until a cluster is empty enough. The model makes 5 %% of the jobs parallel, some as wide as the widest cluster; how wide the jobs of the traces were is not printed.")
	add("mean wait of dmm against fcondor", "1283 against 2570 s", wait("dmm") < wait("fcondor"), "%s against %s s", reproduce.Format(wait("dmm"), 0), reproduce.Format(wait("fcondor"), 0))
	add("mean wait of dmm against condor and sep-c", "1283 against 7681 and 1938 s", wait("dmm") < min(wait("condor"), wait("sep-c")), "%s against %s and %s s", reproduce.Format(wait("dmm"), 0), reproduce.Format(wait("condor"), 0), reproduce.Format(wait("sep-c"), 0))
	add("mean wait of condor against sep-c", "7681 against 1938 s", wait("condor") > wait("sep-c"), "%s against %s s", reproduce.Format(wait("condor"), 0), reproduce.Format(wait("sep-c"), 0))
}

// samples returns the samples of the long run under an architecture.
func (s *matchStudy) samples(architecture string) []delegation.Sample {
	c := longCase(architecture)
	c.set = 1
	if r := s.results[c]; r != nil {
		return delegation.Samples(r)
	}
	return nil
}

const figure7Samples = figure7Hours * 3600 / sampleSeconds

// waiting returns how many jobs have not begun at a sample.
func waiting(s *delegation.Sample) int64 { return s.Submitted - s.Started }

// busyDays returns the sample at which the two days of figure 7 begin, at midnight: of
// those at whose end no architecture has more than a hundredth of the days' jobs waiting
// ("all architectures are capable of starting all the incoming jobs"), those in which
// most wait under condor, in the mean.
func (s *matchStudy) busyDays() (at int, ok bool) {
	condor := s.samples("condor")
	var most int64
	for from := 0; from+figure7Samples < len(condor); from += 86400 / sampleSeconds {
		end := from + figure7Samples
		jobs := condor[end].Submitted - condor[from].Submitted
		fits := true
		for _, a := range delegation.Architectures {
			samples := s.samples(a)
			fits = fits && end < len(samples) && waiting(&samples[from])*100 <= jobs && waiting(&samples[end])*100 <= jobs
		}
		if !fits {
			continue
		}
		sum := int64(0)
		for i := from; i <= end; i++ {
			sum += waiting(&condor[i])
		}
		if !ok || sum > most {
			at, most, ok = from, sum, true
		}
	}
	return at, ok
}

// figure7 draws the two days from a sample on.
func (s *matchStudy) figure7(from int) (text string, plots []reproduce.Plot, claims []reproduce.Claim) {
	started := reproduce.Plot{Figure: "Figure 7, top", Title: "jobs started", X: "time (h)", Y: "jobs"}
	messages := reproduce.Plot{Figure: "Figure 7, bottom", Title: "messages of dmm in 15 minutes", X: "time (h)", Y: "messages"}
	arrivals := reproduce.Series{Name: "arrivals"}
	behind := map[string]reproduce.Number{} // mean number of jobs that wait
	for _, a := range delegation.Architectures {
		samples := s.samples(a)[from : from+figure7Samples+1]
		line := reproduce.Series{Name: a}
		for i := range samples {
			if a == delegation.Architectures[0] {
				started.At = append(started.At, float64(i)*sampleSeconds/3600)
				arrivals.Values = append(arrivals.Values, reproduce.Number(samples[i].Submitted-samples[0].Submitted))
			}
			line.Values = append(line.Values, reproduce.Number(samples[i].Started-samples[0].Started))
			behind[a] += reproduce.Number(waiting(&samples[i])) / reproduce.Number(len(samples))
		}
		started.Series = append(started.Series, line)
	}
	started.Series = append([]reproduce.Series{arrivals}, started.Series...)
	dmm, condor := s.samples("dmm")[from:], s.samples("condor")[from:]
	messages.At = started.At[1:]
	for _, kind := range []struct {
		name string
		of   func(o *delegation.Overhead) int64
	}{
		{"notify broker", func(o *delegation.Overhead) int64 { return o.NotifyBroker }},
		{"negotiate", func(o *delegation.Overhead) int64 { return o.Negotiate }},
		{"job data exchange", func(o *delegation.Overhead) int64 { return o.JobData }},
		{"match, claim, release", func(o *delegation.Overhead) int64 { return o.Claim }},
		{"DMM", func(o *delegation.Overhead) int64 { return o.DMM }},
	} {
		line := reproduce.Series{Name: kind.name}
		for i := 1; i <= figure7Samples; i++ {
			line.Values = append(line.Values, reproduce.Number(kind.of(&dmm[i].Overhead)-kind.of(&dmm[i-1].Overhead)))
		}
		messages.Series = append(messages.Series, line)
	}
	others := min(behind["condor"], behind["sep-c"])
	share := delegatedWhileWaiting(dmm[:figure7Samples+1], condor[:figure7Samples+1])
	return fmt.Sprintf("Figure 7: the two days from day %d on, in which most jobs wait under condor of all at whose beginning and end no architecture has more than a hundredth of their jobs waiting.", 1+from*sampleSeconds/86400),
		[]reproduce.Plot{started, messages},
		[]reproduce.Claim{
			reproduce.NewClaim("figure 7: dmm and fcondor follow the arrivals, condor and sep-c are late", "so", max(behind["dmm"], behind["fcondor"]) < others,
				"jobs waiting, mean: dmm %s, fcondor %s, condor %s, sep-c %s, cern %s, central %s", reproduce.Format(behind["dmm"], 1), reproduce.Format(behind["fcondor"], 1),
				reproduce.Format(behind["condor"], 1), reproduce.Format(behind["sep-c"], 1), reproduce.Format(behind["cern"], 1), reproduce.Format(behind["central"], 1)),
			reproduce.NewClaim("figure 7: DMM messages come when condor is late", "mostly", share > 50,
				"%s %% of them in the quarter of the time in which most jobs wait under condor", reproduce.Format(share, 0)),
		}
}

// delegatedWhileWaiting returns which share in percent of the DMM messages falls into
// the quarter of the intervals in which most jobs wait under condor.
func delegatedWhileWaiting(dmm, condor []delegation.Sample) reproduce.Number {
	type interval struct{ waiting, messages int64 }
	var list []interval
	var all, busy int64
	for i := 1; i < len(dmm); i++ {
		v := interval{waiting(&condor[i]), dmm[i].Overhead.DMM - dmm[i-1].Overhead.DMM}
		list = append(list, v)
		all += v.messages
	}
	slices.SortStableFunc(list, func(a, b interval) int { return int(b.waiting - a.waiting) })
	for _, v := range list[:len(list)/4] {
		busy += v.messages
	}
	return 100 * reproduce.Ratio(float64(busy), float64(all))
}
