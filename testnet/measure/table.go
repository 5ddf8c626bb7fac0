package measure

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// writeTable prints one line per site, one for all, and what was sent.
func (r *Result) writeTable(w io.Writer) error {
	if r.Table != nil {
		return r.Table(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "site\tprocessors\tjobs\taccepted\trejected\tlocal\tmigrated\tremote\tutilization\tAWT s\tAWRT s\tresponse s\tincentive\tspent\t")
	line := func(name string, processors int64, s *Stats) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s %%\t%s\t%s\t%s\t%s\t%s\t\n", name, processors,
			s.Submitted, s.Accepted, s.Rejected, s.Local, s.Migrated, s.Remote, Fixed(int64(s.Utilization), 2),
			Fixed(int64(s.AWT), 2), Fixed(int64(s.AWRT), 2), Fixed(int64(s.ResponseTime), 2), credits(s.Incentive), credits(s.BudgetSpent))
	}
	var processors int64
	for i := range r.Sites {
		line(r.Sites[i].Name, r.Sites[i].Processors, &r.Sites[i].Stats)
		processors += r.Sites[i].Processors
	}
	line("total", processors, &r.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeSummary(w)
}

// credits prints whole credits: tables have no room for more.
func credits(a Amount) string { return strconv.FormatInt((int64(a)+500_000)/1_000_000, 10) }

func (r *Result) writeSummary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nmakespan %v s, mean bounded slowdown %v", r.Total.Makespan, r.Total.ASD)
	if p := r.Messages.PerJob; p.Max > 0 {
		fmt.Fprintf(&b, "\nmessages per job: mean %v, least %d, most %d, 99%% at most %d", p.Mean, p.Min, p.Max, p.P99)
	}
	if d := r.Messages.DirectoryPerQuery; d.Max > 0 {
		fmt.Fprintf(&b, "\ndirectory messages per query: mean %v, least %d, most %d, 99%% at most %d", d.Mean, d.Min, d.Max, d.P99)
	}
	var names []string
	for name := range r.Messages.ByType {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		sep := ", "
		if i == 0 {
			sep = "\nmessages sent: "
		}
		fmt.Fprintf(&b, "%s%s %d", sep, name, r.Messages.ByType[name])
	}
	fmt.Fprintf(&b, "\n%s run, seed %d", r.Mode, r.Seed)
	if r.TraceHash != "" {
		fmt.Fprintf(&b, ", trace hash %s", r.TraceHash)
	}
	fmt.Fprintf(&b, ": %d events, %v s in %v s\n", r.Events, r.VirtualSeconds, r.WallSeconds)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCSV prints a line per site and one for all, a column per key of STATS.
func (r *Result) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := append(slices.Clone(r.Sites), SiteResult{Name: "total", Stats: r.Total})
	for _, site := range r.Sites {
		rows[len(rows)-1].Processors += site.Processors
	}
	for i := range rows {
		keys, values, err := columns(&rows[i])
		if err != nil {
			return err
		}
		if i == 0 {
			if err := out.Write(keys); err != nil {
				return err
			}
		}
		if err := out.Write(values); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// columns returns the keys and values of a site as JSON has them, in that order.
func columns(site *SiteResult) (keys, values []string, err error) {
	text, err := json.Marshal(site)
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		value, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, fmt.Sprint(key)), append(values, fmt.Sprint(value))
	}
	return keys, values, nil
}
