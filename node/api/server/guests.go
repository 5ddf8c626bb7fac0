package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/guest"
	"gridnode/node/member"
	"gridnode/node/site"
)

// lodge answers what is about other sites' jobs and leases here.
type lodge struct{ *Server }

func (a lodge) guests(w http.ResponseWriter, r *http.Request) error {
	reply := api.GuestsReply{Guests: []api.Guest{}, Bans: []api.GuestBan{}, Refused: map[string]int64{}, Refusals: []api.Refusals{}}
	now := a.host.Now()
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, v := range s.Guests() {
			reply.Guests = append(reply.Guests, guestOf(s, &v, now))
		}
		desk := s.GuestDesk()
		if desk == nil {
			return
		}
		for _, b := range desk.Bans() {
			reply.Bans = append(reply.Bans, guestBanOf(&b))
		}
		for cause, n := range desk.Refused() {
			if n > 0 {
				reply.Refused[guest.Cause(cause).String()] = n
			}
		}
		for _, n := range desk.Refusals() {
			reply.Refusals = append(reply.Refusals, api.Refusals{
				Site: string(n.Site), Name: s.SiteName(n.Site), Count: n.Count, Last: n.Last.String(), At: api.Instant(n.At),
			})
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// guestOf returns what users see of a guest. It is called on the host's loop.
func guestOf(s *site.Site, v *site.GuestView, now grid.Time) api.Guest {
	g := api.Guest{Site: string(v.Site), Name: s.SiteName(v.Site), Organisation: v.Org}
	since, until, runs := grid.Time(0), grid.Never, false
	if l := v.Lease; l != nil {
		g.Kind, g.ID, g.Processors, g.State, g.Price = "lease", strconv.FormatUint(l.Number, 10), l.Processors, l.State.String(), api.Amount(l.Price)
		since, until, runs = l.Since, max(l.Limit, l.End), true
	} else {
		j := v.Job
		g.Kind, g.ID, g.User, g.Job, g.Processors = "job", j.Job.ID.String(), j.Job.User, j.Job.Name, j.Job.Processors
		g.State, g.Price, g.Reason = j.State.String(), api.Amount(j.Award.Price), j.Reason
		since, until, runs = j.Start, j.Award.Until, j.Start > 0
	}
	if runs {
		g.Since, g.Used = api.Instant(since), api.Seconds(max(now-since, 0)*grid.Time(g.Processors))
	}
	if until != grid.Never {
		g.Until = api.Instant(until)
	}
	return g
}

func guestBanOf(b *guest.Ban) api.GuestBan {
	r := api.GuestBan{Since: api.Instant(b.Since), Reason: b.Reason}
	if b.Until != grid.Never {
		r.Until = api.Instant(b.Until)
	}
	if b.Partner.Scope == guest.Organisation {
		r.Organisation = b.Partner.Name
	} else {
		r.Site = b.Partner.Name
	}
	return r
}

// reasonMax bounds what an owner says about what it does with guests.
const reasonMax = 200

// request reads what is to become of whom. Partner is nil if jobs are named.
func (a lodge) request(r *http.Request) (request api.GuestsChange, partner *guest.Partner, err error) {
	if err = readJSON(r, &request); err != nil {
		return request, nil, err
	}
	named := 0
	for _, yes := range []bool{len(request.Jobs) > 0, request.Site != "", request.Organisation != ""} {
		if yes {
			named++
		}
	}
	switch {
	case named != 1:
		return request, nil, errorf(api.CodeUsage, "name jobs, or a site, or an organisation")
	case len(request.Reason) > reasonMax:
		return request, nil, errorf(api.CodeUsage, "reason: %d bytes, at most %d", len(request.Reason), reasonMax)
	case len(request.Jobs) > 0:
		return request, nil, nil
	case request.Organisation != "":
		if a.host.Membership() == nil {
			return request, nil, errorf(api.CodeUsage, "the federation is open: no site has a certificate that names an organisation")
		}
		if err := member.CheckOrg(request.Organisation); err != nil {
			return request, nil, errorf(api.CodeUsage, "%v", err)
		}
		return request, &guest.Partner{Scope: guest.Organisation, Name: request.Organisation}, nil
	}
	id, err := a.partner(r.Context(), request.Site)
	return request, &guest.Partner{Scope: guest.Site, Name: id}, err
}

// partner returns the site that an owner means: an ID stays one, and so does a name that
// certificates give. In an open federation names prove nothing: it is looked up whose it is.
func (a lodge) partner(ctx context.Context, text string) (string, error) {
	if _, err := peer.Decode(text); err == nil {
		return text, nil
	}
	if a.host.Membership() != nil {
		if err := member.CheckName(text); err != nil {
			return "", errorf(api.CodeUsage, "%v", err)
		}
		return text, nil
	}
	id, err := a.siteNamed(ctx, text)
	return string(id), err
}

// change ends, holds or releases guests.
func (a lodge) change(what site.GuestChange) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		request, partner, err := a.request(r)
		if err != nil {
			return err
		}
		change := site.ChangeGuests{Change: what, Partner: partner, Cause: "cancelled by the owner of the site where it ran"}
		if request.Reason != "" {
			change.Cause += ": " + request.Reason
		}
		ids := []grid.JobID{{}}
		if partner == nil {
			if ids, err = a.identify(r.Context(), request.Jobs); err != nil {
				return err
			}
		}
		var reply api.GuestsChanged
		for _, id := range ids {
			change.Job = id
			done, err := a.tell(r.Context(), func(token uint64) grid.Input {
				in := change
				in.Token = token
				return &in
			})
			if err != nil {
				return err
			}
			reply.Jobs += done.Jobs
			reply.Leases += done.Leases
		}
		return writeJSON(w, reply)
	}
}

// ban keeps a partner out, or lets it in again.
func (a lodge) ban(lift bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		request, partner, err := a.request(r)
		switch {
		case err != nil:
			return err
		case partner == nil:
			return errorf(api.CodeUsage, "jobs: a site or an organisation is banned, and no job")
		case request.Span < 0:
			return errorf(api.CodeUsage, "span: want more than 0")
		case !lift && partner.Name == string(a.host.ID()):
			return errorf(api.CodeUsage, "this is the site itself")
		}
		b := guest.Ban{Partner: *partner, Since: a.host.Now(), Until: grid.Never, Reason: request.Reason}
		if request.Span > 0 {
			b.Until = b.Since.Add(grid.Time(request.Span))
		}
		done, err := a.tell(r.Context(), func(token uint64) grid.Input { return &site.BanGuests{Token: token, Ban: b, Lift: lift} })
		if err != nil {
			return err
		}
		return writeJSON(w, api.GuestsChanged{Jobs: done.Jobs, Leases: done.Leases})
	}
}

// tell has the site change guests.
func (a lodge) tell(ctx context.Context, input func(token uint64) grid.Input) (*site.GuestsChanged, error) {
	answer, err := a.host.Ask(ctx, input)
	if err != nil {
		return nil, err
	}
	done := answer.(*site.GuestsChanged)
	return done, done.Err
}

// reload has the settings read again.
func (a lodge) reload(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.Reload == nil {
		return errorf(api.CodeRefused, "this daemon has no settings that it could read again")
	}
	changes, err := a.cfg.Reload(r.Context())
	if err != nil {
		return err
	}
	if changes == nil {
		changes = []api.SettingChange{}
	}
	return writeJSON(w, api.ReloadReply{Changes: changes})
}
