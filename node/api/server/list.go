package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/api/server/stream"
	"gridnode/node/run"
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

// job returns what is shown of job i.
func (l *viewList) job(i int) api.Job {
	job := jobOf(&l.views[i].View, func(id grid.SiteID) string { return l.names[id] })
	if l.views[i].sight == access.Brief {
		return briefOf(job)
	}
	return job
}

// key returns what job i is ordered by.
func (l *viewList) key(i int, o api.JobOrder) api.JobKey {
	if o == (api.JobOrder{}) { // what nearly everybody asks for, without the rest
		return o.Key(&api.Job{Submitted: api.Instant(l.views[i].Job.Submit)})
	}
	job := l.job(i)
	return o.Key(&job)
}

func (l *viewList) jobs() []api.Job {
	out := make([]api.Job, len(l.views))
	for i := range l.views {
		out[i] = l.job(i)
		if l.views[i].sight != access.Brief && l.host != nil {
			for _, stream := range node.OutputCut(l.host, &l.views[i].View) {
				out[i].Cut = append(out[i].Cut, stream.String())
			}
			for stream, loss := range node.OutputLosses(l.host, &l.views[i].View) {
				out[i].Missing += loss.Missing
				if loss.Changed {
					out[i].Damaged = append(out[i].Damaged, run.Stream(stream+1).String())
				}
			}
		}
	}
	return out
}

// jobsParameters choose jobs; see jobQuery.
var jobsParameters = []string{"id", "state", "user", "site", "name", "all", "sort"}

