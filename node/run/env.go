package run

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/node/shim"
)

// baseEnv is what every task gets of the daemon's environment.
func baseEnv() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	for i, name := range []string{"PATH", "LANG"} {
		if value := os.Getenv(name); value != "" {
			env[i] = name + "=" + value
		}
	}
	if u, err := user.Current(); err == nil {
		env = append(env, "USER="+u.Username, "LOGNAME="+u.Username)
	}
	return env
}

// OwnerEnv returns the environment of what runs at home for the owner of a job, nil being the
// daemon's own account, with settings besides.
func OwnerEnv(account *Account, settings []string) []string {
	env := baseEnv()
	if dir, err := os.UserHomeDir(); err == nil {
		env = append(env, "HOME="+dir)
	}
	if account != nil {
		env = account.env(env, "/")
	}
	return append(env, settings...)
}

// taskEnv returns the environment of a task: what the site gives, overridden by what the
// job brings, and last what the job cannot change.
func (r *Recipe) taskEnv(task *grid.Task, number int, scratch string, walled bool, account *Account) []string {
	job := task.Job
	home := scratch // another site's job has no business in our home
	if job.Home == r.files.Site {
		if dir, err := os.UserHomeDir(); err == nil {
			home = dir
		}
	}
	fixed := append(r.slurmEnv(task, number), r.fixedEnv(task, number, walled)...)
	env := make([]string, 0, len(r.env)+6+len(job.Command.Env)+len(fixed))
	if walled {
		env = append(env, guestEnv(scratch)...)
	} else {
		env = append(append(env, r.env...), "HOME="+home, "TMPDIR="+scratch)
	}
	if account != nil {
		env = account.env(env, scratch)
	}
	for _, setting := range job.Command.Env {
		env = setEnv(env, setting)
	}
	for _, setting := range fixed {
		env = setEnv(env, setting)
	}
	return env
}

// moduleEnv returns the variables of a module: nothing of the site's but what the job cannot
// change.
func (r *Recipe) moduleEnv(task *grid.Task, number int) (env []string) {
	for _, setting := range slices.Concat(task.Job.Command.Env, r.fixedEnv(task, number, true)) {
		env = setEnv(env, setting)
	}
	return env
}

// fixedEnv tells a task what it is.
func (r *Recipe) fixedEnv(task *grid.Task, number int, walled bool) []string {
	job := task.Job
	each := job.Processors / max(job.Tasks, 1)
	processors := job.Processors
	if task.Squad != nil || job.Command.Each {
		processors = each
	}
	fixed := []string{
		"GRIDNODE_SITE=" + r.name,
		"GRIDNODE_SITE_ID=" + string(r.files.Site),
		"GRIDNODE_JOB_ID=" + job.ID.String(),
		"GRIDNODE_HOME_SITE=" + string(job.Home),
		"GRIDNODE_NTASKS=" + strconv.FormatInt(job.Tasks, 10),
		"GRIDNODE_CPUS_PER_TASK=" + strconv.FormatInt(each, 10),
		"GRIDNODE_NPROCS=" + strconv.FormatInt(processors, 10),
	}
	switch {
	case task.Squad != nil:
		fixed = append(fixed, rankEnv(task.Squad, number)...)
	case job.Command.Each:
		fixed = append(fixed, besideEnv(job.Tasks)...)
	}
	return append(fixed, r.gpuEnv(task, walled)...)
}

// setEnv adds a setting NAME=VALUE, in the place of one of the same name.
func setEnv(env []string, setting string) []string {
	name, _, _ := strings.Cut(setting, "=")
	for i, old := range env {
		if strings.HasPrefix(old, name) && len(old) > len(name) && old[len(name)] == '=' {
			env[i] = setting
			return env
		}
	}
	return append(env, setting)
}

// rankEnv tells a task of a squad who it is and where the others are.
func rankEnv(q *grid.Squad, number int) []string {
	env := []string{
		"GRIDNODE_RANK=" + strconv.Itoa(q.Gang.FirstOf(q.Part)+number),
		"GRIDNODE_NTASKS=" + strconv.Itoa(q.Gang.Tasks()),
		"GRIDNODE_COMPONENT=" + strconv.Itoa(q.Part),
		"GRIDNODE_COMPONENTS=" + strconv.Itoa(len(q.Gang.Parts)),
		"GRIDNODE_LOCAL_RANK=" + strconv.Itoa(number),
		"GRIDNODE_LOCAL_NTASKS=" + strconv.Itoa(q.Tasks()),
	}
	if len(q.Addresses) > 0 {
		env = append(env,
			shim.RendezvousEnv+"="+q.Addresses[0],
			shim.PeersEnv+"="+strings.Join(q.Addresses, ","),
			"GRIDNODE_PEER_SITES="+strings.Join(siteTexts(q.Gang.Sites()), ","),
		)
	}
	if len(q.Inputs) > 0 {
		env = append(env, "GRIDNODE_INPUTS="+strconv.Itoa(len(q.Inputs)))
	}
	for i, path := range q.Inputs {
		env = append(env, "GRIDNODE_INPUT_"+strconv.Itoa(i)+"="+path)
	}
	return env
}

func siteTexts(sites []grid.SiteID) []string {
	texts := make([]string, len(sites))
	for i := range sites {
		texts[i] = string(sites[i])
	}
	return slices.Clip(texts)
}
