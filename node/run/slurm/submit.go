package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

// jobPrefix begins the names of this engine's jobs in Slurm.
const jobPrefix = "gridnode-"

// Pauses between attempts to reach a controller that does not answer.
const (
	troublePause    = time.Second
	troublePauseMax = 15 * time.Second
)

// submitters is how many jobs are submitted at a time: more do not make it faster.
const submitters = 4

// arguments returns the options of sbatch for a job. None comes from whoever wrote the job:
// numbers are checked, the name is made of IDs, and what runs is in a file.
func (c *Config) arguments(name string, n *note, dir string) []string {
	args := []string{
		"--parsable", "--job-name=" + jobPrefix + name, "--no-requeue", "--export=ALL", "--input=/dev/null", "--open-mode=truncate",
		"--output=" + strings.ReplaceAll(orders{dir}.path(name, ".log"), "%", "%%"), "--chdir=" + dir,
		"--ntasks=" + strconv.FormatInt(n.Tasks, 10), "--cpus-per-task=" + strconv.FormatInt(n.Each, 10),
	}
	if n.Together {
		args = append(args, "--nodes=1")
	}
	if n.Limit > 0 {
		args = append(args, "--time="+minutes(n.Limit))
	}
	if n.Pilot != nil && (n.Pilot.Lease != 0 || n.Pilot.Gang != grid.TaskID{}) { // one that begins too late is of no use, nor is one that a dead daemon has asked for
		args = append(args, "--deadline=now+"+minutes(n.Limit+beginMax)+"minutes")
	}
	if n.Memory > 0 {
		args = append(args, "--mem-per-cpu="+strconv.FormatInt(n.Memory, 10)+"M")
	}
	if n.Nice > 0 { // what the configuration says stands behind it, and counts
		args = append(args, "--nice="+strconv.FormatInt(int64(n.Nice), 10))
	}
	return append(args, c.place()...)
}

// minutes rounds a limit up to what Slurm counts by.
func minutes(limit grid.Time) string {
	return strconv.FormatInt(int64((limit+grid.Minute-1)/grid.Minute), 10)
}

// script is what sbatch is given: it does nothing but carry an order out.
func (c *Config) script(n *note, order string) string {
	command := c.Shim
	if n.Pilot != nil {
		command = c.Pilot
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\nexec")
	for _, w := range command {
		b.WriteString(" " + quote(strings.ReplaceAll(w, OrderWord, order)))
	}
	return b.String() + "\n"
}

// quote makes one word of a shell of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// submit gives a job to Slurm, however long that does not answer. It returns when Slurm has
// it, has refused it, or the engine is closed.
func (e *Engine) submit(j *job) {
	defer e.wg.Done()
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-e.ctx.Done():
		return
	}
	if j.fresh {
		if err := e.prepare(j); err != nil {
			e.refused(j, err)
			return
		}
		if !e.ready(j) {
			_ = e.orders.forget(j.name) // it was cancelled meanwhile, and what is left harms nobody
			return
		}
	}
	doubt := !j.fresh // an earlier daemon may have submitted it
	pause := troublePause
	for e.ctx.Err() == nil && !e.unwanted(j) {
		id, err := "", error(nil)
		if doubt {
			id, err = e.find(j.name)
		}
		if err == nil && id == "" {
			id, err = e.sbatch(j)
		}
		switch {
		case err == nil:
			e.submitted(j, id)
			return
		case !errors.Is(err, errTrouble):
			e.refused(j, err)
			return
		}
		e.inTrouble(err)
		doubt = true
		select {
		case <-time.After(pause):
			pause = min(2*pause, troublePauseMax)
		case <-e.ctx.Done():
		}
	}
}

// prepare writes what the job needs into the work directory.
func (e *Engine) prepare(j *job) error {
	if j.note.Pilot != nil {
		return e.preparePilot(j)
	}
	spec, err := e.Spec(&j.task, j.process.Number, e.files.Process(j.note.Home, j.process))
	if err != nil {
		return err
	}
	spec.ID = j.name
	w := &written{Note: j.note}
	w.Spec, w.Until = spec, j.note.Until
	w.Go, w.Gone, w.End = e.orders.path(j.name, ".go"), e.orders.path(j.name, ".gone.{RUN}"), e.orders.path(j.name, ".end")
	return e.orders.write(j.name, w)
}

// sbatch submits a job and returns its number.
func (e *Engine) sbatch(j *job) (id string, err error) {
	e.passNumbers()
	stdout, _, err := e.commands.run(e.ctx, e.cfg.script(&j.note, e.orders.path(j.name, ".order")), "sbatch", e.cfg.of(j.note.Partner).arguments(j.name, &j.note, e.orders.dir)...)
	if err != nil {
		return "", e.cfg.of(j.note.Partner).explain(err)
	}
	return parseSubmitted(stdout)
}