// jobQuery chooses jobs. The zero value chooses those that are not over and those
// that ended lately.
type jobQuery struct {
	ids              map[grid.JobID]bool // nil: any
	states           []site.State        // empty: any
	user, site, name string              // empty: any
	since            grid.Time           // jobs that ended before are left out
	order            api.JobOrder
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
	if name := values.Get("sort"); name != "" {
		order, err := api.ParseJobOrder(name)
		if err != nil {
			return nil, errorf(api.CodeUsage, "sort: %v", err)
		}
		q.order = order
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

// lister finds the jobs that a query chooses. Of many it holds where each stands and no more:
// the jobs themselves are read in parts while the answer is written.
type lister struct{ *Server }

// batchJobs is how many jobs are read on the host's loop at a time. A listing of no more is
// read at one instant.
const batchJobs = 512

// place is where a job stands in a listing.
type place struct {
	key api.JobKey
	id  grid.JobID
	job *api.Job // nil: it is to be read
}

// look adds v to list if q chooses it, and reports whether it does.
func (a lister) look(s *site.Site, q *jobQuery, v site.View, list *viewList) bool {
	first := *q
	first.site = "" // its name is not known yet
	if !first.match(&v, "") {
		return false
	}
	n := len(list.views)
	list.add(s, a.Server, v)
	if len(list.views) == n {
		return false
	}
	if last := &list.views[n]; q.askedOut(last) || !q.match(&last.View, list.names[v.Site]) {
		list.views = list.views[:n]
		return false
	}
	return true
}

// list returns an empty list of views for q.
func (a lister) list(ctx context.Context, q *jobQuery) viewList {
	list := viewList{who: askerOf(ctx)}
	if q.ids != nil {
		list.host = a.host
	}
	return list
}

// choose returns where the jobs stand that q chooses, in its order. Views are complete only
// for those, so that a long table does not hold up the loop.
func (a lister) choose(ctx context.Context, q *jobQuery) ([]place, error) {
	list, places := a.list(ctx, q), []place(nil)
	err := a.host.Do(ctx, func(s *site.Site) {
		enter := func(v site.View) {
			if !a.look(s, q, v, &list) {
				return
			}
			last := len(list.views) - 1
			places = append(places, place{key: list.key(last, q.order), id: v.Job.ID})
			if len(places) > batchJobs {
				list.views = list.views[:0] // too many to be held
			}
		}
		if q.ids != nil {
			for id, wanted := range q.ids {
				if v, known := s.Job(id); known && wanted {
					enter(v)
				}
			}
			return
		}
		for v := range s.Jobs {
			enter(v)
		}
	})
	if err != nil {
		return nil, err
	}
	if jobs := list.jobs(); len(jobs) == len(places) {
		for i := range jobs {
			places[i].job = &jobs[i]
		}
	}
	slices.SortFunc(places, func(x, y place) int { return cmp.Or(q.order.Compare(x.key, y.key), x.id.Compare(y.id)) })
	return places, nil
}

// each calls see for the jobs of places, in order, each as it is when it is read. What q does
// not choose any more by then is left out.
func (a lister) each(ctx context.Context, q *jobQuery, places []place, see func(*api.Job) error) error {
	for some := range slices.Chunk(places, batchJobs) {
		if some[0].job != nil {
			for i := range some {
				if err := see(some[i].job); err != nil {
					return err
				}
			}
			continue
		}
		list := a.list(ctx, q)
		read := (*site.Site).Glance
		if q.ids != nil {
			read = (*site.Site).Job
		}
		err := a.host.Do(ctx, func(s *site.Site) {
			for i := range some {
				if v, known := read(s, some[i].id); known {
					a.look(s, q, v, &list)
				}
			}
		})
		if err != nil {
			return err
		}
		jobs := list.jobs()
		for i := range jobs {
			if err := see(&jobs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobs answers GET /v1/jobs. The answer is written while it is read.
func (a *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	places, err := lister{a}.choose(r.Context(), q)
	if err != nil {
		return err
	}
	if len(places) == 0 && q.site != "" { // nothing runs there, or there is no such site
		if _, err := a.siteNamed(r.Context(), q.site); err != nil {
			return err
		}
	}
	var trouble string
	if err := a.host.Do(r.Context(), func(s *site.Site) { trouble = s.Scheduler().Trouble }); err != nil {
		return err
	}
	out := jobsWriter{w: w}
	if trouble != "" {
		out.field("trouble", trouble)
	}
	if err := (lister{a}).each(r.Context(), q, places, out.add); err != nil {
		return out.failed(err)
	}
	return out.end()
}

// answer writes an answer whose jobs are ids, in their order, as they are read: what is no longer
// kept, or not for the asker to see, is left out. note, if not nil, may change what is said of
// each.
func (a lister) answer(r *http.Request, out *jobsWriter, ids []grid.JobID, note func(grid.JobID, *api.Job)) error {
	for some := range slices.Chunk(ids, batchJobs) {
		jobs, err := a.views(r.Context(), some)
		for i := range jobs {
			if id, _ := grid.ParseJobID(jobs[i].ID); note != nil {
				note(id, &jobs[i])
			}
			if err == nil {
				err = out.add(&jobs[i])
			}
		}
		if err != nil {
			return out.failed(err)
		}
	}
	return out.end()
}

// jobsWriter writes an object with a list of jobs, its last field, while they are read.
type jobsWriter struct {
	w       http.ResponseWriter
	line    bool          // the object is a line of several
	encoder *json.Encoder // nil: nothing was written
	text    bytes.Buffer  // of one job
	fields  []byte        // that come before the jobs
	some    bool          // jobs were written
}

// field says something before the jobs. The value is a text or a truth.
func (o *jobsWriter) field(name string, value any) {
	text, _ := json.Marshal(value) // those cannot fail
	o.fields = append(append(append(append(o.fields, '"'), name...), `":`...), text...)
	o.fields = append(o.fields, ',')
}

// begin writes what comes before the first job.
func (o *jobsWriter) begin() error {
	if o.encoder != nil {
		return nil
	}
	o.encoder = json.NewEncoder(&o.text)
	o.encoder.SetEscapeHTML(false)
	o.w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(o.w, "{"+string(o.fields)+`"jobs":[`)
	return err
}

func (o *jobsWriter) add(j *api.Job) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.text.Reset()
	if o.some {
		o.text.WriteByte(',')
	}
	o.some = true
	if err := o.encoder.Encode(j); err != nil {
		return err
	}
	if o.line {
		o.text.Truncate(o.text.Len() - 1)
	}
	_, err := o.w.Write(o.text.Bytes())
	return err
}

// failed returns the error that is to be the answer: none if one has begun, as that it does not
// end says enough.
func (o *jobsWriter) failed(err error) error {
	if o.encoder != nil {
		return nil
	}
	return err
}

func (o *jobsWriter) end() error {
	err := o.begin()
	if err == nil {
		_, err = io.WriteString(o.w, "]}\n")
	}
	return o.failed(err) // nil: the asker is gone if this fails
}

// beatSpan is how long a stream of events is silent before it says that it is still there, so
// that readers notice a connection that has died.
const beatSpan = 15 * time.Second

// watching tells of jobs as they change.
type watching struct {
	*Server
	beat time.Duration // of silence
}

// watch streams the jobs chosen and then every change of them, in the form that Accept asks
// for: one JSON value a line, or events. Nothing that happens in between is missed.
func (a watching) watch(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	wake := a.changes.Listen()
	defer a.changes.Unlisten(wake)
	out, place := stream.NewWriter(w, r)
	beat := time.NewTicker(a.beat)
	defer beat.Stop()
	for {
		changed, next, gap := a.changes.After(place)
		if err := a.tell(r, out, q, changed, gap); err != nil {
			return out.Failed(err)
		}
		if next != place {
			out.Now(next)
		}
		place = next
		if out.Flush() != nil {
			return nil // the asker has gone
		}
		select {
		case <-wake:
		case <-beat.C:
			out.Beat()
		case <-r.Context().Done():
			return nil
		case <-a.stopping.Done():
			return nil
		}
	}
}

// tell writes the jobs that q chooses of those that have changed, or of all if there is a gap.
func (a watching) tell(r *http.Request, out *stream.Writer, q *jobQuery, changed map[grid.JobID]bool, gap string) error {
	if gap == "" && len(changed) == 0 {
		return out.Begin("")
	}
	if gap == "" {
		some := *q
		some.since = 0 // a job that ends from now on is of interest
		some.ids = changed
		for id := range changed {
			changed[id] = q.ids == nil || q.ids[id]
		}
		q = &some
	}
	places, err := lister{a.Server}.choose(r.Context(), q)
	if err != nil {
		return err
	}
	if err := out.Begin(gap); err != nil {
		return err
	}
	return lister{a.Server}.each(r.Context(), q, places, out.Job)
}
