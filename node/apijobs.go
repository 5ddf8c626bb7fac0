package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/internal/grid"
	"gridnode/market"
)

// placeWaitMax is how long an answer to a submission waits for the jobs' places.
const placeWaitMax = 15 * time.Second

// recentSpan is how long a listing shows jobs that are over unless it is asked for.
const recentSpan = grid.Hour

type peerKey struct{}

// withPeer remembers which account is at the other end of a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	user, err := peerUser(conn)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, user)
}

func userOf(ctx context.Context) string {
	user, _ := ctx.Value(peerKey{}).(string)
	return user
}

// submit takes jobs and answers once they have a place, or are over.
func (a *API) submit(w http.ResponseWriter, r *http.Request) error {
	until := r.URL.Query().Get("wait")
	if until != "" && until != "done" && until != "placed" && until != "stored" {
		return apiErrorf(CodeUsage, "wait: %q, want stored, placed or done", until)
	}
	var request SubmitRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	jobs, err := a.prepare(r.Context(), request.Jobs)
	if err != nil {
		return err
	}
	ids, known, err := a.handOver(r.Context(), jobs)
	if err != nil {
		return err
	}
	if until == "done" {
		return a.submitAndWait(w, r, ids, known)
	}
	if until != "stored" {
		ctx, cancel := context.WithTimeout(r.Context(), placeWaitMax)
		defer cancel()
		// When the time is up they are safe, and their state says that no place was
		// found yet.
		if err := a.await(ctx, ids, true); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	reply, err := a.submitted(r.Context(), ids, known)
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// submitAndWait answers twice: once the jobs are safe and once they are over.
func (a *API) submitAndWait(w http.ResponseWriter, r *http.Request, ids []grid.JobID, known []bool) error {
	if err := writeStored(w, ids); err != nil {
		return err
	}
	reply := &SubmitReply{}
	err := a.await(r.Context(), ids, false)
	if err == nil {
		reply, err = a.submitted(r.Context(), ids, known)
	}
	if err != nil {
		reply = &SubmitReply{Failure: failureOf(err)}
	}
	return writeJSON(w, reply)
}

func (a *API) submitted(ctx context.Context, ids []grid.JobID, known []bool) (*SubmitReply, error) {
	jobs, err := a.views(ctx, ids)
	switch {
	case err != nil:
		return nil, err
	case len(jobs) != len(ids):
		return nil, apiErrorf(CodeNotFound, "%d of %d jobs are over and not kept any more: raise limits.finished", len(ids)-len(jobs), len(ids))
	}
	for i := range jobs {
		jobs[i].Known = known[i]
	}
	return &SubmitReply{Jobs: jobs}, nil
}

// writeStored tells the asker, who is about to wait, that its jobs are safe.
func writeStored(w http.ResponseWriter, ids []grid.JobID) error {
	stored := SubmitStored{IDs: make([]string, len(ids))}
	for i, id := range ids {
		stored.IDs[i] = id.String()
	}
	if err := writeJSON(w, stored); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// prepare checks specs and returns the jobs they describe.
func (a *API) prepare(ctx context.Context, specs []JobSpec) ([]*grid.Job, error) {
	if len(specs) == 0 {
		return nil, apiErrorf(CodeUsage, "no jobs in the request")
	}
	by := submitter{home: a.host.ID(), user: userOf(ctx), rating: a.cfg.Rating, now: a.host.Now(), defaults: a.cfg.Defaults}
	sites := make(map[string]grid.SiteID)
	var jobs []*grid.Job
	for i := range specs {
		spec := &specs[i]
		site, known := sites[spec.Site]
		if !known {
			var err error
			if site, err = a.siteNamed(ctx, spec.Site); err != nil {
				return nil, err
			}
			sites[spec.Site] = site
		}
		if len(jobs)+max(len(spec.Array), 1) > apiJobsMax {
			return nil, apiErrorf(CodeUsage, "more than %d jobs in one request", apiJobsMax)
		}
		some, err := by.jobs(spec, site)
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("job %d: %w", i, err)
			}
			return nil, apiErrorf(CodeUsage, "%v", err)
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

// submitParallel is how many jobs of one request are handed over at a time: they
// share the store's commits.
const submitParallel = 512

// handOver gives jobs to the host and returns once each is stored.
func (a *API) handOver(ctx context.Context, jobs []*grid.Job) (ids []grid.JobID, known []bool, err error) {
	ids, known = make([]grid.JobID, len(jobs)), make([]bool, len(jobs))
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	room := make(chan struct{}, submitParallel)
	for i, job := range jobs {
		ids[i] = job.ID
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			var answer any
			answer, errs[i] = a.host.Ask(ctx, func(token uint64) grid.Input { return &Submit{Token: token, Job: job} })
			if errs[i] == nil {
				submitted := answer.(*Submitted)
				known[i], errs[i] = submitted.Known, submitted.Err
			}
		})
	}
	wg.Wait()
	failed := 0
	for _, e := range errs {
		if e != nil {
			failed++
			err = e
		}
	}
	if failed > 0 && failed < len(jobs) {
		err = fmt.Errorf("%d of %d jobs were taken, the others not (repeat the request with the same IDs to submit the rest): %w", len(jobs)-failed, len(jobs), err)
	}
	return ids, known, err
}

// views returns what users see of jobs, in order. A job that is no longer kept is
// left out.
func (a *API) views(ctx context.Context, ids []grid.JobID) ([]Job, error) {
	var list viewList
	err := a.host.Do(ctx, func(s *Site) {
		for _, id := range ids {
			if v, known := s.Job(id); known {
				list.add(s, a, v)
			}
		}
	})
	return list.jobs(), err
}

// viewList collects jobs on the host's loop; what takes long is done off it.
type viewList struct {
	views []View
	names map[grid.SiteID]string
}

func (l *viewList) add(s *Site, a *API, v View) {
	l.views = append(l.views, v)
	if l.names == nil {
		l.names = map[grid.SiteID]string{a.host.ID(): s.Offer().Name}
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

func (l *viewList) jobs() []Job {
	out := make([]Job, len(l.views))
	for i := range l.views {
		out[i] = jobOf(&l.views[i], func(id grid.SiteID) string { return l.names[id] })
	}
	return out
}

// jobsParameters choose jobs; see jobQuery.
var jobsParameters = []string{"id", "state", "user", "site", "name", "all"}

// jobQuery chooses jobs. The zero value chooses those that are not over and those
// that ended lately.
type jobQuery struct {
	ids              map[grid.JobID]bool // nil: any
	states           []State             // empty: any
	user, site, name string              // empty: any
	since            grid.Time           // jobs that ended before are left out
}

// query reads the parameters of a listing.
func (a *API) query(ctx context.Context, values url.Values) (*jobQuery, error) {
	q := &jobQuery{user: values.Get("user"), site: values.Get("site"), name: values.Get("name")}
	for _, text := range values["state"] {
		i := slices.Index(stateNames[:], text)
		if i <= 0 {
			return nil, apiErrorf(CodeUsage, "state: %q, want one of %s", text, strings.Join(stateNames[1:], ", "))
		}
		q.states = append(q.states, State(i))
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
		return nil, apiErrorf(CodeUsage, "all: %q, want true or false", all)
	case all != "true" && q.ids == nil && q.states == nil:
		q.since = a.host.Now() - recentSpan
	}
	return q, nil
}

// match reports whether q chooses v. siteName is what people call v's site.
func (q *jobQuery) match(v *View, siteName string) bool {
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
func (a *API) choose(ctx context.Context, q *jobQuery) ([]Job, error) {
	var list viewList
	err := a.host.Do(ctx, func(s *Site) {
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
	list.views = slices.DeleteFunc(list.views, func(v View) bool { return !q.match(&v, list.names[v.Site]) })
	slices.SortFunc(list.views, func(x, y View) int {
		if x.Job.Submit != y.Job.Submit {
			return int(min(max(x.Job.Submit-y.Job.Submit, -1), 1))
		}
		return x.Job.ID.Compare(y.Job.ID)
	})
	return list.jobs(), nil
}

func (a *API) jobs(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	jobs, err := a.choose(r.Context(), q)
	if err != nil {
		return err
	}
	return writeJSON(w, JobsReply{Jobs: jobs})
}

// watch streams the jobs chosen and then every change of them, one JSON value a
// line. Nothing that happens in between is missed.
func (a *API) watch(w http.ResponseWriter, r *http.Request) error {
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
func writeLines(w http.ResponseWriter, jobs []Job) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range jobs {
		if err := encoder.Encode(&jobs[i]); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
}

// one returns the job that a request's path names.
func (a *API) one(r *http.Request) (View, Job, error) {
	ids, err := a.identify(r.Context(), []string{r.PathValue("id")})
	if err != nil {
		return View{}, Job{}, err
	}
	var list viewList
	err = a.host.Do(r.Context(), func(s *Site) {
		if v, known := s.Job(ids[0]); known {
			list.add(s, a, v)
		}
	})
	switch {
	case err != nil:
		return View{}, Job{}, err
	case len(list.views) == 0:
		return View{}, Job{}, apiErrorf(CodeNotFound, "job %s is no longer kept", ids[0])
	}
	return list.views[0], list.jobs()[0], nil
}

func (a *API) job(w http.ResponseWriter, r *http.Request) error {
	_, job, err := a.one(r)
	if err != nil {
		return err
	}
	return writeJSON(w, job)
}

func (a *API) why(w http.ResponseWriter, r *http.Request) error {
	view, job, err := a.one(r)
	if err != nil {
		return err
	}
	reply := WhyReply{Job: job, Feasible: view.State != Refused, Verdicts: verdictsOf(view.Verdicts)}
	reply.best(market.Earliest(view.Verdicts), market.Cheapest(view.Verdicts))
	return writeJSON(w, reply)
}

// best sets what could be had.
func (r *WhyReply) best(earliest, cheapest market.Option) {
	for _, o := range []struct {
		option market.Option
		into   **Verdict
	}{{earliest, &r.Fastest}, {cheapest, &r.Cheapest}} {
		for i := range r.Verdicts {
			if o.option.Site != "" && r.Verdicts[i].Site == string(o.option.Site) {
				*o.into = &r.Verdicts[i]
			}
		}
	}
}

func (a *API) preview(w http.ResponseWriter, r *http.Request) error {
	var request SubmitRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if len(request.Jobs) != 1 {
		return apiErrorf(CodeUsage, "%d jobs, want one", len(request.Jobs))
	}
	jobs, err := a.prepare(r.Context(), request.Jobs)
	if err != nil {
		return err
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &Preview{Token: token, Job: jobs[0]} })
	if err != nil {
		return err
	}
	result := answer.(*market.PreviewResult)
	if result.Err != nil && len(result.Verdicts) == 0 {
		return apiErrorf(CodeInternal, "the directory did not answer: %v; ask again later", result.Err)
	}
	reply := WhyReply{Verdicts: verdictsOf(result.Verdicts)}
	reply.Job = jobOf(&View{Job: jobs[0], State: Placing}, func(grid.SiteID) string { return "" })
	reply.Feasible = len(result.Verdicts) > 0 && result.Verdicts[0].Outcome == market.OutcomeChosen
	reply.best(result.Earliest, result.Cheapest)
	return writeJSON(w, reply)
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	request, ids, err := a.named(r)
	if err != nil {
		return err
	}
	cause := "cancelled by " + userOf(r.Context())
	if len(request.Cause) > 200 {
		return apiErrorf(CodeUsage, "a cause of %d bytes, at most 200", len(request.Cause))
	}
	if request.Cause != "" {
		cause += ": " + request.Cause
	}
	if err := a.own(r.Context(), ids); err != nil {
		return err
	}
	for _, id := range ids {
		answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &Cancel{Token: token, Job: id, Cause: cause} })
		if err != nil {
			return err
		}
		if cancelled := answer.(*Cancelled); cancelled.Err != nil {
			return cancelled.Err
		}
	}
	jobs, err := a.views(r.Context(), ids)
	if err != nil {
		return err
	}
	return writeJSON(w, JobsReply{Jobs: jobs})
}

// own returns an error unless all jobs are of this site.
func (a *API) own(ctx context.Context, ids []grid.JobID) (failure error) {
	err := a.host.Do(ctx, func(s *Site) {
		for _, id := range ids {
			if v, known := s.Job(id); known && v.Foreign {
				failure = apiErrorf(CodeRefused, "job %s belongs to site %s: it can be cancelled there", id, v.Job.Home)
			}
		}
	})
	return errors.Join(err, failure)
}

func (a *API) wait(w http.ResponseWriter, r *http.Request) error {
	request, ids, err := a.named(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if request.Timeout < 0 {
		return apiErrorf(CodeUsage, "timeout: want more than 0 seconds")
	}
	if request.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, grid.Time(request.Timeout).Duration())
	}
	defer cancel()
	var reply JobsReply
	if err := a.await(ctx, ids, false); errors.Is(err, context.DeadlineExceeded) {
		reply.TimedOut = true
	} else if err != nil {
		return err
	}
	if reply.Jobs, err = a.views(r.Context(), ids); err != nil {
		return err
	}
	return writeJSON(w, reply)
}

func (a *API) node(w http.ResponseWriter, r *http.Request) error {
	info := NodeInfo{
		ID: string(a.host.ID()), Federation: a.cfg.Federation, Addresses: a.host.Addrs(),
		PID: os.Getpid(), Started: InstantOf(a.started), Version: a.cfg.Version,
	}
	err := a.host.Do(r.Context(), func(s *Site) {
		info.Name = s.Offer().Name
		for range s.Jobs {
			info.Jobs++
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, info)
}

func (a *API) stopNode(w http.ResponseWriter, _ *http.Request) error {
	defer a.cfg.Stop()
	return writeJSON(w, struct{}{})
}
