package federation

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// logWords are the words that the name of a log of each site of table 1 has, in
// the order of the table.
var logWords = [][]string{{"CTC"}, {"KTH"}, {"CM5"}, {"LANL", "O2K"}, {"NASA"}, {"SDSC", "PAR"}, {"SDSC", "BLUE"}, {"SDSC", "SP2"}}

// siteOfLog returns the index in table 1 of the site a log is of, by its file's
// name, or -1.
func siteOfLog(path string) int {
	name := strings.ToUpper(filepath.Base(path))
	for i, words := range logWords {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(name, w) }) {
			return i
		}
	}
	return -1
}

// matchLogs finds the log of each site of table 1 among files and the files of
// directories: the published file if it is there, else the first by name. A file
// that is named must be some site's.
func matchLogs(paths []string) (logs [8]string, err error) {
	published := workload.Table1()
	offer := func(path string) bool {
		i := siteOfLog(path)
		if i < 0 {
			return false
		}
		if logs[i] == "" || filepath.Base(path) == published[i].Trace {
			logs[i] = path
		}
		return true
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return logs, scenario.ConfigError("trace", "%v", err)
		}
		if !info.IsDir() {
			if !offer(path) {
				return logs, scenario.ConfigError("trace", "%s: its name is that of no log of table 1 (CTC, KTH, LANL-CM5, LANL-O2K, NASA, SDSC-Par, SDSC-BLUE, SDSC-SP2)", path)
			}
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return logs, scenario.ConfigError("trace", "%v", err)
		}
		found := false
		for _, e := range entries {
			if isLog(e.Name()) && offer(filepath.Join(path, e.Name())) {
				found = true
			}
		}
		if !found {
			return logs, scenario.ConfigError("trace", "%s: no log of a site of table 1 in this directory", path)
		}
	}
	return logs, nil
}

func isLog(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	return strings.HasSuffix(name, ".swf") || strings.HasSuffix(name, ".gwf")
}

// twoDays returns the two days of a site's log, or, without one, of its model.
func twoDays(index int, site *workload.Site, path string, o workload.Options) ([]workload.Job, scenario.Input, error) {
	from := scenario.Input{Span: int64(2 * grid.Day / grid.Second)}
	if path == "" {
		days, err := site.GenerateDays(index, workload.EmbeddedSeed)
		from.Trace = "Lublin-Feitelson model"
		from.Note = fmt.Sprintf("generated with the jobs and the load of table 2, seed %d", workload.EmbeddedSeed)
		if site.Trace == "" {
			from.Note += "; no log of this site is published"
		}
		return days, from, err
	}
	filter := workload.Filter{Processors: site.Processors, NoEstimate: workload.NoEstimateRunTime}
	t, err := workload.OpenTrace(path, filter, o)
	if err != nil {
		return nil, from, err
	}
	defer t.Close()
	days, start, err := workload.TwoDays(t, site.Target())
	from.Trace = filepath.Base(path)
	from.Start = int64(start / grid.Second)
	from.Lines = t.Lines()
	from.Faults = t.Faults()
	return days, from, err
}

// Table1 is the workload of n sites: those of table 1, then again.
type Table1 struct {
	Sites  []workload.Site
	Days   [][]workload.Job // by site; replicas share theirs
	Inputs []scenario.Input
	Jobs   int64
}

// NewTable1 reads or generates two days for each of n sites.
func NewTable1(n int, traces []string, o workload.Options) (*Table1, error) {
	paths, err := matchLogs(traces)
	if err != nil {
		return nil, err
	}
	return fillTable1(n, func(i int, s *workload.Site) ([]workload.Job, scenario.Input, error) {
		return twoDays(i, s, paths[i], o)
	})
}

// givenWorkload is the workload of n sites whose jobs are given for table 1.
func givenWorkload(n int, days [][]workload.Job) (*Table1, error) {
	if least := min(n, len(workload.Table1())); len(days) < least {
		return nil, fmt.Errorf("%w: jobs for %d sites, want %d", scenario.ErrConfig, len(days), least)
	}
	return fillTable1(n, func(i int, _ *workload.Site) ([]workload.Job, scenario.Input, error) {
		return days[i], scenario.Input{Trace: "given", Span: int64(2 * grid.Day / grid.Second)}, nil
	})
}

// fillTable1 makes the workload of n sites: the first eight have jobs of their own,
// the others again those of the site they are a replica of.
func fillTable1(n int, jobs func(i int, s *workload.Site) ([]workload.Job, scenario.Input, error)) (*Table1, error) {
	round := len(workload.Table1())
	w := &Table1{Sites: workload.Sites(n)}
	for i := range w.Sites {
		s := &w.Sites[i]
		if i >= round {
			w.Days = append(w.Days, w.Days[i-round])
			w.Inputs = append(w.Inputs, w.Inputs[i-round])
		} else {
			days, from, err := jobs(i, s)
			if err != nil {
				return nil, err
			}
			w.Days = append(w.Days, days)
			w.Inputs = append(w.Inputs, from)
		}
		w.Inputs[i].Site = s.Name
		w.Inputs[i].Jobs = int64(len(w.Days[i]))
		w.Jobs += w.Inputs[i].Jobs
	}
	return w, nil
}

// Source returns the jobs of all sites by time of submission, from instant begin on.
func (w *Table1) Source(begin grid.Time) workload.Source {
	sources := make([]workload.Source, len(w.Days))
	for i := range w.Days {
		days := workload.Jobs(w.Days[i])
		sources[i] = &workload.Later{Source: &days, By: begin}
	}
	return workload.NewMerge(sources...)
}

// Without leaves out jobs that run longer.
func (w *Table1) Without(longest grid.Time) {
	w.Jobs = 0
	for i, days := range w.Days {
		w.Days[i] = slices.DeleteFunc(slices.Clone(days), func(j workload.Job) bool { return j.RunTime > longest })
		w.Inputs[i].Jobs = int64(len(w.Days[i]))
		w.Jobs += w.Inputs[i].Jobs
	}
}

// Shrink divides what the sites have, and what their jobs need, by a number of processors,
// up to whole ones: fewer jobs fill the sites.
func (w *Table1) Shrink(by int64) {
	part := func(processors int64) int64 { return (processors + by - 1) / by }
	round := len(workload.Table1())
	for i := range w.Sites {
		w.Sites[i].Processors = part(w.Sites[i].Processors)
		if i >= round {
			w.Days[i] = w.Days[i-round]
			continue
		}
		w.Days[i] = slices.Clone(w.Days[i])
		for j := range w.Days[i] {
			w.Days[i][j].Processors = part(w.Days[i][j].Processors)
		}
	}
}

// Warn says which lines of the logs were skipped or repaired, a line for each log; out
// may be nil.
func (w *Table1) Warn(out io.Writer) {
	if out == nil {
		return
	}
	for i := range min(len(w.Inputs), len(workload.Table1())) {
		if from := &w.Inputs[i]; from.Faults != "" {
			fmt.Fprintf(out, "%s: %s\n", from.Trace, from.Faults)
		}
	}
}
