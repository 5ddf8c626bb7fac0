package run

import (
	"os"
	"strconv"

	"gridnode/grid"
)

// slurmEnv returns the variables that scripts written for Slurm read. Each is true: what
// nobody here knows is left out. A job runs on one node, but for a gang, of which each
// component counts as a node.
func (r *Recipe) slurmEnv(task *grid.Task, number int) []string {
	job := task.Job
	each := job.Processors / max(job.Tasks, 1)
	node, nodes, rank, tasks, here := 0, 1, 0, int(job.Tasks), int(job.Tasks)
	if q := task.Squad; q != nil {
		node, nodes, rank, tasks, here = q.Part, len(q.Gang.Parts), q.Gang.FirstOf(q.Part)+number, q.Gang.Tasks(), q.Tasks()
	}
	var env []string
	set := func(name, value string) { env = append(env, "SLURM_"+name+"="+value) }
	count := func(name string, n int64) { set(name, strconv.FormatInt(n, 10)) }
	if job.Number > 0 {
		set("JOB_ID", strconv.FormatUint(job.Number, 10))
		set("JOBID", strconv.FormatUint(job.Number, 10))
	}
	if a := job.Array; a != nil {
		if a.Number > 0 {
			set("ARRAY_JOB_ID", strconv.FormatUint(a.Number, 10))
		}
		for _, v := range []struct {
			name  string
			value int64
		}{{"ID", a.Index}, {"COUNT", a.Count}, {"MIN", a.Min}, {"MAX", a.Max}, {"STEP", a.Step}} {
			count("ARRAY_TASK_"+v.name, v.value)
		}
	}
	set("JOB_NAME", job.Title())
	set("JOB_USER", job.User)
	set("CLUSTER_NAME", r.name)
	set("SUBMIT_DIR", job.Command.Dir)
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"NTASKS", int64(tasks)}, {"NPROCS", int64(tasks)}, {"CPUS_PER_TASK", each}, {"CPUS_ON_NODE", each * int64(here)},
		{"JOB_NUM_NODES", int64(nodes)}, {"NNODES", int64(nodes)}, {"NODEID", int64(node)}, {"PROCID", int64(rank)},
		{"LOCALID", int64(number)}, {"RESTART_COUNT", int64(job.Restarts)},
	} {
		count(v.name, v.value)
	}
	if nodes == 1 {
		set("JOB_CPUS_PER_NODE", strconv.FormatInt(job.Processors, 10))
		set("TASKS_PER_NODE", strconv.Itoa(here))
	}
	if host, err := os.Hostname(); err == nil {
		env = append(env, "SLURMD_NODENAME="+host)
		if nodes == 1 {
			set("JOB_NODELIST", host)
			set("NODELIST", host)
		}
	}
	if job.Memory > 0 {
		const mega = 1 << 20
		count("MEM_PER_CPU", job.Memory/mega)
		if nodes == 1 {
			count("MEM_PER_NODE", job.Memory*job.Processors/mega)
		}
	}
	return env
}
