package member

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
)

// auditLate is how late a timer may be.
const auditLate = grid.Minute

// Audit returns what is wrong with a roll that is at rest, between two Steps; nil: nothing is.
//
//   - A member is one whose certificate has neither ended nor been taken back, under a name that no
//     other one has, and is remembered as that for the time after it. To who is revoked nobody is one.
//   - An outcast is who was a member, and whose certificate was taken back, or ended a day ago; each
//     who is one was judged, or will be in time.
//   - Certificates that are taken back are those of the newest lists.
//   - An invitation was used by nobody, or by one site, under one name.
//   - As long as there is a member, one is told now and then what is revoked.
func (r *Roll) Audit(now grid.Time) error {
	return cmp.Or(r.auditMembers(now), r.auditMet(now), r.auditVouched(), r.auditInvited(), r.revoked.audit())
}

func (r *Roll) auditMembers(now grid.Time) error {
	if len(r.order) != len(r.members) || len(r.names) != len(r.members) || len(r.members) > membersMax {
		return fmt.Errorf("%d sites are members, %d are listed, under %d names, want at most %d", len(r.members), len(r.order), len(r.names), membersMax)
	}
	excluded := r.Excluded()
	for _, site := range r.order {
		m := r.members[site]
		switch k := r.met[site]; {
		case m == nil || m.Site != site:
			return fmt.Errorf("%s is listed as a member, and is none", site)
		case excluded:
			return fmt.Errorf("%s counts as a member, and this site is none any more", site)
		case r.names[m.Name] != site:
			return fmt.Errorf("member %s is called %s, which is the name of %q", site, m.Name, r.names[m.Name])
		case r.revoked.Has(m):
			return fmt.Errorf("%s is a member, and its certificate was taken back", m.Name)
		case m.Expires.Add(auditLate) < now || m.Expires < r.expiry:
			return fmt.Errorf("%s is a member until %v, and that is looked at at %v", m.Name, m.Expires, r.expiry)
		case k == nil && len(r.met) < membersMax:
			return fmt.Errorf("%s is a member, and will be forgotten", m.Name)
		case k != nil && (k.outcast || k.expires != m.Expires || !slices.Equal(k.chain, m.chain)):
			return fmt.Errorf("%s is a member until %v, and remembered as one until %v (outcast: %t)", m.Name, m.Expires, k.expires, k.outcast)
		}
	}
	if len(r.order) > 0 && (r.digest > now+DigestEvery || r.digest.Add(auditLate) < now) {
		return fmt.Errorf("the next member is told at %v what is revoked", r.digest)
	}
	return nil
}

func (r *Roll) auditMet(now grid.Time) error {
	if len(r.metOrder) != len(r.met) || len(r.met) > membersMax {
		return fmt.Errorf("%d sites were met, %d are listed, want at most %d", len(r.met), len(r.metOrder), membersMax)
	}
	excluded := r.Excluded()
	for _, site := range r.metOrder {
		k := r.met[site]
		if k == nil || k.site != site {
			return fmt.Errorf("%s is listed as one that was met, and is not", site)
		}
		if r.members[site] != nil {
			continue
		}
		due := k.expires.Add(outcastAfter)
		if excluded || r.revoked.hasAny(k.chain) {
			due = min(due, now)
		}
		switch {
		case k.outcast && due > now:
			return fmt.Errorf("%s is an outcast, and may be certified again until %v", site, due)
		case !k.outcast && (r.judged > due || due.Add(auditLate) < now):
			return fmt.Errorf("%s is an outcast from %v on, and that is looked at at %v", site, due, r.judged)
		}
	}
	return nil
}

func (r *Roll) auditVouched() error {
	v := &r.vouched
	if len(v.order) != len(v.members) || len(v.members) > vouchedMax || len(v.wanted) >= wantedMax+inquireMax {
		return fmt.Errorf("%d sites have been vouched for, %d are listed, and %d asked for", len(v.members), len(v.order), len(v.wanted))
	}
	for _, site := range v.order {
		switch m := v.members[site]; {
		case m == nil || m.Site != site:
			return fmt.Errorf("%s is listed as vouched for, and is not", site)
		case r.members[site] != nil:
			return fmt.Errorf("%s is a member that was met, and kept as one that was not", m.Name)
		case r.revoked.Has(m):
			return fmt.Errorf("%s is vouched for, and its certificate was taken back", m.Name)
		}
	}
	return nil
}

func (r *Roll) auditInvited() error {
	if len(r.invited) > invitationsMax {
		return fmt.Errorf("%d invitations, want at most %d", len(r.invited), invitationsMax)
	}
	took := make(map[string]grid.SiteID)
	for id, i := range r.invited {
		used, n := i.Site != "", len(i.Ends)
		switch {
		case i.ID != id || i.Rights.Has(MayInvite) || n != len(i.Serials) || n > renewalsMax:
			return fmt.Errorf("invitation %s is kept as %s, for %v, with %d certificates that end at %v", i.ID, id, i.Rights, len(i.Serials), i.Ends)
		case used != (i.Took != "") || used != (len(i.Certificate) > 0) || used != (n > 0):
			return fmt.Errorf("invitation %s was used by %q as %q, with %d certificates", id, i.Site, i.Took, n)
		case used && (i.Name != "" && i.Took != i.Name || i.Until != i.Ends[n-1]):
			return fmt.Errorf("invitation %s is for %q until %v, and was used as %q until %v", id, i.Name, i.Until, i.Took, i.Ends)
		case used && took[i.Took] != "" && took[i.Took] != i.Site:
			return fmt.Errorf("%s was certified as %q, and so was %s", i.Site, i.Took, took[i.Took])
		}
		took[i.Took] = i.Site
	}
	return nil
}

// audit returns which certificate counts as taken back by mistake, or does not.
func (r *Revoked) audit() error {
	all := make(map[revocation]bool)
	for issuer, l := range r.lists {
		if l.Issuer != issuer {
			return fmt.Errorf("a list of %x is kept as one of %x", l.Issuer, issuer)
		}
		for _, s := range l.serials {
			if all[revocation{l.scope(), s}] = true; !r.serials[revocation{l.scope(), s}] {
				return fmt.Errorf("certificate %x was taken back, and counts", s)
			}
		}
	}
	if len(all) != len(r.serials) {
		return fmt.Errorf("%d certificates were taken back, and %d do not count", len(all), len(r.serials))
	}
	return nil
}

// Records yields what a roll has to have saved, as it is.
func (r *Roll) Records(yield func(grid.Record) bool) {
	for _, l := range r.revoked.lists {
		if !yield((*listRecord)(l)) {
			return
		}
	}
	for _, k := range r.met {
		if !yield(k) {
			return
		}
	}
	for _, i := range r.invited {
		if !yield(i) {
			return
		}
	}
}
