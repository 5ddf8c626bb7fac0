package server

import (
	"net/http"
	"slices"

	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/site"
)

// users answers what users of this site have, may have and have spent. Everybody hears of
// himself, also if there is nothing to say.
func (a *Server) users(w http.ResponseWriter, r *http.Request) error {
	who, now := askerOf(r.Context()), a.host.Now()
	var views []site.UserView
	if err := a.host.Do(r.Context(), func(s *site.Site) { views = s.Users(now, who.Name) }); err != nil {
		return err
	}
	if who.reach != access.Yes {
		views = slices.DeleteFunc(views, func(v site.UserView) bool { return v.User != who.Name })
	}
	reply := api.UsersReply{Users: make([]api.User, len(views))}
	for i := range views {
		reply.Users[i] = userOfView(&views[i])
	}
	return writeJSON(w, reply)
}

func userOfView(v *site.UserView) api.User {
	u := api.User{
		User: v.User, Jobs: v.Jobs, Running: v.Running, Processors: v.Processors, MayCost: api.Amount(v.Held),
		Spent: api.Amount(v.Spent), Total: api.Amount(v.Total),
		Lately: api.Seconds(v.Lately), Share: v.Limits.Share,
		MaxJobs: max(v.Limits.Jobs, 0), MaxRunning: max(v.Limits.Running, 0), MaxProcessors: max(v.Limits.Processors, 0),
	}
	if spend := v.Limits.Spend; spend.Span > 0 {
		most := api.Amount(spend.Credits)
		u.MaxSpend, u.SpendSpan = &most, api.Seconds(spend.Span)
	}
	return u
}
