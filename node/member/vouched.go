package member

import (
	"maps"
	"slices"

	"gridnode/grid"
)

// Bounds of what is known of members that were not met.
const (
	vouchedMax = 4096
	wantedMax  = 1024
	passedMax  = 6 << 10 // bytes of a proof that is kept for those who ask for it
)

// vouched are members of whom others have shown proofs. They are not connected: what is
// known of them serves to judge what others pass on, quotes and records.
type vouched struct {
	members map[grid.SiteID]*Member
	order   []grid.SiteID        // by when their proofs came
	wanted  map[grid.SiteID]bool // asked for
}

func newVouched() vouched {
	return vouched{members: make(map[grid.SiteID]*Member), wanted: make(map[grid.SiteID]bool)}
}

func (v *vouched) put(m *Member) {
	if v.members[m.Site] == nil {
		if len(v.order) >= vouchedMax {
			v.drop(v.order[0])
		}
		v.order = append(v.order, m.Site)
	}
	v.members[m.Site] = m
}

func (v *vouched) drop(site grid.SiteID) {
	if v.members[site] != nil {
		delete(v.members, site)
		v.order = slices.DeleteFunc(v.order, func(s grid.SiteID) bool { return s == site })
	}
}

// Known returns what the roots say of a site that was met, or of which another one has
// shown the proof; nil if it is no member as far as this site knows.
func (r *Roll) Known(site grid.SiteID, now grid.Time) *Member {
	m := r.members[site]
	if m == nil {
		m = r.vouched.members[site]
	}
	if m == nil || now >= m.Expires {
		return nil
	}
	return m
}

// Ask asks a member for the proofs of others, at most inquireMax. What it answers comes as
// an *Inform.
func (r *Roll) Ask(whom grid.SiteID, sites []grid.SiteID, out *grid.Outbox) {
	if len(r.vouched.wanted) >= wantedMax { // of answers that never came
		clear(r.vouched.wanted)
	}
	sites = sites[:min(len(sites), inquireMax)]
	for _, s := range sites {
		r.vouched.wanted[s] = true
	}
	out.Send(whom, &Inquire{slices.Clone(sites)})
}

// show answers who asks for proofs.
func (r *Roll) show(now grid.Time, to grid.SiteID, in *Inquire, out *grid.Outbox) {
	answer, size := &Inform{}, 0
	for _, site := range in.Sites[:min(len(in.Sites), inquireMax)] {
		m := r.Known(site, now)
		if m == nil || len(m.proof) == 0 || size+len(m.proof) > informMax {
			continue
		}
		size += len(m.proof)
		answer.Proofs = append(answer.Proofs, m.proof)
	}
	out.Send(to, answer)
}

// shown takes the proofs that were asked for. Each costs the checks of its signatures,
// once until it ends.
func (r *Roll) shown(now grid.Time, in *Inform) {
	for _, proof := range in.Proofs[:min(len(in.Proofs), inquireMax)] {
		site, err := proof.Site()
		if err != nil || !r.vouched.wanted[site] {
			continue
		}
		delete(r.vouched.wanted, site)
		if m, err := r.cfg.Federation.Verify(proof, site, now); err == nil && !r.revoked.Has(m) && r.members[site] == nil {
			r.vouched.put(m)
		}
	}
}

// disown takes out those whose certificates were revoked.
func (r *Roll) disown() {
	for _, site := range slices.Sorted(maps.Keys(r.vouched.members)) {
		if r.revoked.Has(r.vouched.members[site]) {
			r.vouched.drop(site)
			r.changed = append(r.changed, Change{Site: site})
		}
	}
}
