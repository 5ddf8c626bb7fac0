package server

import (
	"cmp"
	"net/http"
	"slices"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/member"
	"gridnode/node/site"
)

// Spans of invitations.
const (
	invitationSpan    = grid.Day      // for which an invitation is good, if nothing is said
	certificateSpan   = 90 * grid.Day // and a certificate
	invitationSpanMax = 365 * grid.Day
)

func (a *Server) members(w http.ResponseWriter, r *http.Request) error {
	reply := api.MembersReply{Federation: a.cfg.Federation, Open: true, Members: []api.Member{}}
	card := a.host.Membership()
	if card == nil {
		return writeJSON(w, reply)
	}
	reply.Open = false
	var known []member.Member
	if err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, m := range s.Roll().Members() {
			known = append(known, *m)
		}
	}); err != nil {
		return err
	}
	if me, err := card.Federation.Verify(card.Proof, a.host.ID(), a.host.Now()); err == nil {
		known = append(known, *me)
	}
	for i := range known {
		m := memberOf(&known[i])
		m.Self = known[i].Site == a.host.ID()
		reply.Members = append(reply.Members, m)
	}
	slices.SortFunc(reply.Members, func(a, b api.Member) int { return cmp.Compare(a.Name, b.Name) })
	return writeJSON(w, reply)
}

func memberOf(m *member.Member) api.Member {
	return api.Member{
		Site: string(m.Site), Name: m.Name, Organisation: m.Org, Rights: m.Rights.String(), Issuer: m.Issuer,
		Issued: api.Instant(m.Issued), Expires: api.Instant(m.Expires),
	}
}

func (a *Server) invite(w http.ResponseWriter, r *http.Request) error {
	var request api.InviteRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	i := node.Invitation{
		Name: request.Name, Org: request.Organisation,
		Expires: grid.Time(cmp.Or(request.Expires, api.Seconds(invitationSpan))), Valid: grid.Time(cmp.Or(request.Valid, api.Seconds(certificateSpan))),
	}
	var err error
	if i.Rights, err = member.ParseRights(cmp.Or(request.Rights, "usual")); err != nil {
		return errorf(api.CodeUsage, "rights: %v", err)
	}
	for _, span := range []struct {
		key string
		of  grid.Time
	}{{"expires", i.Expires}, {"valid", i.Valid}} {
		if span.of < grid.Minute || span.of > invitationSpanMax {
			return errorf(api.CodeUsage, "%s: %v: want 1m to %v", span.key, span.of, invitationSpanMax)
		}
	}
	if i.Name != "" {
		if err := member.CheckName(i.Name); err != nil {
			return errorf(api.CodeUsage, "%v", err)
		}
	}
	if err := member.CheckOrg(i.Org); err != nil {
		return errorf(api.CodeUsage, "%v", err)
	}
	token, err := a.host.Invite(r.Context(), i)
	if err != nil {
		return err
	}
	return writeJSON(w, api.InviteReply{Token: token.String(), Expires: api.Instant(a.host.Now() + i.Expires)})
}

func (a *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	var request api.RevokeRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if request.Site == "" {
		return errorf(api.CodeUsage, "site: name the member")
	}
	id, err := a.host.Revoke(r.Context(), request.Site)
	if err != nil {
		return err
	}
	return writeJSON(w, api.RevokeReply{Site: string(id)})
}

func (a *Server) renew(w http.ResponseWriter, r *http.Request) error {
	until, err := a.host.Renew(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, api.RenewReply{Expires: api.Instant(until)})
}
