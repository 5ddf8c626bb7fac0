package coallocation

import (
	"math"
	"slices"

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
	r.poll(now)
	r.Site.Step(now, in, out)
	for _, e := range out.Effects {
		if e.Kind == grid.EffectStart {
			r.run(now, &out.Tasks[e.Index])
		}
	}
}

// NextTimer implements testnet.Site.
func (r *runner) NextTimer() grid.Time {
	if k := r.koala; k.users != nil && (k.open > 0 || k.n.Now() < k.window) {
		return min(r.Site.NextTimer(), k.polled+k.cfg.Poll)
	}
	return r.Site.NextTimer()
}

// poll looks at what is idle, as KOALA asks the clusters' resource managers; without
// background load it knows.
func (r *runner) poll(now grid.Time) {
	k := r.koala
	if k.users == nil || now-k.polled < k.cfg.Poll {
		return
	}
	k.polled = now
	for i := range k.clusters {
		k.view.SetFree(i, k.clusters[i].Idle(now))
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
	var where []string
	for _, p := range t.Gang.Parts {
		if !slices.Contains(where, string(p.Site)) {
			where = append(where, string(p.Site))
		}
	}
	base := k.computing(t.Job.RunTime, parts)
	span := base + t.Job.RunTime*grid.Time(k.view.Slowdown(&coalloc.Request{CCR: k.app.ccr}, parts))/1000
	v, _ := r.Job(t.Job.ID)
	k.jobs[t.Job.ID] = &running{
		Job: Job{
			Processors: t.Job.Processors, Submit: t.Job.Submit, Placed: now, Start: now + startup, Clusters: clusters, Where: where, Tries: v.Tries, Failures: v.Failures,
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

// computing returns how long a job computes on clusters, on the slowest of all if none are
// given: "the execution time of a parallel application that runs on co-allocated clusters
// will be limited by the speed of the slowest processor" (section V-B). Run times are those
// of the fastest cluster.
func (k *koala) computing(span grid.Time, parts []coalloc.Part) grid.Time {
	if !k.cfg.Speeds {
		return span
	}
	fastest, slowest := int64(0), int64(math.MaxInt64)
	for i := range k.clusters {
		speed := k.clusters[i].megahertz
		fastest = max(fastest, speed)
		if parts == nil || slices.ContainsFunc(parts, func(p coalloc.Part) bool { return int(p.Site) == i }) {
			slowest = min(slowest, speed)
		}
	}
	return span * grid.Time(fastest) / grid.Time(slowest)
}
