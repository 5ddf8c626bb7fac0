package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/api"
	"gridnode/node/content"
	"gridnode/node/site"
)

// Bounds of one request of the local API.
const (
	jobsMax = 10_000  // jobs, arrays spread out
	bodyMax = 8 << 20 // bytes of the body
	idsMax  = 10_000  // jobs named
	rowsMax = 10_000  // quotes returned
)

// arrayVariable tells a job of an array its index.
const arrayVariable = "GRIDNODE_ARRAY_TASK_ID"

// Defaults is what a site's configuration says about jobs that say nothing.
type Defaults struct {
	Estimate grid.Time // bound on the run time
	Goal     grid.Goal // of a job without policy, deadline, budget and site
	Packs    bool      // the site heads clusters: of a job with a deadline, too
}

// submitter is where and by whom a job is submitted.
type submitter struct {
	home     grid.SiteID
	user     string
	writes   bool        // the daemon may write files for the user
	rating   grid.Rating // of the home site
	now      grid.Time
	defaults Defaults
	modules  func(digest string) (*grid.Module, error) // that are kept here
	content  *content.Store                            // of what jobs bring along; nil: there is none
}

// jobs checks a spec and returns the jobs it describes, one unless it is an array.
// site is spec.Site, looked up. The error says which field is wrong.
func (by *submitter) jobs(spec *api.JobSpec, site grid.SiteID) ([]*grid.Job, error) {
	job, err := by.job(spec, site)
	if err != nil {
		return nil, err
	}
	if job.Terms, err = by.terms(spec); err != nil {
		return nil, err
	}
	if spec.Array == nil {
		return []*grid.Job{job}, checkSubmitted(job)
	}
	if len(spec.Array) == 0 || spec.ArrayMost < 0 {
		return nil, errors.New("array: no indices, or less than none at a time")
	}
	array := arrayOf(job.ID, spec)
	jobs := make([]*grid.Job, len(spec.Array))
	seen := make(map[int64]bool, len(spec.Array))
	for i, index := range spec.Array {
		if index < 0 || seen[index] {
			return nil, fmt.Errorf("array: index %d is negative or stands there twice", index)
		}
		seen[index] = true
		task, command := *job, *job.Command
		digits := strconv.FormatInt(index, 10)
		place := array
		place.Index = index
		task.ID, task.Array, task.Terms = arrayJobID(job.ID, index), &place, elements(job.Terms, spec.Dependency, index)
		task.Name += "[" + digits + "]"
		command.Env = append(slices.Clone(command.Env), arrayVariable+"="+digits)
		task.Command = &command
		jobs[i] = &task
		if err := checkSubmitted(&task); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// checkSubmitted checks a job as one from a peer is checked, in the words of users.
func checkSubmitted(job *grid.Job) error {
	if err := wire.CheckJob(job); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), wire.ErrMalformed.Error()+": "))
	}
	return nil
}

