package coallocation

import (
	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/site"
)

// runner is KOALA's site with its runners: what executes a job that it starts. A job has
// its nodes from its placing on, computes after the startup and after its files have
// been brought, and takes as much longer as its components are far from each other.
//
// All of a job is one execution: that its tasks start together on their pilots, which
// takes no time here, changes no figure and makes ten times the events.
type runner struct {
	*site.Site
	koala *koala
}

// Step implements testnet.Site.
func (r *runner) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	r.Site.Step(now, in, out)
	for _, e := range out.Effects {
		if e.Kind == grid.EffectStart {
			r.run(now, &out.Tasks[e.Index])
		}
	}
}

// run says what an execution takes.
func (r *runner) run(now grid.Time, t *grid.Task) {
	k := r.koala
	parts, clusters := k.partsOf(t.Gang)
	startup := k.cfg.Startup
	for _, p := range parts {
		startup = max(startup, k.cfg.Startup+coalloc.Transfer(k.inputsOf(t.Job), k.view, int(p.Site)))
	}
	span := t.Job.RunTime + t.Job.RunTime*grid.Time(coalloc.Slowdown(k.app.ccr, parts, k.network))/1000
	v, _ := r.Job(t.Job.ID)
	k.jobs[t.Job.ID] = &running{
		Job: Job{
			Processors: t.Job.Processors, Submit: t.Job.Submit, Placed: now, Start: now + startup, Clusters: clusters, Tries: v.Tries,
		},
		parts: parts, runTime: t.Job.RunTime,
	}
	job := *t.Job
	job.RunTime = startup + span
	t.Job, t.Limit = &job, t.Limit+startup
	if !k.cfg.ranks {
		t.Gang = nil
	}
}

// inputsOf returns what a job reads and who holds it.
func (k *koala) inputsOf(j *grid.Job) []coalloc.Input {
	var inputs []coalloc.Input
	for _, in := range j.Inputs {
		for i := range k.clusters {
			if k.fileOf(i) == in {
				inputs = append(inputs, coalloc.Input{Bytes: in.Size, Holders: []grid.SiteID{grid.SiteID(k.clusters[i].name)}})
			}
		}
	}
	return inputs
}
