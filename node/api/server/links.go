package server

import (
	"context"
	"net/http"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/api"
	"gridnode/node/site"
)

func (a *Server) links(w http.ResponseWriter, r *http.Request) error {
	reply := api.LinksReply{Links: []api.SiteLink{}}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, k := range s.Links() {
			reply.Links = append(reply.Links, linkOf(s, &k))
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// linkOf returns what users see of a link. It is called on the host's loop.
func linkOf(s *site.Site, k *lease.Kin) api.SiteLink {
	return api.SiteLink{
		Site: string(k.Site), Peer: s.SiteName(k.Site), Relation: k.Relation.String(), Standing: k.Standing.String(), Origin: k.Origin.String(),
		Reason: k.Reason.String(), Since: api.Instant(k.Since), Until: api.Instant(k.Until),
	}
}

// linkedSite returns the ID of the site that text names: one that is linked, also if the
// directory has forgotten it, or any other.
func (a *Server) linkedSite(ctx context.Context, text string) (found grid.SiteID, err error) {
	matches := 0
	err = a.host.Do(ctx, func(s *site.Site) {
		for _, k := range s.Links() {
			if l := linkOf(s, &k); l.Site == text || l.Peer == text {
				found = k.Site
				matches++
			}
		}
	})
	if err != nil || matches == 1 {
		return found, err
	}
	return a.siteNamed(ctx, text)
}

// changeLink returns what answers a request to change a link.
func (a *Server) changeLink(change site.LinkChange) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var request api.LinkRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		if request.Site == "" {
			return errorf(api.CodeUsage, "site: name the other site")
		}
		at, err := a.linkedSite(r.Context(), request.Site)
		if err != nil {
			return err
		}
		answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input {
			return &site.ChangeLink{Token: token, Change: change, Site: at}
		})
		if err != nil {
			return err
		}
		said := answer.(*site.LinkAnswer)
		if said.Err != nil {
			return said.Err
		}
		var reply api.LinkReply
		if err := a.host.Do(r.Context(), func(s *site.Site) { reply.Link = linkOf(s, &said.Link) }); err != nil {
			return err
		}
		return writeJSON(w, reply)
	}
}