// job returns what all jobs of spec have in common.
func (by *submitter) job(spec *api.JobSpec, site grid.SiteID) (*grid.Job, error) {
	job := &grid.Job{
		Home: by.home, User: by.user, Name: spec.Name, Submit: by.now,
		Tasks: max(spec.Tasks, 1), Estimate: grid.Time(spec.Time),
		Deadline: grid.Never, Budget: grid.NoBudget, Site: site,
		Command: &grid.Command{Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Output: spec.Output, Error: spec.Error, Append: spec.Append, Terminal: spec.Terminal, Each: !spec.Once && !spec.Terminal},
	}
	var err error
	if job.ID, err = specID(spec.ID); err != nil {
		return nil, err
	}
	job.Processors, job.Memory = job.Tasks*max(spec.CPUsPerTask, 1), spec.MemoryPerProcessor
	switch {
	case spec.Tasks < 0 || spec.CPUsPerTask < 0 || spec.Tasks > 1<<24 || spec.CPUsPerTask > 1<<24:
		return nil, fmt.Errorf("tasks and cpusPerTask: %d and %d, want 1 to %d", spec.Tasks, spec.CPUsPerTask, 1<<24)
	case spec.Time < 0 || grid.Time(spec.Time) > grid.SpanMax:
		return nil, fmt.Errorf("time: %v, want more than 0", grid.Time(spec.Time))
	case len(spec.Args) == 0 || spec.Args[0] == "":
		return nil, fmt.Errorf("args: no program to run")
	case spec.Terminal && (spec.Coallocation != nil || spec.Spread || spec.Module != "" || spec.Array != nil):
		return nil, errors.New("terminal: no job of an array, at several sites, or of WebAssembly has one")
	case spec.Once && (spec.Coallocation != nil || spec.Spread):
		return nil, errors.New("once: each task of a job that may run at several sites is a process of its own")
	case spec.Signal != nil && spec.Signal.First && job.Beside() > 1:
		return nil, errors.New("signal.first: the first of several tasks is no more than the others: leave it out, or say once")
	case spec.Terminal && spec.Files != nil && spec.Files.Stdin != "":
		return nil, errors.New("files.stdin: the standard input of a job with a terminal is that")
	case spec.Dir != "" && !strings.HasPrefix(spec.Dir, "/"):
		return nil, fmt.Errorf("dir: %q is not an absolute path", spec.Dir)
	}
	if spec.GPUs != "" {
		if job.GPUs, err = grid.ParseGPUs(spec.GPUs); err != nil {
			return nil, fmt.Errorf("gpus: %w", err)
		}
	}
	if spec.Module != "" {
		if job.Command.Module, err = by.modules(spec.Module); err != nil {
			return nil, fmt.Errorf("module: %w", err)
		}
	}
	for _, setting := range spec.Env {
		if strings.IndexByte(setting, '=') < 1 {
			return nil, fmt.Errorf("env: %q, want NAME=VALUE", setting)
		}
	}
	if job.Estimate == 0 {
		job.Estimate = by.defaults.Estimate
	}
	if job.Name == "" {
		program := spec.Args[0][strings.LastIndexByte(spec.Args[0], '/')+1:]
		job.Name = strings.ToValidUTF8(program[:min(len(program), 100)], "")
	}
	// How much of its time a job communicates is not known, so all of it is taken
	// for computing.
	job.Work = grid.WorkOf(job.Estimate, 0, by.rating)
	if job.Command.Files, err = by.filesOf(spec); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	if job.Inputs, err = jobInputs(spec.Inputs); err != nil {
		return nil, err
	}
	if err := by.bounds(job, spec); err != nil {
		return nil, err
	}
	return job, by.divide(job, spec)
}

// bounds sets deadline, budget and goal.
func (by *submitter) bounds(job *grid.Job, spec *api.JobSpec) error {
	switch {
	case spec.Deadline != 0 && spec.DeadlineIn != 0:
		return fmt.Errorf("deadline and deadlineIn exclude each other")
	case spec.DeadlineIn < 0 || grid.Time(spec.DeadlineIn) > grid.SpanMax/2:
		return fmt.Errorf("deadlineIn: %v, want more than 0", grid.Time(spec.DeadlineIn))
	case spec.DeadlineIn > 0:
		job.Deadline = by.now + grid.Time(spec.DeadlineIn)
	case spec.Deadline != 0 && grid.Time(spec.Deadline) <= by.now:
		return fmt.Errorf("deadline: it was %v ago", by.now-grid.Time(spec.Deadline))
	case spec.Deadline != 0:
		job.Deadline = grid.Time(spec.Deadline)
	}
	if spec.Budget != nil {
		job.Budget = grid.Credits(*spec.Budget)
		if job.Budget < 0 || job.Budget > grid.CreditsMax {
			return fmt.Errorf("budget: %v, want 0 to %v credits", job.Budget, grid.CreditsMax)
		}
	}
	if spec.TTL != nil {
		if *spec.TTL < 0 || *spec.TTL > grid.TTLMax {
			return fmt.Errorf("ttl: %d, want 0 to %d", *spec.TTL, grid.TTLMax)
		}
		if job.TTL = *spec.TTL; job.TTL == 0 {
			job.TTL = grid.NoTTL
		}
	}
	switch {
	case spec.Policy != "":
		var err error
		if job.Goal, err = grid.ParseGoal(spec.Policy); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	case by.defaults.Packs && job.Budget < 0 && job.Site == "":
		job.Goal = by.defaults.Goal
	case job.Deadline != grid.Never || job.Budget >= 0 || job.Site != "" && job.Site != by.home:
		job.Goal = grid.GoalCost
	case job.Site == "":
		job.Goal = by.defaults.Goal
	}
	return nil
}

// specID reads the ID of a spec, or draws one.
func specID(text string) (grid.JobID, error) {
	if text != "" {
		id, err := grid.ParseJobID(text)
		if err != nil || id.IsZero() {
			return grid.JobID{}, fmt.Errorf("id: %q: %w", text, grid.ErrJobID)
		}
		return id, nil
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return grid.JobIDFromBytes(b[:])
}

// arrayJobID returns the identity of one job of an array. It follows from that of
// the array, so that a repeated submission is recognised, and looks random, so
// that short prefixes tell the jobs apart.
func arrayJobID(array grid.JobID, index int64) grid.JobID {
	b := array.Bytes()
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b[:], uint64(index)))
	id, _ := grid.JobIDFromBytes(sum[:16])
	return id
}

