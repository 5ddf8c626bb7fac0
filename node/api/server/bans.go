package server

import (
	"net/http"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/p2p/allowance"
	"gridnode/node/site"
)

// watch serves what is about peers that are banned.
type watch struct{ *Server }

// list returns the bans under way, with the names of sites.
func (a watch) list(r *http.Request) ([]api.Ban, error) {
	bans := a.host.Warden().Bans()
	list := make([]api.Ban, len(bans))
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for i := range bans {
			list[i] = banOf(&bans[i])
			if q, known := s.Known(grid.SiteID(bans[i].Peer)); known {
				list[i].Name = q.Name
			}
		}
	})
	return list, err
}

func banOf(b *allowance.Ban) api.Ban {
	return api.Ban{Peer: b.Peer, Address: b.Address, Until: api.InstantOf(b.Until), Why: b.Why, Times: b.Times, Refused: b.Refused}
}

func (a watch) bans(w http.ResponseWriter, r *http.Request) error {
	list, err := a.list(r)
	if err != nil {
		return err
	}
	return writeJSON(w, api.BansReply{Bans: list})
}

func (a watch) unban(w http.ResponseWriter, r *http.Request) error {
	var request api.UnbanRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	what := strings.TrimPrefix(request.Peer, "…")
	if what == "" {
		return errorf(api.CodeUsage, "peer: name a peer or an address that is banned")
	}
	list, err := a.list(r)
	if err != nil {
		return err
	}
	var meant []api.Ban
	for _, b := range list {
		address := b.Peer == "" && b.Address == what
		if address || b.Peer != "" && (b.Name == what || strings.HasSuffix(b.Peer, what)) {
			meant = append(meant, b)
		}
	}
	switch {
	case len(meant) > 1:
		return errorf(api.CodeUsage, "%q stands for %d banned peers: give the whole ID", what, len(meant))
	case len(meant) == 0:
		return errorf(api.CodeNotFound, "no peer or address %q is banned; see 'gridnode peers --banned'", what)
	}
	b := meant[0]
	if b.Peer != "" {
		a.host.Warden().Unban(b.Peer)
	} else {
		a.host.Warden().Unban(b.Address)
	}
	a.cfg.Logger.Info("a ban was lifted", "peer", b.Peer, "addr", b.Address, "by", userOf(r.Context()), "left", time.Until(b.Until.Time()))
	return writeJSON(w, api.UnbanReply{Ban: b})
}
