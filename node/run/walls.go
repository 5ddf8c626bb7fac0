package run

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"sync"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/wasm"
)

// walls finds out, when it is first asked, what this machine has to hold jobs with.
type walls struct {
	want  sandbox.Kind
	find  func() *sandbox.Means
	rules Rules

	modules Modules
	self    grid.SiteID
	gpus    []GPU
}

// Rules says what a job may do here: whose it is and who asked for it decides. The job's own
// ports and inputs are added.
type Rules func(task *grid.Task) sandbox.Rule

func newWalls(cfg *Setup) walls {
	self := cfg.Files.Site
	w := walls{want: cfg.Walls, rules: cfg.Rules, find: sync.OnceValue(sandbox.Find), modules: cfg.Modules, self: self, gpus: cfg.GPUs}
	if w.want == "" {
		w.want = sandbox.Auto
	}
	if cfg.Means != nil {
		w.find = func() *sandbox.Means { return cfg.Means }
	}
	if w.rules == nil {
		w.rules = func(task *grid.Task) sandbox.Rule {
			return sandbox.Default.Rule(task.Job.Home != self, Needs(task), 0)
		}
	}
	return w
}

// Needs returns what one process of a task was promised: a task of a squad has its own share
// of the job.
func Needs(task *grid.Task) grid.Resources {
	need := task.Job.Resources
	if task.Squad != nil {
		need.Processors /= max(task.Job.Tasks, 1)
	}
	return need
}

// plan returns how to start a task, nil for one without walls and limits.
func (w *walls) plan(task *grid.Task) (*sandbox.Plan, error) {
	rule := w.rules(task)
	tree, _ := task.Job.Tree()
	rule.Kept = tree != "" || task.Job.Apart() // where what it brings lies, be it but its standard input
	if task.Job.IsModule() {
		return w.modulePlan(task, &rule)
	}
	if !rule.Walls && rule.Limits == (sandbox.Limits{}) {
		return nil, nil
	}
	if rule.Walls && task.Squad != nil {
		ports, err := portsOf(task.Squad.Addresses)
		if err != nil {
			return nil, err
		}
		rule.Ports = ports
		rule.Read = append(rule.Read[:len(rule.Read):len(rule.Read)], task.Squad.Inputs...)
	}
	if rule.Walls {
		rule.Devices = gpuNodes(task, w.gpus)
	}
	return w.hold(&rule)
}

// hold returns how to start what a rule is for. This machine is only looked at for walls: that
// takes long, and the loop waits.
func (w *walls) hold(rule *sandbox.Rule) (*sandbox.Plan, error) {
	var means *sandbox.Means
	if rule.Walls {
		means = w.find()
	}
	return means.Plan(w.want, rule)
}

// modulePlan returns how to start a module: always in limits, if it has some.
func (w *walls) modulePlan(task *grid.Task, rule *sandbox.Rule) (*sandbox.Plan, error) {
	memory, err := w.modules.rule(w, task, rule, w.self)
	if err != nil {
		return nil, err
	}
	plan, err := w.hold(rule)
	if err == nil {
		plan.Module = cmp.Or(memory, wasm.MemoryMax)
	}
	return plan, err
}

// portsOf returns the ports by which the tasks of a gang reach each other.
func portsOf(addresses []string) (ports []uint16, err error) {
	for _, a := range addresses {
		_, text, err := net.SplitHostPort(a)
		if err != nil {
			return nil, fmt.Errorf("address %q of a task: %w", a, err)
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("address %q of a task: %w", a, err)
		}
		ports = append(ports, uint16(port))
	}
	return ports, nil
}

// guestEnv is the environment that a task inside walls has of the site: nothing of the
// daemon's.
func guestEnv(folder string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=guest", "LOGNAME=guest", "HOME=" + folder, "TMPDIR=" + folder}
}
