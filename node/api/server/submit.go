package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/quota"
	"gridnode/node/site"
)

// placeWaitMax is how long an answer to a submission waits for the jobs' places.
const placeWaitMax = 15 * time.Second

// submit takes jobs and answers once they have a place, or are over.
func (a *Server) submit(w http.ResponseWriter, r *http.Request) error {
	until := r.URL.Query().Get("wait")
	if until != "" && until != "done" && until != "placed" && until != "stored" {
		return errorf(api.CodeUsage, "wait: %q, want stored, placed or done", until)
	}
	if err := a.cfg.People.MayRun(askerOf(r.Context()).UID); err != nil {
		return errorf(api.CodeDenied, "%v", err)
	}
	request, err := a.read(r)
	if err != nil {
		return err
	}
	jobs, err := a.prepare(r.Context(), request.Jobs)
	if err != nil {
		return err
	}
	ids, known, err := a.handOver(r.Context(), jobs)
	if errors.Is(err, site.ErrFull) || errors.Is(err, quota.ErrLimit) {
		a.porter.shares.InVain(askerOf(r.Context()).UID)
	}
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
	return a.submitted(&jobsWriter{w: w}, r, ids, known)
}

// read returns a submission. What was sent is read before its turn to be decoded comes, so
// that nobody waits for who sends slowly.
func (a *Server) read(r *http.Request) (*api.SubmitRequest, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	leave, err := a.desk.Take(r.Context(), askerOf(r.Context()).UID)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request api.SubmitRequest
	return &request, readJSON(r, &request)
}

// submitAndWait answers twice: once the jobs are safe and once they are over.
func (a *Server) submitAndWait(w http.ResponseWriter, r *http.Request, ids []grid.JobID, known []bool) error {
	if err := writeStored(w, ids); err != nil {
		return err
	}
	err := a.await(r.Context(), ids, false)
	if err == nil {
		err = a.submitted(&jobsWriter{w: w, line: true}, r, ids, known)
	}
	if err != nil {
		return writeJSON(w, &api.SubmitReply{Failure: failureOf(err)})
	}
	return nil
}

// submitted says what has become of jobs that were handed over. An error is the answer: nothing
// was written.
func (a *Server) submitted(out *jobsWriter, r *http.Request, ids []grid.JobID, known []bool) error {
	gone := 0
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, id := range ids {
			if _, there := s.Glance(id); !there {
				gone++
			}
		}
	})
	switch {
	case err != nil:
		return err
	case gone > 0:
		return errorf(api.CodeNotFound, "%d of %d jobs are over and not kept any more: raise limits.finished", gone, len(ids))
	}
	again := make(map[grid.JobID]bool)
	for i, id := range ids {
		if known[i] {
			again[id] = true
		}
	}
	return lister{a}.answer(r, out, ids, func(id grid.JobID, j *api.Job) { j.Known = again[id] })
}

// writeStored tells the asker, who is about to wait, that its jobs are safe.
func writeStored(w http.ResponseWriter, ids []grid.JobID) error {
	stored := api.SubmitStored{IDs: make([]string, len(ids))}
	for i, id := range ids {
		stored.IDs[i] = id.String()
	}
	if err := writeJSON(w, stored); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// prepare checks specs and returns the jobs they describe.
func (a *Server) prepare(ctx context.Context, specs []api.JobSpec) ([]*grid.Job, error) {
	if len(specs) == 0 {
		return nil, errorf(api.CodeUsage, "no jobs in the request")
	}
	by := submitter{home: a.host.ID(), user: userOf(ctx), writes: a.cfg.People.MayRun(askerOf(ctx).UID) == nil, rating: a.cfg.Rating, now: a.host.Now(), defaults: a.cfg.Defaults, modules: a.host.HasModule, content: a.host.Content()}
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
		if err := a.nameComponents(ctx, spec, sites); err != nil {
			return nil, err
		}
		var err error
		if spec.Dependency, err = (changer{a}).resolve(ctx, spec.Dependency); err != nil {
			return nil, err
		}
		if err := (changer{a}).corresponds(ctx, spec); err != nil {
			return nil, err
		}
		if len(jobs)+max(len(spec.Array), 1) > jobsMax {
			return nil, errorf(api.CodeUsage, "more than %d jobs in one request", jobsMax)
		}
		some, err := by.jobs(spec, site)
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("job %d: %w", i, err)
			}
			return nil, errorf(api.CodeUsage, "%v", err)
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

// handMax is how many jobs of all users together are handed over at a time: they share the
// store's commits, and whatever else changes the site waits for those of one turn.
const handMax = 64

// handOver gives jobs to the host and returns once each is stored.
func (a *Server) handOver(ctx context.Context, jobs []*grid.Job) (ids []grid.JobID, known []bool, err error) {
	ids, known = make([]grid.JobID, len(jobs)), make([]bool, len(jobs))
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	who := askerOf(ctx).UID
	for i, job := range jobs {
		ids[i] = job.ID
		var leave func()
		if leave, errs[i] = a.hands.Take(ctx, who); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			defer leave()
			var answer any
			answer, errs[i] = a.host.Ask(ctx, func(token uint64) grid.Input { return &site.Submit{Token: token, Job: job} })
			if errs[i] == nil {
				submitted := answer.(*site.Submitted)
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
