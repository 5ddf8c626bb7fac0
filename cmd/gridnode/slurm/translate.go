package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gridnode/grid"
)

// Request is what options of sbatch mean as flags of submit.
type Request struct {
	Flags   []Flag
	Notes   []string // what was left out
	Refused []string // what cannot be done
	Wrap    string
	Test    bool // --test-only

	place          string // of the option that is being taken
	nodes, perNode int64  // 0: not said
	tasks          bool
	gpus           []gpus
}

// Flag is one flag of submit. Place is where the option stands that it is of, as where says.
type Flag struct{ Name, Value, Place string }

// Translate says what options mean; those that stand later count. where names the place of
// an option in messages, "" on a command line.
func Translate(lines []Line, where func(Line) string) *Request {
	r := new(Request)
	last := make(map[string]int)
	for i := range lines {
		last[lines[i].Name] = i
	}
	for i, line := range lines {
		place := where(line)
		switch {
		case line.Err != nil:
			r.Refused = append(r.Refused, place+line.Err.Error())
		case last[line.Name] == i:
			r.place = place
			r.take(line.Given, place)
		}
	}
	r.place = ""
	r.shape()
	return r
}

func (r *Request) set(name, value string) { r.Flags = append(r.Flags, Flag{name, value, r.place}) }

func (r *Request) refuse(g Given, place, why string) {
	r.Refused = append(r.Refused, fmt.Sprintf("%s%s: %s", place, g.Text, why))
}

func (r *Request) note(g Given, place, why string) {
	r.Notes = append(r.Notes, fmt.Sprintf("%s%s is left out: %s", place, g.Text, why))
}

// same are the options that are flags of submit by the same name.
var same = map[string]string{
	"array": "array", "begin": "begin", "chdir": "chdir", "clusters": "site", "cpus-per-task": "cpus-per-task", "deadline": "deadline",
	"dependency": "dependency", "export": "export", "job-name": "job-name",
	"kill-on-invalid-dep": "kill-on-invalid-dep", "mem-per-cpu": "mem-per-cpu", "open-mode": "open-mode", "signal": "signal",
	"output": "stdout", "error": "stderr", "partition": "partition",
}

func (r *Request) take(g Given, place string) {
	option := of(g.Name)
	switch {
	case option.fate == hint:
		r.note(g, place, option.why)
		return
	case option.fate == refused:
		r.refuse(g, place, option.why)
		return
	case same[g.Name] != "":
		r.set(same[g.Name], g.Value)
		return
	}
	switch g.Name {
	case "time":
		if v := strings.ToLower(g.Value); v == "infinite" || v == "unlimited" || v == "0" {
			r.note(g, place, "every job has a limit: the site's job.time")
			return
		}
		r.set("time", g.Value)
	case "mem":
		if g.Value == "0" {
			r.note(g, place, "a job has the memory that its processors have")
			return
		}
		r.set("mem", g.Value)
	case "nice":
		if v := cmp.Or(g.Value, "100"); strings.HasPrefix(v, "-") { // Slurm leaves it out, too
			r.note(g, place, option.why)
		} else {
			r.set("nice", v)
		}
	case "ntasks":
		r.tasks = true
		r.set("ntasks", g.Value)
	case "nodes":
		if r.nodes = r.count(g, place, strings.SplitN(g.Value, "-", 2)[0]); r.nodes > 1 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s%s: the tasks run at one site, which counts as one node", place, g.Text))
		}
	case "ntasks-per-node":
		r.perNode = r.count(g, place, g.Value)
	case "gres":
		if kind, rest, _ := strings.Cut(g.Value, ":"); kind == "gpu" || kind == "gres/gpu" {
			r.takeGPUs("gpus-per-node", cmp.Or(rest, "1"), g, place)
		} else if g.Value != "none" && g.Value != "0" {
			r.refuse(g, place, option.why)
		}
	case "gpus", "gpus-per-node", "gpus-per-task":
		r.takeGPUs(g.Name, g.Value, g, place)
	case "input":
		if g.Value != "/dev/null" && g.Value != "none" {
			r.refuse(g, place, "standard input of a job is empty: read the file in the script")
		}
	case "hold", "no-requeue", "wait", "quiet", "parsable":
		r.set(g.Name, "true")
	case "wrap":
		r.Wrap = g.Value
	case "test-only":
		r.Test = true
	}
}

// takeGPUs reads how many GPUs of one type, if any, there are for each of what per says. A type
// alone is one of them, but for --gpus, of which Slurm wants a number.
func (r *Request) takeGPUs(per, value string, g Given, place string) {
	_, count, typed := strings.Cut(value, ":")
	if !typed {
		count = value
	}
	if n, err := strconv.ParseInt(count, 10, 32); err == nil && n == 0 {
		return // none
	}
	need, err := grid.ParseGPUs(value)
	if err != nil || per == "gpus" && !typed && need.Type != "" {
		r.refuse(g, place, fmt.Sprintf("%q: want GPUs of one type: [TYPE:]NUMBER", g.Value))
		return
	}
	r.gpus = append(r.gpus, gpus{per, need})
}

// gpus are so many for each task, each node, or the job.
type gpus struct {
	per string
	grid.GPUs
}

// shapeGPUs turns what was said into GPUs for the whole job: the most of it, as one line of a
// script may say again what another has said.
func (r *Request) shapeGPUs() {
	var most gpus
	for _, g := range r.gpus {
		switch g.per {
		case "gpus-per-node":
			g.Count *= max(r.nodes, 1)
		case "gpus-per-task":
			g.Count *= r.ntasks()
		}
		if g.Count > most.Count {
			most = g
		}
	}
	if most.Count > 0 {
		r.set("gpus", most.String())
	}
}

// ntasks returns how many tasks the flags ask for.
func (r *Request) ntasks() int64 {
	for _, f := range r.Flags {
		if f.Name == "ntasks" {
			n, _ := strconv.ParseInt(f.Value, 10, 32) // if it is no number, submit says so
			return max(n, 1)
		}
	}
	return 1
}

// count reads a number of at least 1.
func (r *Request) count(g Given, place, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		r.refuse(g, place, fmt.Sprintf("%q: want a number of at least 1", g.Value))
		return 0
	}
	return n
}

// shape turns nodes and tasks on each into tasks.
func (r *Request) shape() {
	if !r.tasks && (r.perNode > 0 || r.nodes > 0) {
		r.set("ntasks", strconv.FormatInt(max(r.perNode, 1)*max(r.nodes, 1), 10))
	}
	r.shapeGPUs()
	if r.nodes > 1 {
		for i := range r.Flags {
			if r.Flags[i].Name == "mem" { // of each node
				r.Flags[i].Value = times(r.Flags[i].Value, r.nodes)
			}
		}
	}
}

// times multiplies a size by a number.
func times(size string, n int64) string {
	digits := len(size) - len(strings.TrimLeft(size, "0123456789"))
	each, err := strconv.ParseInt(size[:digits], 10, 64)
	if err != nil || each > 1<<40 {
		return size // which will be complained of
	}
	return strconv.FormatInt(each*n, 10) + size[digits:]
}
