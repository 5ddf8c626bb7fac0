package wire

import (
	"strings"
	"testing"

	"gridnode/grid"
)

func TestModuleOfJob(t *testing.T) {
	valid := func() *grid.Job {
		return &grid.Job{
			ID: grid.JobID{Lo: 1}, Home: "h", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: 1, Deadline: grid.Never, Budget: grid.NoBudget,
			Command: &grid.Command{Args: []string{"m"}, Module: &grid.Module{Digest: strings.Repeat("0a", 32), Size: 8}},
		}
	}
	job, err := JobFromProto(JobProto(valid()))
	if err != nil || *job.Command.Module != *valid().Command.Module {
		t.Fatalf("came back as %+v, %v", job, err)
	}
	for name, change := range map[string]func(*grid.Job){
		"digest too short": func(j *grid.Job) { j.Command.Module.Digest = "0a" },
		"upper case":       func(j *grid.Job) { j.Command.Module.Digest = strings.Repeat("0A", 32) },
		"a path":           func(j *grid.Job) { j.Command.Module.Digest = strings.Repeat("../", 21) + "x" },
		"empty":            func(j *grid.Job) { j.Command.Module.Size = 0 },
		"too long":         func(j *grid.Job) { j.Command.Module.Size = grid.ModuleMax + 1 },
		"two tasks":        func(j *grid.Job) { j.Tasks, j.Processors = 2, 2 },
		"spread":           func(j *grid.Job) { j.Spread = true },
		"co-allocated":     func(j *grid.Job) { j.Coallocate = &grid.Coallocation{Count: "2"} },
	} {
		j := valid()
		change(j)
		if err := CheckJob(j); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