// jobOf returns what users see of a job. names tells what people call sites.
func jobOf(v *site.View, names func(grid.SiteID) string) api.Job {
	j := v.Job
	out := api.Job{
		ID: j.ID.String(), Name: j.Name, User: j.User, State: v.State.String(),
		Foreign: v.Foreign, Home: string(j.Home), Site: string(v.Site), SiteName: names(v.Site),
		Processors: j.Processors, Tasks: j.Tasks, MemoryPerProcessor: j.Memory, Time: api.Seconds(j.Estimate),
		Policy: j.Goal.String(), Submitted: api.Instant(j.Submit), Start: api.Instant(v.Start), End: api.Instant(v.End),
		Price: api.Amount(v.Award.Price), Cost: api.Amount(v.Award.Cost),
		Reason: v.Reason, Epoch: v.Epoch, Messages: v.Messages,
	}
	out.Spread, out.Restarts, out.Number, out.WaitsFor = j.Spread, j.Restarts, j.Number, string(v.WaitsFor)
	out.Place, out.ExpectedStart, out.Expectation = v.Place, api.Instant(v.Expected), v.How.String()
	setTerms(&out, j)
	if v.TTL >= 0 {
		out.TTL = &v.TTL
	}
	out.Coallocation, out.Inputs = coallocationOf(j.Coallocate), inputsOfJob(j.Inputs)
	if components, sites := componentsOf(v.Gang, names); components != nil {
		out.Components, out.SiteName = components, sites
	}
	if j.Deadline != grid.Never {
		out.Deadline = api.Instant(j.Deadline)
		if v.State == site.Done || v.State == site.Failed {
			out.Late = api.Seconds(max(v.End-j.Deadline, 0))
		}
	}
	if j.Budget >= 0 {
		budget := api.Amount(j.Budget)
		out.Budget = &budget
	}
	if j.GPUs.Count > 0 {
		out.GPUs = j.GPUs.String()
	}
	if j.Command != nil {
		out.Args, out.Dir, out.Output, out.Error = j.Command.Args, j.Command.Dir, j.Command.Output, j.Command.Error
		if f := j.Command.Files; f != nil {
			out.Files = &api.JobFiles{Tree: f.Tree, Size: f.Size, Count: f.Count, Stdin: f.Stdin, Out: f.Out, Dir: f.Dir, Drop: f.Drop}
		}
		out.Terminal = j.Command.Terminal
		out.Once = j.Tasks > 1 && !j.Command.Each && j.Coallocate == nil && !j.Spread
		if j.IsModule() {
			out.Module = j.Command.Module.Digest
		}
	}
	if v.Award.Finish != 0 && v.Award.Finish != grid.Never {
		out.PromisedFinish = api.Instant(v.Award.Finish)
	}
	if v.State.Terminal() {
		out.Cost = api.Amount(v.Result.Cost)
		if v.State != site.Refused {
			code := v.Result.ExitCode
			out.ExitCode = &code
		}
	}
	return out
}

// againText says when a site is asked again that has refused, or did not answer.
func againText(v *market.Verdict, now grid.Time) string {
	text := "it may be asked again"
	if left := v.Until - now; left > 0 {
		text = fmt.Sprintf("it is asked again in %v", max(left/grid.Second, 1)*grid.Second)
	}
	if v.Outcome == market.OutcomeUnreachable {
		text += ", or when it publishes anew"
	}
	return text
}

// verdictsOf returns what users see of verdicts at an instant.
func verdictsOf(verdicts []market.Verdict, now grid.Time) []api.Verdict {
	out := make([]api.Verdict, len(verdicts))
	for i := range verdicts {
		v := &verdicts[i]
		out[i] = api.Verdict{
			Site: string(v.Site), SiteName: v.Name, Price: api.Amount(v.Price), Cost: api.Amount(v.Cost),
			Outcome: v.Outcome.String(), Detail: v.Detail,
		}
		if v.Finish != grid.Never && v.Finish > 0 {
			out[i].Finish = api.Instant(v.Finish)
		}
		if v.Until > 0 {
			out[i].Until = api.Instant(v.Until)
			out[i].Detail += "; " + againText(v, now)
		}
		if out[i].SiteName == "" {
			out[i].SiteName = string(v.Site)
		}
	}
	return out
}
