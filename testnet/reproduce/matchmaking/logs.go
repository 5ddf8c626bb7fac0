package matchmaking

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gridnode/testnet/scenario/delegation"
	"gridnode/testnet/workload"
)

// The four months of §6.1: "starting from 01/11/2005".
const monthsFrom = "2005-11-01"

// gridLogs returns the logs of the DAS and of Grid'5000 in a directory, as the Grid
// Workloads Archive names them (GWA-T-1, GWA-T-2), or as the grids are called; nil unless
// both are there.
func gridLogs(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	var found [2]string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if !strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".gwf") && !strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".swf") {
			continue
		}
		for grid, words := range [2][]string{{"gwa-t-1-", "gwa-t-1.", "das2", "das-2"}, {"gwa-t-2-", "gwa-t-2.", "grid5000", "g5k"}} {
			for _, w := range words {
				if found[grid] == "" && strings.Contains(name, w) {
					found[grid] = filepath.Join(dir, e.Name())
				}
			}
		}
	}
	if found[0] == "" || found[1] == "" {
		return nil, nil
	}
	return found[:], nil
}

// longJobs returns the jobs of the long run: those of the logs, or generated ones.
func (s *matchStudy) longJobs() (jobs []workload.Job, err error) {
	if s.logs == nil {
		return delegation.LongRunJobs(s.o.Seed, s.longRun)
	}
	cfg := delegation.Default()
	cfg.Traces, cfg.From, cfg.Days = s.logs, monthsFrom, float64(s.longRun.Days)
	jobs, s.inputs, err = cfg.Jobs()
	return jobs, err
}

// longText says where the jobs of the long run come from.
func (s *matchStudy) longText() string {
	if s.logs == nil {
		return s.generatedText()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The jobs of %d days from %s on, of the logs in --traces. The run goes on until every job has ended.", s.longRun.Days, monthsFrom)
	for _, in := range s.inputs {
		if in.Site == "" {
			fmt.Fprintf(&b, " %s: %s.", in.Trace, in.Lines)
		} else {
			fmt.Fprintf(&b, " Cluster %s: %d jobs of %s.", in.Site, in.Jobs, in.Trace)
		}
		if in.Note != "" {
			fmt.Fprintf(&b, " %s.", in.Note)
		}
	}
	return b.String()
}
