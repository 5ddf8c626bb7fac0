package member

import (
	"testing"

	"gridnode/grid"
)

// TestAudit: what a roll has that it should not, or would not look at in time, is found.
func TestAudit(t *testing.T) {
	w := newTown(t, "beta", "gamma", "delta")
	beta, gamma, delta := w.members["beta"].Site, w.members["gamma"].Site, w.members["delta"].Site
	list := w.revoked(nil, "delta")
	for _, tt := range []struct {
		name  string
		spoil func(r *Roll)
		wrong bool
	}{
		{"nothing", func(*Roll) {}, false},
		{"a member that is not listed", func(r *Roll) { r.order = r.order[1:] }, true},
		{"one that is listed twice", func(r *Roll) { r.order[1] = r.order[0]; delete(r.members, gamma) }, true},
		{"a name of nobody", func(r *Roll) { r.names["epsilon"] = beta }, true},
		{"two under one name", func(r *Roll) { r.members[gamma].Name = "beta" }, true},
		{"a member that was revoked", func(r *Roll) {
			r.met[delta].outcast = false
			r.members[delta], r.names["delta"], r.order = w.members["delta"], delta, append(r.order, delta)
		}, true},
		{"one whose certificate has ended", func(r *Roll) { r.members[beta].Expires = start - auditLate - 1 }, true},
		{"one whose end nobody looks at", func(r *Roll) { r.expiry = grid.Never }, true},
		{"one that is an outcast", func(r *Roll) { r.met[beta].outcast = true }, true},
		{"one that is remembered for less long", func(r *Roll) { r.met[beta].expires-- }, true},
		{"one that will be forgotten", func(r *Roll) { delete(r.met, beta); r.metOrder = r.metOrder[1:] }, true},
		{"members of one that is revoked", func(r *Roll) { r.cfg.Own = w.members["delta"] }, true},
		{"nobody is told", func(r *Roll) { r.digest = grid.Never }, true},
		{"nobody was told in time", func(r *Roll) { r.digest = start - auditLate - 1 }, true},
		{"one that was met and is not listed", func(r *Roll) { r.metOrder = r.metOrder[1:] }, true},
		{"one that was revoked is no outcast", func(r *Roll) { r.met[delta].outcast, r.judged = false, grid.Never }, true},
		{"one that is judged at once", func(r *Roll) { r.met[delta].outcast, r.judged = false, 0 }, false},
		{"an outcast before its time", func(r *Roll) { r.revoked = NewRevoked() }, true},
		{"one that is vouched for", func(r *Roll) { r.vouched.put(&Member{Site: "x"}) }, false},
		{"a member that is vouched for", func(r *Roll) { r.vouched.put(r.members[beta]) }, true},
		{"an outcast that is", func(r *Roll) { r.vouched.put(w.members["delta"]) }, true},
		{"one that is not listed", func(r *Roll) { r.vouched.members["x"] = &Member{Site: "x"} }, true},
		{"a certificate that counts as taken back", func(r *Roll) { r.revoked.serials[revocation{serial: Serial{1}}] = true }, true},
		{"one that does not", func(r *Roll) { clear(r.revoked.serials); r.met[delta].outcast, r.judged = false, start+grid.Day }, true},
		{"an invitation", func(r *Roll) { r.invited[InvitationID{1}] = &Invitation{ID: InvitationID{1}} }, false},
		{"one that may invite", func(r *Roll) { r.invited[InvitationID{1}] = &Invitation{ID: InvitationID{1}, Rights: All} }, true},
		{"one that was used by nobody", func(r *Roll) { r.invited[InvitationID{1}] = &Invitation{ID: InvitationID{1}, Took: "x"} }, true},
		{"one that ends at another time", func(r *Roll) {
			i := used(1, "x")
			i.Until++
			r.invited[i.ID] = i
		}, true},
		{"two for one name", func(r *Roll) {
			for _, i := range []*Invitation{used(1, "x"), used(2, "y")} {
				r.invited[i.ID] = i
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
			for _, name := range []string{"beta", "gamma", "delta"} {
				m := *w.members[name]
				o.step(start, &Introduce{Member: &m})
			}
			o.step(start, &Learn{List: list})
			tt.spoil(o.roll)
			if err := o.roll.Audit(start); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// used returns an invitation that a site has used to be called epsilon.
func used(number byte, site grid.SiteID) *Invitation {
	return &Invitation{
		ID: InvitationID{number}, Site: site, Took: "epsilon", Certificate: []byte{1}, Serials: []Serial{{number}}, Ends: []grid.Time{start}, Until: start,
	}
}
