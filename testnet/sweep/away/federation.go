package away

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"gridnode/node/api"
)

// Federation has parts done as jobs of the site whose daemon is asked: one array, whose jobs
// bring the program along and leave a file each.
type Federation struct {
	Client *api.Client
	Time   api.Seconds // bound on the run time of a part; 0: what the site says
	Policy string      // as of submit; empty: what the site says

	// Tree hands the files below a directory over and returns the name of their tree.
	Tree func(ctx context.Context, dir string) (string, error)
}

// indexVariable has the index of a job in its array.
const indexVariable = "GRIDNODE_ARRAY_TASK_ID"

// atOnce is how many parts one submission has.
const atOnce = 1000

func (f *Federation) reach(ctx context.Context) error {
	_, err := f.Client.Node(ctx)
	return err
}

// jobName is what the jobs of a sweep are called: by it they are found again.
func (w *work) jobName() string { return "sweep-" + w.id }

func (f *Federation) hand(ctx context.Context, w *work, parts []int) error {
	tree, err := f.Tree(ctx, w.path("in"))
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		n := min(len(parts), atOnce)
		spec := api.JobSpec{
			Name: w.jobName(), Args: w.command(indexVariable, ""), Dir: w.dir, Time: f.Time, Policy: f.Policy,
			Files: &api.JobFiles{Tree: tree, Out: []string{"*.part"}, Dir: w.path("parts")},
		}
		for _, run := range parts[:n] {
			spec.Array = append(spec.Array, int64(run))
		}
		if _, err := f.Client.Submit(ctx, []api.JobSpec{spec}); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

func (f *Federation) look(ctx context.Context, w *work) (map[int]news, error) {
	jobs := make(map[int]api.Job)
	_, err := api.ListJobs(ctx, f.Client, url.Values{"name": {w.jobName()}, "all": {"true"}}, func(j *api.Job) error {
		if j.ArrayIndex == nil || j.Foreign || j.Brief {
			return nil
		}
		run := int(*j.ArrayIndex)
		// Of several the one counts that goes on, or the last.
		if other, there := jobs[run]; !there || other.Over() && (!j.Over() || j.Number > other.Number) {
			jobs[run] = *j
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[int]news)
	for run, j := range jobs {
		n := news{over: j.Over()}
		if _, path := w.part(run); n.over && !exists(path) {
			if n, err = f.ended(ctx, &j); err != nil {
				return nil, err
			}
		}
		seen[run] = n
	}
	return seen, nil
}

// ended returns how a job has ended whose file is not here.
func (f *Federation) ended(ctx context.Context, j *api.Job) (news, error) {
	n := news{over: true, see: "gridnode logs --stderr " + j.ID, why: "its job is " + j.State}
	if j.Reason != "" {
		n.why += ": " + j.Reason
	}
	n.killed = j.State == "failed" && (j.ExitCode == nil || *j.ExitCode >= killedCode)
	if j.ExitCode != nil {
		n.why += fmt.Sprintf(", exit code %d", *j.ExitCode)
	}
	if j.Start == j.End {
		n.see = "gridnode why " + j.ID
		return n, nil
	}
	files, err := f.Client.JobFiles(ctx, j.ID, false)
	if err != nil {
		return n, err
	}
	switch files.State {
	case "running", "coming":
		return news{}, nil
	case "failed":
		n.why += "; its file: " + files.Why
	}
	return n, nil
}

// killedCode is the least exit code of what a signal has ended, as shells tell it.
const killedCode = 128

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (f *Federation) afterwards(w *work) string {
	return fmt.Sprintf("jobs that were handed over go on; 'gridnode cancel --name %s' ends them", w.jobName())
}

// quoted returns words as sh reads them.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(list, " ")
}
