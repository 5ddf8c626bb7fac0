package coalloc

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// Home is the Leases of a coordinator whose own site runs components, too. What it
// asks of other sites goes to the book. Components at home are held and claimed on the
// site's own cluster as if they were leases that the site has of itself: so they count
// in the same sum, and the coordinator knows no difference.
//
// What it tells are locals of package lease, of leases for which Own is true. Such a
// lease ends by itself only while it is held; released after it was claimed, its
// processors come back when its owner says that nothing runs there any more (Vacated).
//
// It reads no clock and does no I/O. Not safe for concurrent use.
type Home struct {
	site    grid.SiteID
	cluster *lrms.Cluster
	book    Leases
	entries map[lease.ID]*homeLease
	alarms  grid.Alarms[*homeLease]
	numbers lease.Numbers
	seed    uint64
}

type homeLease struct {
	lease.Lease
	hold  grid.Time
	alarm grid.Alarm[*homeLease]
}

// HomePrefix begins the keys of the records of a Home.
const HomePrefix = "coalloc-home/"

// homeMark tells numbers of leases at home from those of the book, which follow the
// clock and do not come that far.
const homeMark = 1 << 63

// NewHome returns a Home without leases. The seed is another one at each start, as lease.Config.Seed.
func NewHome(site grid.SiteID, cluster *lrms.Cluster, book Leases, seed uint64) *Home {
	return &Home{site: site, cluster: cluster, book: book, seed: seed, entries: make(map[lease.ID]*homeLease)}
}

// Own reports whether a lease is one of a site of itself.
func Own(id lease.ID) bool { return id.Number >= homeMark }

// HomeTask names the task as which the processors of a lease at home are counted in
// lrms. No job is called so: epochs of jobs begin at 1.
func HomeTask(id lease.ID) grid.TaskID {
	const mark = 0x686f6d65 // "home"
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: id.Number}}
}

// Request implements Leases. At home it is granted at once, for as long as
// lease.Want.Hold says, or refused.
func (h *Home) Request(now grid.Time, lender grid.SiteID, w lease.Want, out *grid.Outbox) (lease.ID, error) {
	if lender != h.site {
		return h.book.Request(now, lender, w, out)
	}
	if w.Processors < 1 || w.Span < 1 || w.Span > lease.SpanLimit || w.Hold < 1 || w.Hold > lease.HoldLimit {
		return lease.ID{}, fmt.Errorf("ask %s, which is home, for %d processors for %v: %w", lender, w.Processors, w.Span, lease.ErrBounds)
	}
	e := &homeLease{hold: w.Hold, Lease: lease.Lease{
		ID: lease.ID{Borrower: h.site, Number: homeMark | h.numbers.Next(now)}, Lender: h.site, Processors: w.Processors, State: lease.Held,
		Since: now, End: now + w.Hold, Span: w.Span, Subject: w.Subject, Sink: h.site,
	}}
	e.alarm.Owner = e
	err := h.cluster.Lend(now, lrms.Request{ID: HomeTask(e.ID), Processors: w.Processors, Estimate: min(w.Hold+w.Span, grid.SpanMax)})
	if err != nil {
		why := lease.Busy
		if w.Processors > h.cluster.Processors() {
			why = lease.TooWide
		}
		out.Local(&lease.Refused{Lease: e.Lease, Reason: why, Free: h.cluster.Idle(now)})
		return e.ID, nil
	}
	h.entries[e.ID] = e
	h.alarms.Set(&e.alarm, e.End)
	out.Local(&lease.Granted{Lease: e.Lease})
	return e.ID, nil
}

// Claim implements Leases.
func (h *Home) Claim(now grid.Time, id lease.ID, out *grid.Outbox) error {
	if !Own(id) {
		return h.book.Claim(now, id, out)
	}
	e := h.entries[id]
	if e == nil || e.State == lease.Ending {
		return fmt.Errorf("claim what is held at home as %d: %w", id.Number, lease.ErrUnknown)
	}
	if e.State == lease.Held {
		e.State, e.End, e.Limit = lease.Active, grid.Never, now+e.Span
		h.alarms.Stop(&e.alarm)
		h.cluster.Extend(now, HomeTask(id), e.Limit)
		out.Save((*homeRecord)(e))
		out.Local(&lease.Claimed{Lease: e.Lease})
	}
	return nil
}

// Release implements Leases.
func (h *Home) Release(now grid.Time, id lease.ID, out *grid.Outbox) error {
	if !Own(id) {
		return h.book.Release(now, id, out)
	}
	e := h.entries[id]
	switch {
	case e == nil:
		return fmt.Errorf("release what is held at home as %d: %w", id.Number, lease.ErrUnknown)
	case e.State == lease.Held:
		h.free(now, e)
	case e.State == lease.Active:
		e.State = lease.Ending
		out.Save((*homeRecord)(e))
	}
	return nil
}

// Gone implements Leases. What runs at home its owner ends by itself.
func (h *Home) Gone(id lease.ID) grid.Time {
	if Own(id) {
		return 0
	}
	return h.book.Gone(id)
}

