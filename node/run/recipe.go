package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gridnode/grid"
	"gridnode/node/sandbox"
	"gridnode/node/shim"
)

// Recipe says how to start a task as a process, whoever does it.
type Recipe struct {
	files Files
	name  string   // of the site, for people
	env   []string // of every task
	walls walls
	gpus  []GPU

	accounts Accounts

	empties *empties // nil: every scratch directory is a new one
}

// NewRecipe returns that of an engine.
func NewRecipe(s *Setup) Recipe {
	return Recipe{files: s.Files, name: s.Name, env: baseEnv(), walls: newWalls(s), gpus: s.GPUs, accounts: s.Accounts}
}

// Spec makes the scratch directory of a task whose files begin with base, and says what
// to run. The number is its own in its squad.
func (r *Recipe) Spec(task *grid.Task, number int, base string) (shim.Spec, error) {
	command := task.Job.Command
	if command == nil {
		return shim.Spec{}, errors.New("the job has no command")
	}
	account, err := r.accounts.Of(r.files.Site, task.Job)
	if err != nil {
		return shim.Spec{}, err
	}
	x := Process{task.ID, number}
	scratch := r.scratch(task.Job.Home, x, base, account)
	if err := r.makeScratch(task, number, scratch, base, account); err != nil {
		return shim.Spec{}, err
	}
	plan, err := r.walls.plan(task)
	if err != nil {
		return shim.Spec{}, err
	}
	if account != nil {
		if plan == nil {
			plan = &sandbox.Plan{Kind: sandbox.None}
		}
		plan.Account = &account.Account
	}
	foreign := task.Job.Home != r.files.Site
	work, folder := scratch, scratch
	if plan.HasFolder() {
		folder = sandbox.Folder
	}
	if !foreign && command.Dir != "" && command.Module == nil && !command.Files.Apart() {
		work = command.Dir
		if info, err := os.Stat(work); account == nil && (err != nil || !info.IsDir()) { // else the shim looks, as the account
			return shim.Spec{}, fmt.Errorf("working directory %s: there is no such directory", work)
		}
	}
	spec := shim.Spec{
		ID: x.Name(), Args: command.Args, Env: r.taskEnv(task, number, folder, plan.Walled(), account), Dir: work,
		Stdout: base + Stdout.Suffix(), Stderr: base + Stderr.Suffix(), Limit: task.Limit, Lease: task.Lease, Plan: plan,
		Log: r.files.Log,
	}
	if n := task.Job.Beside(); n > 1 && task.Squad == nil && command.Module == nil {
		spec.Args = tasksCommand(n, spec.Args)
	}
	if command.Files != nil && command.Files.Stdin != "" && command.Module == nil {
		spec.Args = append([]string{"/bin/sh", "-c", stdinScript, folder + "/" + command.Files.Stdin}, spec.Args...)
	}
	if command.Output != "" && command.Error == "" && task.Squad == nil {
		spec.Stderr = spec.Stdout // one file at home, in the order of writing
	}
	spec.Terminal = command.Terminal && task.Squad == nil
	if task.Job.Terms != nil {
		spec.Warn = task.Job.Terms.Signal
	}
	if command.Module != nil {
		spec.Env = r.moduleEnv(task, number)
		err = r.walls.modules.spec(task, &spec, folder, foreign)
	}
	return spec, err
}

// stdinScript runs what follows with a file as its standard input: shims of all versions can
// be told to.
const stdinScript = `exec "$@" <"$0"`

// scratch returns the directory of a process whose files begin with base.
func (r *Recipe) scratch(home grid.SiteID, x Process, base string, account *Account) string {
	if account != nil {
		return r.files.outside(home, x) + ScratchSuffix
	}
	return base + ScratchSuffix
}

// scratchOf returns that of a process whose files are where those of its job's home are.
func (r *Recipe) scratchOf(task *grid.Task, x Process) string {
	account, _ := r.accounts.Of(r.files.Site, task.Job) // it was found a moment ago
	return r.scratch(task.Job.Home, x, r.files.Process(task.Job.Home, x), account)
}

// makeScratch makes it.
func (r *Recipe) makeScratch(task *grid.Task, number int, scratch, base string, account *Account) error {
	if account != nil {
		dir := filepath.Dir(base) // for the output, which lies in the home
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chtimes(dir, time.Time{}, time.Now()); err != nil { // or Prune takes it away, until the output is there
			return err
		}
	}
	if tree, _ := task.Job.Tree(); tree != "" {
		return r.adopt(task, number, scratch)
	}
	if account != nil {
		return r.files.makeScratch(task.Job.Home, scratch, account)
	}
	if r.empties != nil && filepath.Dir(scratch) == r.empties.dir && r.empties.take(scratch) {
		return nil
	}
	err := os.Mkdir(scratch, 0o700)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = os.MkdirAll(scratch, 0o700)
	}
	return err
}
