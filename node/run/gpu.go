package run

import (
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
)

// GPU is a GPU of this machine, as tasks are told of it.
type GPU struct {
	Name    string   // as the site's core names it
	Visible string   // as its driver knows it: a number from 0, or a name that is the same wherever it is seen
	Nodes   []string // device files that a task needs of it, those of its driver included
}

// gpuVariables are the variables by which drivers see no other GPUs than those named, and
// what they hold for none.
var gpuVariables = []struct{ name, none string }{{"CUDA_VISIBLE_DEVICES", ""}, {"ROCR_VISIBLE_DEVICES", ""}, {"NVIDIA_VISIBLE_DEVICES", "void"}}

// has yields the GPUs that a task has.
func has(task *grid.Task, gpus []GPU) func(func(*GPU) bool) {
	return func(yield func(*GPU) bool) {
		for i := range gpus {
			if slices.Contains(task.GPUs, gpus[i].Name) && !yield(&gpus[i]) {
				return
			}
		}
	}
}

// gpuNodes returns the device files that a task may use of this machine's GPUs: of all others
// it sees none.
func gpuNodes(task *grid.Task, gpus []GPU) (nodes []string) {
	for g := range has(task, gpus) {
		for _, node := range g.Nodes {
			if !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// gpuEnv tells a task which GPUs it has; nothing at a site that has none. Inside walls, where
// no others are, their driver numbers them anew.
func (r *Recipe) gpuEnv(task *grid.Task, walled bool) (env []string) {
	if len(r.gpus) == 0 {
		return nil
	}
	var visible []string
	for g := range has(task, r.gpus) {
		number := g.Visible
		if _, err := strconv.Atoi(number); err == nil && walled && len(g.Nodes) > 0 {
			number = strconv.Itoa(len(visible))
		}
		visible = append(visible, number)
	}
	list := strings.Join(visible, ",")
	for _, v := range gpuVariables {
		value := list
		if list == "" {
			value = v.none
		}
		env = append(env, v.name+"="+value)
	}
	return append(env, "GRIDNODE_GPUS="+strings.Join(task.GPUs, ","))
}
