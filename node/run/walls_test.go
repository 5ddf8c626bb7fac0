package run

import (
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/wasm"
)

// TestGuestWithoutWallsIsRefused: where there is nothing to make walls of, a job of another
// site does not run, and one of this site does.
func TestGuestWithoutWallsIsRefused(t *testing.T) {
	no := errors.New("not here")
	w := newWalls(&Setup{Files: Files{Site: "here"}, Means: &sandbox.Means{NoBubblewrap: no, NoLandlock: no}})
	task := &grid.Task{Job: &grid.Job{Home: "there", Tasks: 1, Resources: grid.Resources{Processors: 1}}}
	if plan, err := w.plan(task); err == nil || !strings.Contains(err.Error(), "no sandbox") {
		t.Errorf("a guest gets %+v, %v", plan, err)
	}
	task.Job.Home = "here"
	if plan, err := w.plan(task); plan != nil || err != nil {
		t.Errorf("an own job gets %+v, %v, want neither walls nor limits", plan, err)
	}
}

// Looking at the machine takes long: nobody waits for it who needs no walls.
func TestLimitsAloneNeedNoWalls(t *testing.T) {
	limits := sandbox.Limits{Memory: 1 << 20}
	w := newWalls(&Setup{Files: Files{Site: "here"}, Rules: func(*grid.Task) sandbox.Rule { return sandbox.Rule{Limits: limits} }})
	w.find = func() *sandbox.Means { t.Error("the machine is looked at"); return &sandbox.Means{} }
	plan, err := w.plan(&grid.Task{Job: &grid.Job{Home: "there", Tasks: 1}})
	if err != nil || plan.Walled() || plan.Limits != limits {
		t.Errorf("got %+v, %v, want the limits and no walls", plan, err)
	}
}

// TestModuleOfGuest: without walls it runs where the site says so; and it is always held to its
// memory, an own one, too.
func TestModuleOfGuest(t *testing.T) {
	store, err := wasm.OpenStore(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("not here")
	none, some := &sandbox.Means{NoBubblewrap: no, NoLandlock: no}, &sandbox.Means{Program: "/usr/bin/bwrap", ABI: 7}
	task := &grid.Task{Job: &grid.Job{Home: "there", Tasks: 1, Resources: grid.Resources{Processors: 1, Memory: 64 << 20}}}
	task.Job.Command = &grid.Command{Args: []string{"m"}, Module: &grid.Module{Digest: "d", Size: 8}}
	for _, tt := range []struct {
		name        string
		means       *sandbox.Means
		guests      wasm.Guests
		runs, walls bool
		home        grid.SiteID
	}{
		{"sandbox", some, wasm.GuestsSandbox, true, true, "there"},
		{"none here", none, wasm.GuestsSandbox, false, false, "there"},
		{"any", none, wasm.GuestsAny, true, false, "there"},
		{"any, inside if there are walls", some, wasm.GuestsAny, true, true, "there"},
		{"no guests", some, wasm.GuestsNone, false, false, "there"},
		{"own", none, wasm.GuestsNone, true, false, "here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWalls(&Setup{Files: Files{Site: "here"}, Means: tt.means, Modules: Modules{Store: store, Program: func() (string, error) { return "/bin/gridnode", nil }, Guests: tt.guests}})
			task.Job.Home = tt.home
			plan, err := w.plan(task)
			if (err == nil) != tt.runs {
				t.Fatalf("got %+v, %v", plan, err)
			}
			if tt.runs && (plan.Walled() != tt.walls || plan.Module != 64<<20 || plan.Limits.Memory < 64<<20+wasm.Overhead) {
				t.Errorf("got %+v", plan)
			}
		})
	}
}

// TestTaskOfGangReachesItsPorts: and what it reads, and nothing else.
func TestTaskOfGangReachesItsPorts(t *testing.T) {
	w := newWalls(&Setup{Files: Files{Site: "here"}, Means: &sandbox.Means{Program: "/usr/bin/bwrap", ABI: 7}})
	task := &grid.Task{
		Job:   &grid.Job{Home: "there", Tasks: 4, Resources: grid.Resources{Processors: 8}},
		Squad: &grid.Squad{Addresses: []string{"127.0.0.1:4711", "127.0.0.1:4712"}, Inputs: []string{"/data/set"}},
	}
	plan, err := w.plan(task)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Network || len(plan.Ports) != 2 || plan.Ports[1] != 4712 || len(plan.Read) != 1 || plan.Limits.Processors != 2000 {
		t.Errorf("got %+v", plan)
	}
	task.Squad.Addresses = []string{"nowhere"}
	if plan, err := w.plan(task); err == nil {
		t.Errorf("an address that is none gives %+v", plan)
	}
}

// TestGPUsInsideWalls: a task of another site sees the device files of the GPUs that it was
// granted and those of their driver, each once, and none of the others; its driver numbers
// what it sees from 0, unless it knows a GPU by name.
func TestGPUsInsideWalls(t *testing.T) {
	gpus := []GPU{
		{Name: "a0", Visible: "0", Nodes: []string{"/dev/a0", "/dev/actl"}}, {Name: "a1", Visible: "1", Nodes: []string{"/dev/a1", "/dev/actl"}},
		{Name: "a2", Visible: "GPU-2", Nodes: []string{"/dev/a2", "/dev/actl"}}, {Name: "b3", Visible: "3"},
	}
	setup := &Setup{Files: Files{Site: "here"}, Means: &sandbox.Means{Program: "/usr/bin/bwrap", ABI: 7}, GPUs: gpus}
	r := NewRecipe(setup)
	for _, tt := range []struct {
		home             grid.SiteID
		has              []string
		devices, visible string
	}{
		{"there", nil, "", ""},
		{"there", []string{"a1"}, "/dev/a1 /dev/actl", "0"},
		{"there", []string{"a1", "a2"}, "/dev/a1 /dev/actl /dev/a2", "0,GPU-2"},
		{"there", []string{"b3"}, "", "3"}, // whose files nobody knows
		{"here", []string{"a1", "a2"}, "", "1,GPU-2"},
	} {
		task := &grid.Task{Job: &grid.Job{Home: tt.home, Tasks: 1, Resources: grid.Resources{Processors: 1}}, GPUs: tt.has}
		plan, err := r.walls.plan(task)
		if err != nil {
			t.Fatal(err)
		}
		var devices string
		if plan != nil {
			devices = strings.Join(plan.Devices, " ")
		}
		env := r.gpuEnv(task, plan.Walled())
		if devices != tt.devices || env[0] != "CUDA_VISIBLE_DEVICES="+tt.visible {
			t.Errorf("%s with %q: files %q, %q", tt.home, tt.has, devices, env)
		}
	}
}
