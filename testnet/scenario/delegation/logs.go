package delegation

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// logs are the logs of a run, and whose jobs are whose.
type logs struct {
	cfg   *Config
	files []*logFile
	next  int // cluster that gets the next stream of Config.Traces
}

// logFile is a log, whose jobs go to clusters by the site of their origin.
type logFile struct {
	path  string
	all   int            // cluster of all jobs; -1: by origin
	by    map[string]int // cluster by origin, as GWF logs name it
	lines string         // what became of the lines
	begin grid.Time      // on the log's clock, of its first job
	jobs  []workload.Job
}

// Jobs returns the jobs of a run and where they are from: those of logs, or generated ones.
func (cfg *Config) Jobs() ([]workload.Job, []scenario.Input, error) {
	if len(cfg.Traces)+len(cfg.Clusters) == 0 {
		jobs, err := Generate(cfg)
		return jobs, nil, err
	}
	l := &logs{cfg: cfg}
	for _, named := range cfg.Clusters {
		if err := l.addCluster(named); err != nil {
			return nil, nil, err
		}
	}
	for _, path := range cfg.Traces {
		if err := l.addTrace(path); err != nil {
			return nil, nil, err
		}
	}
	return l.read()
}

// file returns the log of a path.
func (l *logs) file(path string) *logFile {
	for _, f := range l.files {
		if f.path == path {
			return f
		}
	}
	f := &logFile{path: path, all: -1, by: make(map[string]int)}
	l.files = append(l.files, f)
	return f
}

// addCluster takes CLUSTER=FILE[:ORIGIN]: the log of a cluster, or of that what was
// submitted at one of its sites.
func (l *logs) addCluster(named string) error {
	name, path, ok := strings.Cut(named, "=")
	cluster, err := strconv.Atoi(name)
	if !ok || path == "" || err != nil || cluster < 0 || cluster >= clusters {
		return scenario.ConfigError("cluster", "%q: want NAME=FILE or NAME=FILE:ORIGIN, the name one of 00 to %02d", named, clusters-1)
	}
	origin := ""
	if at := strings.LastIndexByte(path, ':'); at > 0 {
		path, origin = path[:at], path[at+1:]
	}
	f := l.file(path)
	if origin != "" {
		f.by[origin] = cluster
	} else if f.all < 0 {
		f.all = cluster
	} else {
		return scenario.ConfigError("cluster", "%q: cluster %02d has all jobs of this log: name an ORIGIN, or another log", named, f.all)
	}
	return nil
}

// addTrace takes a log without a word on whose it is: its sites of origin are the next
// clusters, in the order of their names; of a log without any all jobs are the next one's.
func (l *logs) addTrace(path string) error {
	r, err := workload.Open(path, workload.Options{Strict: l.cfg.Strict})
	if err != nil {
		return err
	}
	defer r.Close()
	seen := make(map[int64]bool)
	var origins []string
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if record.SiteOrigin != workload.Unknown && !seen[record.SiteOrigin] {
			seen[record.SiteOrigin] = true
			origins = append(origins, r.Word(record.SiteOrigin))
		}
	}
	slices.Sort(origins)
	if l.next+max(len(origins), 1) > clusters {
		return scenario.ConfigError("trace", "%s has jobs of %d sites, and %d of %d clusters have a log: name some by --cluster NAME=FILE:ORIGIN (origins: %s)",
			path, max(len(origins), 1), l.next, clusters, strings.Join(origins, ", "))
	}
	f := l.file(path)
	if len(origins) == 0 {
		f.all = l.next
		l.next++
	}
	for _, o := range origins {
		f.by[o] = l.next
		l.next++
	}
	return nil
}

// read returns the jobs of all logs within the days of the run.
func (l *logs) read() (jobs []workload.Job, inputs []scenario.Input, err error) {
	from := grid.Time(-1)
	if l.cfg.From != "" {
		day, err := time.Parse(time.DateOnly, l.cfg.From)
		if err != nil {
			return nil, nil, scenario.ConfigError("from", "%q: want a day, like 2005-11-01", l.cfg.From)
		}
		from = grid.Time(day.Unix()) * grid.Second
	}
	span := grid.Time(l.cfg.Days * float64(grid.Day))
	var count, wider [clusters]int64
	var sources [clusters]string
	for _, f := range l.files {
		if err := f.read(l.cfg.Strict); err != nil {
			return nil, nil, err
		}
		begin := f.begin
		if from >= 0 {
			begin = from
		}
		for i := range f.jobs {
			j := &f.jobs[i]
			sources[j.Site] = filepath.Base(f.path)
			switch j.Submit -= begin; {
			case j.Submit < 0 || j.Submit >= span:
			case j.Processors > clusterSizes[j.Site]:
				wider[j.Site]++
			default:
				count[j.Site]++
				jobs = append(jobs, *j)
			}
		}
		inputs = append(inputs, scenario.Input{Trace: filepath.Base(f.path), Start: int64(begin / grid.Second), Span: int64(span / grid.Second), Lines: f.lines})
		f.jobs = nil
	}
	if len(jobs) == 0 {
		return nil, nil, fmt.Errorf("none of the logs has a job within %v days%s that fits its cluster", l.cfg.Days, map[bool]string{true: " from " + l.cfg.From}[from >= 0])
	}
	slices.SortStableFunc(jobs, func(a, b workload.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Site, b.Site))
	})
	for i := range jobs {
		jobs[i].Number = int64(i + 1) // two logs of a cluster may have the same
	}
	for c, source := range sources {
		if source != "" {
			in := scenario.Input{Site: delegationName(c), Trace: source, Jobs: count[c]}
			if wider[c] > 0 {
				in.Note = fmt.Sprintf("%d jobs are wider than its %d processors and left out", wider[c], clusterSizes[c])
			}
			inputs = append(inputs, in)
		}
	}
	return jobs, inputs, nil
}

// read reads the jobs of a log, on the clock of the world if its header says when it
// begins.
func (f *logFile) read(strict bool) error {
	t, err := workload.OpenTrace(f.path, workload.Filter{NoEstimate: workload.NoEstimateRunTime}, workload.Options{Strict: strict})
	if err != nil {
		return err
	}
	defer t.Close()
	var zero grid.Time
	if start, ok := t.Header().Int("UnixStartTime"); ok {
		zero = grid.Time(start) * grid.Second
	}
	strange := 0
	for {
		var j workload.Job
		ok, err := t.Next(&j)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		at, known := f.by[t.Origin()]
		if !known {
			at = f.all
		}
		if at < 0 {
			strange++
			continue
		}
		j.Site = at
		j.Submit += zero
		if len(f.jobs) == 0 {
			f.begin = j.Submit
		}
		f.jobs = append(f.jobs, j)
	}
	f.lines = t.Lines()
	if strange > 0 {
		f.lines += fmt.Sprintf("; %d of sites that no cluster was named for", strange)
	}
	if len(f.jobs) == 0 {
		return fmt.Errorf("%s: no job of it is for any cluster (%s)", f.path, f.lines)
	}
	return nil
}
