package record

import (
	"slices"

	"gridnode/grid"
)

// Bounds of what a site holds for others.
const (
	heldMax    = 4096        // sites
	sweepPause = grid.Minute // between two looks for records that have expired, at least
)

// holder keeps records of sites whose IDs or names lie near this one in the DHT, and tells
// them to whoever asks.
type holder struct {
	cfg    *Config
	counts *Counts
	held   map[grid.SiteID]*Record
	claims map[string][]grid.SiteID // who claims a name, by ID
	sweep  grid.Time                // when what has expired is dropped; grid.Never while nothing is held
	swept  grid.Time                // when that was last; -1: never
}

// enter takes a record of a site, and says what it holds of it then.
func (h *holder) enter(now grid.Time, r *Record) (sequence uint64, refusal Refusal) {
	if !r.valid(now) {
		h.counts.Rejected++
		return 0, Void
	}
	old := h.held[r.Site]
	if old != nil && old.valid(now) && old.Sequence >= r.Sequence {
		if old.Sequence > r.Sequence {
			h.counts.Rejected++
			return old.Sequence, Outdated
		}
		return old.Sequence, Taken
	}
	if !h.room(now, r) {
		return 0, Full // what is held of the site lasts until it expires
	}
	if old != nil && old.Name != r.Name {
		h.disclaim(old)
	}
	if old == nil || old.Name != r.Name {
		h.claim(r)
	}
	h.held[r.Site] = r
	h.sweep = min(h.sweep, now+max(h.cfg.Lifetime/8, sweepPause))
	return r.Sequence, Taken
}

// room reports whether a site may enter, and claim a name. Who was first stays: a newcomer
// that displaced somebody would have a way to take a name from its site.
func (h *holder) room(now grid.Time, r *Record) bool {
	free := func() bool {
		named := h.claims[r.Name]
		return (h.held[r.Site] != nil || len(h.held) < heldMax) && (r.Name == "" || slices.Contains(named, r.Site) || len(named) < claimsMax)
	}
	if !free() && (h.swept < 0 || now-h.swept >= sweepPause) {
		h.drop(now)
	}
	return free()
}

func (h *holder) claim(r *Record) {
	if r.Name == "" {
		return
	}
	list := h.claims[r.Name]
	if i, found := slices.BinarySearch(list, r.Site); !found {
		h.claims[r.Name] = slices.Insert(list, i, r.Site)
	}
}

func (h *holder) disclaim(r *Record) {
	list := h.claims[r.Name]
	if i, found := slices.BinarySearch(list, r.Site); found {
		list = slices.Delete(list, i, i+1)
		if h.claims[r.Name] = list; len(list) == 0 {
			delete(h.claims, r.Name)
		}
	}
}

// drop forgets what has expired.
func (h *holder) drop(now grid.Time) {
	h.swept, h.sweep = now, grid.Never
	for site, r := range h.held { // the order means nothing
		if now >= r.Expires() {
			h.disclaim(r)
			delete(h.held, site)
		}
	}
	if len(h.held) > 0 {
		h.sweep = now + max(h.cfg.Lifetime/8, sweepPause)
	}
}

// about returns the records of those whom text names, by ID: the site of that ID, and at
// most claimsMax that claim the name.
func (h *holder) about(now grid.Time, text string) (list []*Record) {
	if r := h.held[grid.SiteID(text)]; r != nil && r.valid(now) {
		list = append(list, r)
	}
	for _, site := range h.claims[text] {
		if r := h.held[site]; r.valid(now) && string(site) != text {
			list = append(list, r)
		}
	}
	sortRecords(list)
	return list
}

// rivals returns who else claims the name of a record.
func (h *holder) rivals(now grid.Time, of *Record) (sites []grid.SiteID) {
	for _, site := range h.claims[of.Name] {
		if site != of.Site && h.held[site].valid(now) && len(sites) < claimsMax {
			sites = append(sites, site)
		}
	}
	return sites
}
