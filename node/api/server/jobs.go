package server

import (
	"context"
	"errors"
	"net/http"
	"os"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/site"
)

// one returns the job that a request's path names.
func (a *Server) one(r *http.Request) (site.View, api.Job, error) {
	ids, err := a.identify(r.Context(), []string{r.PathValue("id")})
	if err != nil {
		return site.View{}, api.Job{}, err
	}
	list := viewList{who: askerOf(r.Context())}
	err = a.host.Do(r.Context(), func(s *site.Site) {
		if v, known := s.Job(ids[0]); known {
			list.add(s, a, v)
		}
	})
	switch {
	case err != nil:
		return site.View{}, api.Job{}, err
	case len(list.views) == 0:
		return site.View{}, api.Job{}, errorf(api.CodeNotFound, "job %s is no longer kept", ids[0])
	}
	return list.views[0].View, list.jobs()[0], nil
}

func (a *Server) job(w http.ResponseWriter, r *http.Request) error {
	_, job, err := a.one(r)
	if err != nil {
		return err
	}
	return writeJSON(w, job)
}

func (a *Server) why(w http.ResponseWriter, r *http.Request) error {
	view, job, err := a.one(r)
	if err == nil {
		err = a.ofAsker(r.Context(), []grid.JobID{view.Job.ID})
	}
	if err != nil {
		return err
	}
	reply := api.WhyReply{Job: job, Feasible: view.State != site.Refused, Verdicts: verdictsOf(view.Verdicts, a.host.Now())}
	setBest(&reply, market.Earliest(view.Verdicts), market.Cheapest(view.Verdicts))
	return writeJSON(w, reply)
}

// setBest sets what could be had.
func setBest(r *api.WhyReply, earliest, cheapest market.Option) {
	for _, o := range []struct {
		option market.Option
		into   **api.Verdict
	}{{earliest, &r.Fastest}, {cheapest, &r.Cheapest}} {
		for i := range r.Verdicts {
			if o.option.Site != "" && r.Verdicts[i].Site == string(o.option.Site) {
				*o.into = &r.Verdicts[i]
			}
		}
	}
}

func (a *Server) preview(w http.ResponseWriter, r *http.Request) error {
	var request api.SubmitRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if len(request.Jobs) != 1 {
		return errorf(api.CodeUsage, "%d jobs, want one", len(request.Jobs))
	}
	jobs, err := a.prepare(r.Context(), request.Jobs)
	if err != nil {
		return err
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &site.Preview{Token: token, Job: jobs[0]} })
	if err != nil {
		return err
	}
	result := answer.(*market.PreviewResult)
	if errors.Is(result.Err, coalloc.ErrRequest) || errors.Is(result.Err, site.ErrTooWide) {
		return errorf(api.CodeRefused, "%v", result.Err)
	}
	if result.Err != nil && len(result.Verdicts) == 0 {
		return errorf(api.CodeInternal, "the directory did not answer: %v; ask again later", result.Err)
	}
	reply := api.WhyReply{Verdicts: verdictsOf(result.Verdicts, a.host.Now()), Certain: &result.Certain}
	reply.Job = jobOf(&site.View{Job: jobs[0], State: site.Placing}, func(grid.SiteID) string { return "" })
	reply.Feasible = result.Waits || len(result.Verdicts) > 0 && result.Verdicts[0].Outcome == market.OutcomeChosen
	setBest(&reply, result.Earliest, result.Cheapest)
	return writeJSON(w, reply)
}

func (a *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	request, ids, err := a.named(r)
	if err == nil {
		err = a.ofAsker(r.Context(), ids)
	}
	if err != nil {
		return err
	}
	cause := "cancelled by " + userOf(r.Context())
	if len(request.Cause) > 200 {
		return errorf(api.CodeUsage, "a cause of %d bytes, at most 200", len(request.Cause))
	}
	if request.Cause != "" {
		cause += ": " + request.Cause
	}
	if err := a.own(r.Context(), ids); err != nil {
		return err
	}
	for _, id := range ids {
		answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &site.Cancel{Token: token, Job: id, Cause: cause} })
		if err != nil {
			return err
		}
		if cancelled := answer.(*site.Cancelled); cancelled.Err != nil {
			return cancelled.Err
		}
	}
	return lister{a}.answer(r, &jobsWriter{w: w}, ids, nil)
}

// changeJob says how a job is changed.
type changeJob func(token uint64, id grid.JobID, user string) grid.Input

func holdJob(token uint64, id grid.JobID, _ string) grid.Input {
	return &site.Hold{Token: token, Job: id}
}

func releaseJob(token uint64, id grid.JobID, _ string) grid.Input {
	return &site.Hold{Token: token, Job: id, Release: true}
}

