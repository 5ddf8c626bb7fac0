package run

import (
	"slices"
	"strings"

	"gridnode/grid"
)

// GPU is a GPU of this machine, as tasks are told of it.
type GPU struct {
	Name    string // as the site's core names it
	Visible string // as its driver numbers it, from 0
}

// gpuVariables are the variables by which drivers see no other GPUs than those named, and
// what they hold for none.
var gpuVariables = []struct{ name, none string }{{"CUDA_VISIBLE_DEVICES", ""}, {"ROCR_VISIBLE_DEVICES", ""}, {"NVIDIA_VISIBLE_DEVICES", "void"}}

// gpuEnv tells a task which GPUs it has; nothing at a site that has none.
func (r *Recipe) gpuEnv(task *grid.Task) (env []string) {
	if len(r.gpus) == 0 {
		return nil
	}
	var visible []string
	for _, g := range r.gpus {
		if slices.Contains(task.GPUs, g.Name) {
			visible = append(visible, g.Visible)
		}
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
