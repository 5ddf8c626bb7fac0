package server

import (
	"context"
	"net/http"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

func (a *Server) leases(w http.ResponseWriter, r *http.Request) error {
	direction := r.URL.Query().Get("direction")
	if direction != "" && direction != api.DirectionIn && direction != api.DirectionOut {
		return errorf(api.CodeUsage, "direction: %q, want in or out", direction)
	}
	reply := api.LeasesReply{Leases: []api.Lease{}}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, v := range s.Leases() {
			if l := leaseOf(s, &v); direction == "" || direction == l.Direction {
				reply.Leases = append(reply.Leases, l)
			}
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// leaseOf returns what users see of a lease. It is called on the host's loop.
func leaseOf(s *site.Site, v *site.LeaseView) api.Lease {
	l := api.Lease{
		Number: v.Number, Direction: api.DirectionIn, Borrower: string(v.Borrower), Lender: string(v.Lender), Processors: v.Processors, Used: v.Used,
		State: v.State.String(), Since: api.Instant(v.Since), End: api.Instant(v.End), Limit: api.Instant(v.Limit), Source: string(v.Source), Hops: v.Hops, Jobs: []string{},
		Price: api.Amount(v.Price), Ceiling: api.Amount(v.Ceiling),
	}
	peer := v.Lender
	if v.Lent {
		l.Direction, peer = api.DirectionOut, v.Borrower
	}
	l.Peer = s.SiteName(peer)
	for _, id := range v.Jobs {
		l.Jobs = append(l.Jobs, id.String())
	}
	return l
}

func (a *Server) requestLease(w http.ResponseWriter, r *http.Request) error {
	var request api.LeaseRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if request.Site == "" {
		return errorf(api.CodeUsage, "site: name the site that shall lend")
	}
	lender, err := a.siteNamed(r.Context(), request.Site)
	if err != nil {
		return err
	}
	return a.askLease(r.Context(), w, func(token uint64) grid.Input {
		return &site.RequestLease{Token: token, Lender: lender, Processors: request.Processors, Span: grid.Time(request.Time), Most: grid.Price(request.MaxPrice)}
	})
}

// changeLease returns what answers a request to change a lease.
func (a *Server) changeLease(change site.LeaseChange) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var request api.LeaseChangeRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		if request.Number == 0 {
			return errorf(api.CodeUsage, "number: name the lease")
		}
		borrower, err := a.siteNamed(r.Context(), request.Borrower)
		if err != nil {
			return err
		}
		return a.askLease(r.Context(), w, func(token uint64) grid.Input {
			return &site.ChangeLease{
				Token: token, Change: change, Number: request.Number, Borrower: borrower, Span: grid.Time(request.Time), Force: request.Force,
			}
		})
	}
}

// askLease asks the site about a lease and answers with what it says.
func (a *Server) askLease(ctx context.Context, w http.ResponseWriter, input func(token uint64) grid.Input) error {
	answer, err := a.host.Ask(ctx, input)
	if err != nil {
		return err
	}
	said := answer.(*site.LeaseAnswer)
	if said.Err != nil {
		return said.Err
	}
	var reply api.LeaseReply
	if err := a.host.Do(ctx, func(s *site.Site) { reply.Lease = leaseOf(s, &said.Lease) }); err != nil {
		return err
	}
	return writeJSON(w, reply)
}