func requeueJob(token uint64, id grid.JobID, user string) grid.Input {
	return &site.Requeue{Token: token, Job: id, Cause: "run again for " + user}
}

// changer answers what has to do with when jobs may start.
type changer struct{ *Server }

// change has jobs held, released or run again. What is over among several is left alone.
func (a changer) change(as changeJob) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		_, ids, err := a.named(r)
		if err == nil {
			err = a.ofAsker(r.Context(), ids)
		}
		if err != nil {
			return err
		}
		if err := a.own(r.Context(), ids); err != nil {
			return err
		}
		for _, id := range ids {
			answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return as(token, id, userOf(r.Context())) })
			if err != nil {
				return err
			}
			if changed := answer.(*site.Changed); changed.Err != nil && (len(ids) == 1 || !changed.State.Terminal()) {
				return changed.Err
			}
		}
		return lister(a).answer(r, &jobsWriter{w: w}, ids, nil)
	}
}

// own returns an error unless all jobs are of this site.
func (a *Server) own(ctx context.Context, ids []grid.JobID) (failure error) {
	err := a.host.Do(ctx, func(s *site.Site) {
		for _, id := range ids {
			if v, known := s.Glance(id); known && v.Foreign {
				failure = errorf(api.CodeRefused, "job %s belongs to site %s: it can be cancelled there", id, v.Job.Home)
			}
		}
	})
	return errors.Join(err, failure)
}

func (a *Server) wait(w http.ResponseWriter, r *http.Request) error {
	request, ids, err := a.named(r)
	if err == nil {
		err = a.ofAsker(r.Context(), ids)
	}
	if err != nil {
		return err
	}
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if request.Timeout < 0 {
		return errorf(api.CodeUsage, "timeout: want more than 0 seconds")
	}
	if request.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, grid.Time(request.Timeout).Duration())
	}
	defer cancel()
	out := &jobsWriter{w: w}
	if err := a.await(ctx, ids, false); errors.Is(err, context.DeadlineExceeded) {
		out.field("timedOut", true)
	} else if err != nil {
		return err
	}
	return lister{a}.answer(r, out, ids, nil)
}

func (a *Server) node(w http.ResponseWriter, r *http.Request) error {
	info := api.NodeInfo{
		ID: string(a.host.ID()), Federation: a.cfg.Federation, Addresses: a.host.Addrs(),
		PID: os.Getpid(), Started: api.InstantOf(a.started), Version: a.cfg.Version,
	}
	who := askerOf(r.Context())
	info.Account, info.Runs = access.Machine.Account(a.cfg.People.Own), "own"
	info.Caller, info.Role = who.Name, who.Role.String()
	if a.cfg.People.Own == 0 && !a.cfg.People.Alone {
		info.Runs = "all"
	}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		info.Name, info.Price, info.Pricing = s.Offer().Name, api.Amount(s.Price()), s.Pricing().String()
		info.GPUs = gpusOf(s.GPUs(a.host.Now()))
		for range s.Jobs {
			info.Jobs++
		}
		c := s.Scheduler()
		info.Scheduler = api.Scheduler{Others: c.Others, Trouble: c.Trouble, Margin: api.Seconds(c.Margin), Broken: c.Broken}
	})
	if err != nil {
		return err
	}
	if who.Role == access.Visitor {
		info = publicOf(info)
	}
	return writeJSON(w, info)
}

// publicOf returns what visitors are told of the node: what is not its machine's business.
func publicOf(n api.NodeInfo) api.NodeInfo {
	return api.NodeInfo{ID: n.ID, Name: n.Name, Federation: n.Federation, Version: n.Version, Price: n.Price, Pricing: n.Pricing, Caller: n.Caller, Role: n.Role}
}

// setPrice changes what this site charges until the daemon ends.
func (a *Server) setPrice(w http.ResponseWriter, r *http.Request) error {
	var request api.PriceRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	price := grid.Price(request.Price)
	if price < 1 || price > grid.CreditsMax {
		return errorf(api.CodeUsage, "price: %v, want more than 0 to %v credits", price, grid.CreditsMax)
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &site.SetPrice{Token: token, Price: price} })
	if err != nil {
		return err
	}
	set := answer.(*site.PriceSet)
	if set.Err != nil {
		return errorf(api.CodeUsage, "%v", set.Err)
	}
	return writeJSON(w, api.PriceReply{Before: api.Amount(set.Before), Price: api.Amount(set.Price)})
}

func (a *Server) stopNode(w http.ResponseWriter, _ *http.Request) error {
	defer a.cfg.Stop()
	return writeJSON(w, struct{}{})
}