// passMax is how many numbers are passed over: more than are given in the seconds between two
// times that a controller saves what it knows.
const passMax = 1000

// passNumbers sees to it that a controller which died before it had saved what it knew gives
// no number a second time: a node that has seen one refuses it, and Slurm takes the node out
// of service for that. Each question when a job would start uses one up.
func (e *Engine) passNumbers() {
	e.passing.Lock()
	defer e.passing.Unlock()
	begun := time.Now()
	for range passMax {
		e.mu.Lock()
		highest, done := e.highest, e.numbered || e.highest == 0
		e.mu.Unlock()
		if done {
			return
		}
		stdout, stderr, err := e.commands.run(e.ctx, "#!/bin/sh\nexit 0\n", "sbatch", append([]string{"--test-only", "--ntasks=1", "--time=1", "--job-name=" + jobPrefix + "test"}, e.cfg.place()...)...)
		if r, refused := errors.AsType[*refusal](err); refused && strings.Contains(r.text, unregistered) && time.Since(begun) < registerMax {
			select {
			case <-time.After(registerPause):
				continue
			case <-e.ctx.Done():
				return
			}
		}
		if err != nil {
			return // the submission will be told the same
		}
		n := parseTested(stderr + stdout)
		e.mu.Lock()
		e.numbered = n == 0 || n >= highest || highest-n > passMax // of far lower ones it has begun anew
		e.mu.Unlock()
	}
}

// find looks for a job by its name, also one that has ended. It returns "" if Slurm knows
// of none.
func (e *Engine) find(name string) (id string, err error) {
	if began := e.orders.began(name); began != "" {
		return began, nil
	}
	stdout, _, err := e.commands.run(e.ctx, "", "squeue", "-h", "-a", "-t", "all", "-n", jobPrefix+name, "-o", queueFormat)
	if err != nil {
		return "", err
	}
	jobs, err := parseQueue(stdout)
	if err != nil {
		return "", err
	}
	for _, l := range jobs {
		if l.name == jobPrefix+name && isNumber(l.id) && !l.state.over() {
			return l.id, nil
		}
	}
	return "", nil
}

// explain says which key of the configuration is behind what Slurm refused. The texts are
// those of its error numbers.
func (c *Config) explain(err error) error {
	r, refused := errors.AsType[*refusal](err)
	if !refused {
		return err
	}
	for _, known := range []struct{ part, key, advice string }{
		{"partition name", "slurm.partition", "'sinfo' lists the partitions"},
		{"nvalid account", "slurm.account", "'sacctmgr show associations user=$USER' lists those that this user may use"},
		{"nvalid qos", "slurm.qos", "'sacctmgr show associations user=$USER format=account,qos' lists what this user may use"},
		{"time limit", "slurm.partition", "its jobs may not be as long; 'sinfo -o %P,%l' lists the limits, and gridnode submit --time says a shorter one"},
		{"violates accounting", "slurm.account", "a limit of this account or QOS is reached"},
		{"node configuration is not available", "slurm.partition", "no node has what the job asks for; with --once its processors may be those of several nodes"},
		{"More processors requested", "slurm.partition", "it has fewer processors"},
		{"nvalid feature", "slurm.options", "no node has that feature"},
		{"nrecognized option", "slurm.options", "this Slurm's sbatch does not know it"},
		{"nvalid wckey", "slurm.options", "set --wckey"},
		{"emory specification", "slurm.partition", "no node has as much memory a processor"},
	} {
		if strings.Contains(r.text, known.part) {
			return fmt.Errorf("refused by Slurm: %s (%s: %s)", r.text, c.rename(known.key), known.advice)
		}
	}
	return fmt.Errorf("refused by Slurm: %s", r.text)
}

// foretell asks Slurm when a job of so many processors could start.
func (e *Engine) foretell(ctx context.Context, processors int64, span, now grid.Time) (grid.Time, error) {
	args := append([]string{"--test-only", "--ntasks=" + strconv.FormatInt(processors, 10), "--cpus-per-task=1", "--time=" + minutes(span), "--job-name=" + jobPrefix + "test"}, e.cfg.place()...)
	stdout, stderr, err := e.commands.run(ctx, "#!/bin/sh\nexit 0\n", "sbatch", args...)
	if err != nil {
		return grid.Never, err
	}
	start, ok := parseForetold(stderr+stdout, now)
	if !ok {
		return grid.Never, nil
	}
	return start, nil
}

// logged returns what a batch script said, shortened, empty if nothing.
func (e *Engine) logged(name string) string {
	text, err := os.ReadFile(e.orders.path(name, ".log"))
	if err != nil || len(text) == 0 {
		return ""
	}
	return lastLine(string(text[max(0, len(text)-4096):]))
}
