package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/site"
)

// recentSpan is how long a listing shows jobs that are over unless it is asked for.
const recentSpan = grid.Hour

// views returns what users see of jobs, in order. A job that is no longer kept is
// left out.
func (a *Server) views(ctx context.Context, ids []grid.JobID) ([]api.Job, error) {
	list := viewList{who: askerOf(ctx), host: a.host}
	err := a.host.Do(ctx, func(s *site.Site) {
		for _, id := range ids {
			if v, known := s.Job(id); known {
				list.add(s, a, v)
			}
		}
	})
	return list.jobs(), err
}

// seen is a job and how much of it is shown.
type seen struct {
	site.View
	sight access.Sight
}

// viewList collects jobs on the host's loop; what takes long is done off it.
type viewList struct {
	who   asker
	views []seen
	names map[grid.SiteID]string
	host  *node.Host // asked what of each is cut; nil: nobody asks for single jobs
}

func (l *viewList) add(s *site.Site, a *Server, v site.View) {
	sight := a.sight(l.who, &v)
	if sight == access.Hidden {
		return
	}
	l.views = append(l.views, seen{v, sight})
	if l.names == nil {
		l.names = map[grid.SiteID]string{a.host.ID(): s.Offer().Name}
	}
	if v.Gang != nil {
		for i := range v.Gang.Parts {
			id := v.Gang.Parts[i].Site
			l.names[id] = s.SiteName(id)
		}
	}
	if _, there := l.names[v.Site]; there || v.Site == "" {
		return
	}
	if q, known := s.Known(v.Site); known && q.Name != "" {
		l.names[v.Site] = q.Name
		return
	}
	for i := range v.Verdicts { // perhaps it was known when the job was placed
		if v.Verdicts[i].Site == v.Site && v.Verdicts[i].Name != "" {
			l.names[v.Site] = v.Verdicts[i].Name
		}
	}
}

func (l *viewList) jobs() []api.Job {
	out := make([]api.Job, len(l.views))
	for i := range l.views {
		out[i] = jobOf(&l.views[i].View, func(id grid.SiteID) string { return l.names[id] })
		if l.views[i].sight == access.Brief {
			out[i] = briefOf(out[i])
		} else if l.host != nil {
			for _, stream := range node.OutputCut(l.host, &l.views[i].View) {
				out[i].Cut = append(out[i].Cut, stream.String())
			}
		}
	}
	return out
}

// jobsParameters choose jobs; see jobQuery.
var jobsParameters = []string{"id", "state", "user", "site", "name", "all"}

// jobQuery chooses jobs. The zero value chooses those that are not over and those
// that ended lately.
type jobQuery struct {
	ids              map[grid.JobID]bool // nil: any
	states           []site.State        // empty: any
	user, site, name string              // empty: any
	since            grid.Time           // jobs that ended before are left out
}

// query reads the parameters of a listing.
func (a *Server) query(ctx context.Context, values url.Values) (*jobQuery, error) {
	q := &jobQuery{user: values.Get("user"), site: values.Get("site"), name: values.Get("name")}
	for _, text := range values["state"] {
		state, err := site.ParseState(text)
		if err != nil {
			return nil, errorf(api.CodeUsage, "state: %v", err)
		}
		q.states = append(q.states, state)
	}
	if len(values["id"]) > 0 {
		ids, err := a.identify(ctx, values["id"])
		if err != nil {
			return nil, err
		}
		q.ids = make(map[grid.JobID]bool)
		for _, id := range ids {
			q.ids[id] = true
		}
	}
	switch all := values.Get("all"); {
	case all != "" && all != "true" && all != "false":
		return nil, errorf(api.CodeUsage, "all: %q, want true or false", all)
	case all != "true" && q.ids == nil && q.states == nil:
		q.since = a.host.Now() - recentSpan
	}
	return q, nil
}

// askedOut reports whether q asks for something that is not shown of a job: then it does not
// choose it, as that would show it.
func (q *jobQuery) askedOut(v *seen) bool {
	return v.sight == access.Brief && (q.user != "" || q.name != "")
}

// match reports whether q chooses v. siteName is what people call v's site.
func (q *jobQuery) match(v *site.View, siteName string) bool {
	switch {
	case q.ids != nil && !q.ids[v.Job.ID],
		len(q.states) > 0 && !slices.Contains(q.states, v.State),
		q.user != "" && q.user != v.Job.User,
		q.name != "" && !named(v.Job.Name, q.name),
		q.site != "" && q.site != string(v.Site) && q.site != siteName,
		v.State.Terminal() && max(v.End, v.Job.Submit) < q.since:
		return false
	}
	return true
}

// named reports whether a job is called name, or belongs to the array called name.
func named(job, name string) bool {
	rest, found := strings.CutPrefix(job, name)
	return found && (rest == "" || rest[0] == '[' && rest[len(rest)-1] == ']')
}

// choose returns the jobs that q chooses, oldest first. Views are complete only
// for those, so that a long table does not hold up the loop.
func (a *Server) choose(ctx context.Context, q *jobQuery) ([]api.Job, error) {
	list := viewList{who: askerOf(ctx)}
	if q.ids != nil {
		list.host = a.host
	}
	err := a.host.Do(ctx, func(s *site.Site) {
		if q.ids != nil {
			for id, wanted := range q.ids {
				if v, known := s.Job(id); known && wanted {
					list.add(s, a, v)
				}
			}
			return
		}
		withoutSite := *q
		withoutSite.site = ""
		for v := range s.Jobs {
			if withoutSite.match(&v, "") {
				list.add(s, a, v)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	list.views = slices.DeleteFunc(list.views, func(v seen) bool { return q.askedOut(&v) || !q.match(&v.View, list.names[v.Site]) })
	slices.SortFunc(list.views, func(x, y seen) int {
		if x.Job.Submit != y.Job.Submit {
			return int(min(max(x.Job.Submit-y.Job.Submit, -1), 1))
		}
		return x.Job.ID.Compare(y.Job.ID)
	})
	return list.jobs(), nil
}

func (a *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	jobs, err := a.choose(r.Context(), q)
	if err != nil {
		return err
	}
	reply := api.JobsReply{Jobs: jobs}
	if err := a.host.Do(r.Context(), func(s *site.Site) { reply.Trouble = s.Scheduler().Trouble }); err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// watch streams the jobs chosen and then every change of them, one JSON value a
// line. Nothing that happens in between is missed.
func (a *Server) watch(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	watcher := a.waiters.watch()
	defer a.waiters.unwatch(watcher)
	jobs, err := a.choose(r.Context(), q)
	if err != nil {
		return err
	}
	q.since = 0 // a job that ends from now on is of interest
	w.Header().Set("Content-Type", "application/x-ndjson")
	for {
		if writeLines(w, jobs) != nil {
			return nil // the stream has begun: its end says enough
		}
		select {
		case <-watcher.wake:
		case <-r.Context().Done():
			return nil
		case <-a.stopping.Done():
			return nil
		}
		one := *q
		one.ids = make(map[grid.JobID]bool)
		for _, id := range a.waiters.take(watcher) {
			one.ids[id] = q.ids == nil || q.ids[id]
		}
		if jobs, err = a.choose(r.Context(), &one); err != nil {
			return nil
		}
	}
}

// writeLines writes jobs, one JSON value a line, and sends them off.
func writeLines(w http.ResponseWriter, jobs []api.Job) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range jobs {
		if err := encoder.Encode(&jobs[i]); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
}
