package run

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/shim"
	"gridnode/node/wasm"
)

// Modules is what an engine needs to run modules.
type Modules struct {
	Store   *wasm.Store            // where they are; nil: none are run
	Program func() (string, error) // path of this one, which is behind wasm.Verb, where tasks run
	Guests  wasm.Guests            // of other sites
	Coarse  bool                   // clocks of those of other sites
}

// ModulesDir is where the modules of a home are.
const ModulesDir = "modules"

// errNoModules is why a module is not run.
var errNoModules = errors.New("this site runs no modules of other sites (wasm.guests)")

// rule returns what a module may do, of what the job may, and how much linear memory it has, 0
// for as much as it can name. It reads itself and this program, and what runs it has memory
// of its own.
func (m *Modules) rule(w *walls, task *grid.Task, rule *sandbox.Rule, self grid.SiteID) (memory int64, err error) {
	foreign := task.Job.Home != self
	switch {
	case m.Store == nil:
		return 0, errors.New("this site has no place for modules")
	case foreign && m.Guests == wasm.GuestsNone:
		return 0, errNoModules
	}
	if rule.Walls && m.Guests == wasm.GuestsAny {
		if kind, err := w.find().Walls(w.want); err != nil || kind == sandbox.None {
			rule.Walls = false
		}
	}
	program, err := m.Program()
	if err != nil {
		return 0, fmt.Errorf("what runs modules: %w", err)
	}
	rule.Read = append(rule.Read[:len(rule.Read):len(rule.Read)], program, m.Store.Dir(task.Job.Command.Module.Digest))
	if memory = rule.Limits.Memory; memory == 0 {
		need := Needs(task)
		memory = need.Memory * need.Processors
	}
	if memory > 0 {
		rule.Limits.Memory = memory + wasm.Overhead
	}
	return memory, nil
}

// spec completes the specification of a task that runs a module.
func (m *Modules) spec(task *grid.Task, spec *shim.Spec, folder string, foreign bool) error {
	command, plan := task.Job.Command, spec.Plan
	if _, here := m.Store.Has(command.Module.Digest); !here {
		return fmt.Errorf("module %s is not here any more", command.Module.Digest)
	}
	config := wasm.Config{
		Folder: folder, Memory: plan.Module, Disk: plan.Limits.Disk, Files: plan.Limits.Files, Coarse: foreign && m.Coarse,
		Log: spec.Log,
	}
	if config.Memory == wasm.MemoryMax {
		config.Memory = 0
	}
	m.Store.Files(command.Module.Digest, &config)
	program, err := m.Program()
	if err != nil {
		return fmt.Errorf("what runs modules: %w", err)
	}
	spec.Args, spec.Env = config.Command(program, spec.Args, spec.Env), nil
	return nil
}
