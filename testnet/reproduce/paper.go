package reproduce

import (
	"context"
	"errors"
	"fmt"

	"gridnode/testnet/sweep"
)

// ErrConfig is wrapped by every error about Options; it names the flag at fault.
// The caller shows it and how the command is used.
var ErrConfig = errors.New("bad setting")

// ConfigError returns an error about the flag of that name.
func ConfigError(flag, format string, args ...any) error {
	return fmt.Errorf("%w: --%s: %s", ErrConfig, flag, fmt.Sprintf(format, args...))
}

// Options is what every paper takes.
type Options struct {
	Seed    uint64 // of the runs
	Traces  string // directory of logs; empty: generated workloads
	Windows int    // workloads for the spread, 1 to WindowsMax; the first is the one that is compared

	// Quick leaves out what is not in the paper: other readings and loads.
	Quick bool

	Workers int        // runs at a time; 0: one on each processor
	Away    sweep.Away // has them made elsewhere; nil: they are made here

	// Progress is told how much of the work is done, from one goroutine at a time;
	// nil: nobody wants to know.
	Progress func(done, total int64)

	Sizes []int // of experiments that scale; nil: the paper's. Tests use fewer.
	Jobs  int   // of a run of generated jobs; 0: as many as the paper's. Tests use fewer.
}

// WindowsMax bounds Options.Windows.
const WindowsMax = 50

// DefaultOptions is what the command line starts from.
func DefaultOptions() Options { return Options{Seed: 1, Windows: 5} }

func (o *Options) validate() error {
	if o.Windows < 1 || o.Windows > WindowsMax {
		return ConfigError("windows", "%d: want 1 to %d", o.Windows, WindowsMax)
	}
	if err := sweep.CheckWorkers(o.Workers); err != nil {
		return ConfigError("jobs", "%v", err)
	}
	return nil
}

// Paper is a published evaluation that can be repeated.
type Paper struct {
	Name  string // on the command line
	Title string // authors, title and year

	// Plan reads the workload and says what is to be run.
	Plan func(ctx context.Context, o Options) (*Study, error)
}

// Study is the evaluation of a paper on given workloads.
type Study struct {
	Runs     []Run
	Notes    []string // how it was done
	Readings []Reading
	Inputs   []Input
	Report   func() []Experiment // called once all Runs are done
}

// Input says where the jobs of a site came from.
type Input struct {
	Workload int    `json:"workload"` // 1 is the one that is compared
	Site     string `json:"site"`
	Source   string `json:"source"`
	Start    int64  `json:"start"` // second of the log at which it begins
	Jobs     int64  `json:"jobs"`
	Load     Number `json:"load"`            // processor-seconds of the jobs over the site's, in %
	Lines    string `json:"lines,omitempty"` // what became of the log's lines
}
