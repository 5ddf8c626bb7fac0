package server

import (
	"net/http"

	"gridnode/node/api"
	"gridnode/node/site"
)

// health answers monitoring.
type health struct{ *Server }

// by returns the handler of what h answers; h is nil where nothing is told.
func (a health) by(serve func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.cfg.Metrics == nil {
			return errorf(api.CodeNotFound, "this daemon tells monitoring nothing")
		}
		serve(w, r)
		return nil
	}
}

func (a health) metrics(w http.ResponseWriter, r *http.Request) {
	a.cfg.Metrics.Metrics().ServeHTTP(w, r)
}
func (a health) alive(w http.ResponseWriter, r *http.Request) { a.cfg.Metrics.Alive(w, r) }
func (a health) ready(w http.ResponseWriter, r *http.Request) { a.cfg.Metrics.Ready(w, r) }

// drain has the site take no new work, or take it again.
func (a health) drain(w http.ResponseWriter, r *http.Request) error {
	var request api.DrainRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if err := a.host.Drain(r.Context(), request.Undo); err != nil {
		return err
	}
	a.cfg.Logger.Info("the site is drained by its owner's wish", "by", userOf(r.Context()), "undo", request.Undo)
	return a.drained(w, r)
}

// drained answers what the site has still.
func (a health) drained(w http.ResponseWriter, r *http.Request) error {
	var reply api.Drain
	err := a.host.Do(r.Context(), func(s *site.Site) {
		reply.Draining = s.Draining()
		counts, _ := s.Census()
		for _, c := range counts {
			switch {
			case c.Foreign: // until its home has the result
				reply.Guests += int(c.Jobs)
			case c.State.Terminal():
			case c.State == site.Running || c.State == site.Awarded || c.State == site.Cancelling:
				reply.Running += int(c.Jobs)
			default:
				reply.Waiting += int(c.Jobs)
			}
		}
		reply.Leases = len(s.Leases())
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}
