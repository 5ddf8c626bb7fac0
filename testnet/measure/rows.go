package measure

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"gridnode/grid"
)

// JobRows writes jobs.csv: one line per job, in the order in which homes learn of
// their ends. Times are seconds on the home site's clock.
type JobRows struct {
	file   *os.File
	buffer *bufio.Writer
	out    *csv.Writer
	row    []string
}

var Columns = []string{
	"job", "home", "user", "site", "processors", "submit", "start", "end", "estimate",
	"deadline", "budget", "cost", "messages", "epoch", "outcome", "reason",
}

// CreateRows creates jobs.csv in dir.
func CreateRows(dir string) (*JobRows, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("save jobs: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, "jobs.csv"))
	if err != nil {
		return nil, fmt.Errorf("save jobs: %w", err)
	}
	r := newRows(f)
	r.file = f
	return r, r.out.Write(Columns)
}

func newRows(w io.Writer) *JobRows {
	buffer := bufio.NewWriterSize(w, 1<<16)
	return &JobRows{buffer: buffer, out: csv.NewWriter(buffer)}
}

// Write adds a job that has ended.
func (r *JobRows) Write(e *grid.Event, outcome string) error {
	j := e.Job
	deadline, budget := "", ""
	if j.Deadline != grid.Never {
		deadline = inSeconds(j.Deadline)
	}
	if j.Budget >= 0 {
		budget = j.Budget.String()
	}
	r.row = append(r.row[:0],
		j.ID.String(), string(j.Home), j.User, string(e.Site), strconv.FormatInt(j.Processors, 10),
		inSeconds(j.Submit), inSeconds(e.Result.Start), inSeconds(e.Result.End), inSeconds(j.Estimate),
		deadline, budget, e.Cost.String(), strconv.Itoa(int(e.Messages)), strconv.FormatUint(uint64(e.Epoch), 10), outcome, e.Text,
	)
	return r.out.Write(r.row)
}

// Close flushes and closes the file.
func (r *JobRows) Close() error {
	r.out.Flush()
	err := r.out.Error()
	if e := r.buffer.Flush(); err == nil {
		err = e
	}
	if r.file != nil {
		if e := r.file.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return fmt.Errorf("save jobs: %w", err)
	}
	return nil
}

// inSeconds prints an instant in seconds with the decimals it needs.
func inSeconds(t grid.Time) string { return grid.Credits(t).String() }