// Vacated says that nothing of a job runs at home any more: what it has released is
// the site's again.
func (h *Home) Vacated(now grid.Time, job grid.JobID, out *grid.Outbox) {
	for _, l := range h.Leases() {
		if e := h.entries[l.ID]; l.Subject == job && l.State == lease.Ending {
			out.Delete((*homeRecord)(e))
			h.free(now, e)
		}
	}
}

// free gives processors back to the cluster.
func (h *Home) free(now grid.Time, e *homeLease) {
	h.alarms.Stop(&e.alarm)
	delete(h.entries, e.ID)
	if !h.cluster.Ended(now, HomeTask(e.ID)) {
		panic(fmt.Sprintf("coalloc: %s holds %d processors for components that its cluster does not know of: %+v", h.site, e.Processors, e.Lease))
	}
}

// Tick ends the holds that are due.
func (h *Home) Tick(now grid.Time, out *grid.Outbox) {
	for a := h.alarms.Pop(now); a != nil; a = h.alarms.Pop(now) {
		h.free(now, a.Owner)
		out.Local(&lease.Ended{Lease: a.Owner.Lease, Cause: lease.Unheld, Gone: now})
	}
}

// NextTimer returns when Tick has something to do.
func (h *Home) NextTimer() grid.Time { return h.alarms.Next() }

// Leases returns what is held or claimed at home, in order of the numbers.
func (h *Home) Leases() []lease.Lease {
	all := make([]lease.Lease, 0, len(h.entries))
	for _, e := range h.entries {
		all = append(all, e.Lease)
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Each yields what Leases returns, in no particular order, and allocates nothing. What it
// yields must not be changed. Of a nil Home it yields nothing.
func (h *Home) Each(yield func(*lease.Lease) bool) {
	if h == nil {
		return
	}
	for _, e := range h.entries {
		if !yield(&e.Lease) {
			return
		}
	}
}

// homeRecord is the stored form of what is claimed at home.
type homeRecord homeLease

// Records yields what is claimed at home as it is to be saved, in no particular order. Of a nil Home
// it yields nothing.
func (h *Home) Records(yield func(grid.Record) bool) {
	if h == nil {
		return
	}
	for _, e := range h.entries {
		if e.State != lease.Held && !yield((*homeRecord)(e)) {
			return
		}
	}
}

// RecordKey implements grid.Record.
func (r *homeRecord) RecordKey() string { return HomePrefix + strconv.FormatUint(r.Number, 10) }

const homeVersion = 1

// AppendRecord implements grid.Record: version, job, number, processors, limit, state.
func (r *homeRecord) AppendRecord(dst []byte) []byte {
	id := r.Subject.Bytes()
	dst = append(append(dst, homeVersion), id[:]...)
	for _, v := range [...]uint64{r.Number, uint64(r.Processors), uint64(r.Limit), uint64(r.State)} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

var errHome = errors.New("not a claim of a component at home")

func decodeHome(site grid.SiteID, b []byte) (*homeLease, error) {
	if len(b) < 17 || b[0] != homeVersion {
		return nil, errHome
	}
	job, _ := grid.JobIDFromBytes(b[1:17])
	var v [4]uint64
	b = b[17:]
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return nil, errHome
		}
		b = b[n:]
	}
	state := lease.State(v[3])
	if len(b) > 0 || v[0] < homeMark || v[1] < 1 || v[1] > ProcessorsMax || v[2] > uint64(grid.Never/2) || state != lease.Active && state != lease.Ending {
		return nil, errHome
	}
	e := &homeLease{Lease: lease.Lease{
		ID: lease.ID{Borrower: site, Number: v[0]}, Lender: site, Processors: int64(v[1]), State: state,
		End: grid.Never, Limit: grid.Time(v[2]), Subject: job, Sink: site,
	}}
	e.alarm.Owner = e
	return e, nil
}

// Recover takes up what was claimed before a crash; records of other kinds are passed
// over. The cluster must be empty but for tasks that run on its own processors. Claimed
// comes for each, or Ended if the site has fewer processors than it had. It is called
// after Coordinator.Recover.
func (h *Home) Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error {
	h.numbers.Restart(h.seed)
	for key, value := range records {
		if !strings.HasPrefix(key, HomePrefix) {
			continue
		}
		e, err := decodeHome(h.site, value)
		if err != nil {
			return fmt.Errorf("recover %s: %w", key, err)
		}
		h.numbers.Used(e.ID.Number &^ homeMark)
		request := lrms.Request{ID: HomeTask(e.ID), Processors: e.Processors, Estimate: min(max(e.Limit-now, 1), grid.SpanMax)}
		if h.cluster.Adopt(now, request, now) != nil {
			out.Delete((*homeRecord)(e))
			out.Local(&lease.Ended{Lease: e.Lease, Cause: lease.Revoked, Gone: now})
			continue
		}
		h.entries[e.ID] = e
		if e.State == lease.Active {
			out.Local(&lease.Claimed{Lease: e.Lease})
		}
	}
	return nil
}
