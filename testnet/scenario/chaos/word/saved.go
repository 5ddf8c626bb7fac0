package word

import (
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// speaks notes of which lease a site says something, be it to another site or to its user.
func (w *Watch) speaks(at int, id lease.ID) { w.spoken[at] = append(w.spoken[at], id) }

// answered takes what a site says of a lease to its user.
func (w *Watch) answered(_ grid.Time, at int, a grid.Answer) {
	if m, yes := a.Value.(*site.LeaseAnswer); yes && m.Err == nil && !w.Apart(at) {
		w.speaks(at, m.Lease.ID)
	}
}

// saved checks that a site which comes to rest has saved what it has said of leases, as it is: after a restart it
// would say another thing.
func (w *Watch) saved(at int) {
	if len(w.spoken[at]) == 0 {
		return // as after most turns
	}
	s, up := scenario.SiteAt(w.N, at)
	if up && site.CoresOf(s).Book != nil {
		for _, id := range w.spoken[at] {
			if err := lease.AuditRecord(site.CoresOf(s).Book, id, func(key string) []byte { return testnet.SavedRecord(w.N, at, key) }); err != nil {
				w.Checks.Violated("%s speaks of a lease that it has not saved as that: %w", w.N.ID(at), err)
			}
		}
	}
	w.spoken[at] = w.spoken[at][:0]
}
