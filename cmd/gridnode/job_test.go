package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
)

func TestLate(t *testing.T) {
	deadline := api.InstantOf(time.Unix(1000, 0))
	now := time.Unix(1003, 0)
	job := func(state string, late grid.Time) api.Job {
		return api.Job{State: state, Deadline: deadline, Late: api.Seconds(late)}
	}
	for _, tt := range []struct {
		name string
		job  api.Job
		want string
	}{
		{"ended late", job("done", 20*grid.Second), "0:20"},
		{"ended in time", job("done", 0), ""},
		{"runs on after its deadline", job("running", 0), "3.000s"},
		{"no deadline", api.Job{State: "running"}, ""},
	} {
		if got := lateText(tt.job, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := lateText(job("awarded", 0), deadline.Time().Add(-time.Second)); got != "" {
		t.Errorf("before its deadline: %q", got)
	}
	late := job("done", 2*grid.Second)
	late.ID, late.Name, late.SiteName = "7q3k", "simulate", "physics"
	if got, want := ending(&late), "job 7q3k done at physics, 2.000s after its deadline"; got != want {
		t.Errorf("ending: %q, want %q", got, want)
	}
	if got, want := explanation(&late), "7q3k simulate: done at physics, 2.000s after its deadline"; got != want {
		t.Errorf("why: %q, want %q", got, want)
	}
	jobs := []api.Job{late, job("done", 0), job("failed", grid.Second)}
	if got, want := summaryOf(jobs), "3 jobs: 2 done, 1 failed; 2 after the deadline"; got != want {
		t.Errorf("summary: %q, want %q", got, want)
	}
	if got, want := summaryOf(jobs[1:2]), "1 jobs: 1 done"; got != want {
		t.Errorf("summary: %q, want %q", got, want)
	}
}

// A daemon that goes away before it answers is none that refuses: it may be asked again.
func TestNoAnswerIsNoDaemon(t *testing.T) {
	for want, err := range map[int]error{
		exitOK:       nil,
		exitNoDaemon: fmt.Errorf("%w: unexpected end", api.ErrBroken),
		exitRefused:  &api.Error{Code: api.CodeRefused},
		exitFailed:   io.ErrClosedPipe,
	} {
		if got := exitCode(apiError(err)); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

func summaryOf(jobs []api.Job) string {
	var t tally
	for i := range jobs {
		t.add(&jobs[i])
	}
	return t.summary()
}
