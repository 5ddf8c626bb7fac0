package lease

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// RecordPrefix begins the keys of all records of a Book.
const RecordPrefix = "lease/"

// record is the stored form of an entry: what is granted, claimed or active.
type record entry

// RecordKey implements grid.Record. What is lent and what is borrowed differ in the
// borrower.
func (r *record) RecordKey() string {
	return RecordPrefix + string(r.Borrower) + "/" + strconv.FormatUint(r.Number, 10)
}

// AppendRecord implements grid.Record.
func (r *record) AppendRecord(dst []byte) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.LeaseRecord{
		Number: r.Number, Borrower: string(r.Borrower), Lender: string(r.Lender), Lent: r.Lent, Processors: r.Processors,
		State: uint32(r.State), Epoch: r.Epoch, Since: int64(r.Since), End: int64(r.End), Limit: int64(r.Limit), Span: int64(r.Span),
		Subject: wire.JobBytes(r.Subject), Sink: string(r.Sink), Source: string(r.Source), Key: r.Key, Hops: r.Hops, Via: r.Via,
		Sequence: r.sequence, Stamp: int64(r.stamp), Gone: int64(r.gone), GoneSpan: int64(r.goneSpan), Revoked: r.revoked,
		Bank: string(r.Bank), Price: int64(r.Price), Paid: r.Paid, Most: int64(r.Most), Hold: int64(r.hold), Cause: uint32(r.cause),
	})
	if err != nil {
		panic(fmt.Sprintf("lease: record %s: %v", r.RecordKey(), err)) // all strings were checked when they came in
	}
	return b
}

// decodeRecord is the inverse of AppendRecord. A record that this program did not
// write is an error.
func decodeRecord(value []byte) (*entry, error) {
	var p wirepb.LeaseRecord
	if err := proto.Unmarshal(value, &p); err != nil {
		return nil, err
	}
	id, err := grid.JobIDFromBytes(p.Subject)
	if err != nil {
		return nil, err
	}
	e := &entry{
		Lease: Lease{
			ID: ID{grid.SiteID(p.Borrower), p.Number}, Lender: grid.SiteID(p.Lender), Lent: p.Lent, Processors: p.Processors,
			State: State(p.State), Epoch: p.Epoch, Since: grid.Time(p.Since), End: grid.Time(p.End), Limit: grid.Time(p.Limit),
			Span: grid.Time(p.Span), Subject: id, Sink: grid.SiteID(p.Sink), Source: grid.SiteID(p.Source), Key: p.Key, Hops: p.Hops, Via: p.Via,
			Bank: grid.SiteID(p.Bank), Price: grid.Price(p.Price), Paid: p.Paid, Most: grid.Price(p.Most),
		},
		hold:     grid.Time(p.Hold),
		sequence: p.Sequence, stamp: grid.Time(p.Stamp), gone: grid.Time(p.Gone), goneSpan: grid.Time(p.GoneSpan), revoked: p.Revoked,
		cause: Cause(p.Cause),
	}
	var c check
	c.number(p.Number)
	c.site("borrower", p.Borrower)
	c.site("lender", p.Lender)
	c.Positive("epoch", p.Epoch)
	c.Within("processors", p.Processors, 1, ProcessorsMax)
	c.Within("state", int64(p.State), int64(Held), int64(Ending))
	for _, v := range []int64{p.Since, p.End, p.Limit, p.Span, p.Stamp, p.Gone, p.GoneSpan} {
		c.Within("instant", v, 0, int64(grid.Never/2))
	}
	c.Within("hold", p.Hold, 0, int64(HoldLimit))
	c.Within("cause", int64(p.Cause), 0, math.MaxUint8)
	c.price(p.Price)
	c.price(p.Most)
	if p.Lent && e.State == Claiming {
		c.Fail("lent lease that is being claimed")
	}
	return e, c.Err
}

// Recover takes up what was saved before a crash; records of other kinds are passed
// over. The cluster must be empty but for tasks that run on its own processors.
// What was lent is lent until the end that its borrower was told. What was borrowed
// goes on if its end has not passed: the owner gets Claimed for a lease whose claim is
// confirmed, then Recalled if it is not to be used any more, and Ended for one that is
// over by now. With Config.Drain it gets Ended once more for a lent one that was draining.
func (b *Book) Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error {
	b.numbers.Restart(b.cfg.Seed)
	b.epochs.Restart(b.cfg.Seed)
	var borrowed, lent []*entry
	for key, value := range records {
		if len(key) < len(RecordPrefix) || key[:len(RecordPrefix)] != RecordPrefix {
			continue
		}
		e, err := decodeRecord(value)
		if err != nil {
			return fmt.Errorf("recover %s: %w", key, err)
		}
		if e.Lent {
			lent = append(lent, e)
		} else {
			borrowed = append(borrowed, e)
		}
	}
	for _, e := range borrowed {
		b.insert(e)
		b.count(e, 1)
	}
	for _, e := range lent {
		b.recoverLent(now, e, out)
	}
	for _, e := range borrowed {
		b.recoverBorrowed(now, e, out)
	}
	return nil
}

// recoverLent takes up a lent lease.
func (b *Book) recoverLent(now grid.Time, e *entry, out *grid.Outbox) {
	in := b.inbound(e)
	switch {
	case e.Via != 0 && (in == nil || in.State != Active):
		b.lostLent(e, Broken, goneMax, out)
		return
	case in != nil:
		b.lendOn(in, e.ID)
	default:
		estimate := min(max(e.Limit-now, e.End-now, b.cfg.Term, 1), grid.SpanMax)
		if b.cluster.Adopt(now, lrms.Request{ID: TaskOf(e.Epoch), Processors: e.Processors, Estimate: estimate}, now) != nil {
			b.lostLent(e, Revoked, 0, out) // the site has fewer processors than it had
			return
		}
	}
	b.insert(e)
	b.count(e, 1)
	switch e.State {
	case Ending:
		out.Local(&Ended{Lease: e.Lease, Cause: e.cause})
		return
	case Held:
		if e.End-now > e.hold { // the clock was set back: when the hold ends nobody knows
			e.End = now
		}
		e.End = max(e.End, now+1)
		e.hold = max(e.hold, e.End-now)
	case Active:
		if e.recoverActive(now, b.cfg.Term) {
			b.revoke(now, e, out)
		}
	}
	b.alarms.Set(&e.alarm, e.End)
}

// recoverActive takes up a lease in use exactly as it was promised: its borrower counts on
// nothing of it being left after that, however often this site goes down meanwhile.
//
// No lease lasts for more than a term from its last renewal. If this one does, the clock was
// set back, and when it ends nobody here knows: it is not to be renewed any more. What keeps
// the site's own processors knows the end (Spare); of those that are lent on nothing does, so
// they go back now.
func (e *entry) recoverActive(now, term grid.Time) (setBack bool) {
	e.End = max(e.End, now)
	most := cmp.Or(e.goneSpan, term)
	if e.End-now <= most {
		return false
	}
	if e.End = now + most; e.Via != 0 {
		e.End = now
	}
	return true
}

// lostLent gives up a lent lease that cannot go on after a crash.
func (b *Book) lostLent(e *entry, cause Cause, gone grid.Time, out *grid.Outbox) {
	out.Delete((*record)(e))
	out.Send(e.Borrower, &Released{Number: e.Number, Epoch: e.Epoch, Cause: cause, Gone: gone})
	out.Local(&Ended{Lease: e.Lease, Cause: cause})
}

// Answers to renewals of before a crash must not be taken for answers to newer ones: sequenceJump is
// more than can have been sent since the last one was saved, and what two starts send that find the
// same saved lies somewhere in startsApart.
const (
	sequenceJump = 1 << 20
	startsApart  = 1 << 40
)

// recoverBorrowed takes up a borrowed lease.
func (b *Book) recoverBorrowed(now grid.Time, e *entry, out *grid.Outbox) {
	// The instants say nothing if the clock was set since, forward or back. What the lender has said
	// it has said before now, and no lease outlasts that.
	e.gone = now + b.cfg.longer(e.goneSpan)
	e.End = min(e.End, e.gone)
	if e.due = e.State == Held; e.due || e.End <= now { // held: it was not paid for yet
		b.end(now, e, Crashed, out)
		return
	}
	e.pause, e.retry = b.cfg.Retry, now+b.cfg.Retry
	e.sequence += sequenceJump + b.cfg.Seed%startsApart
	if e.State == Claiming {
		e.sent[e.sequence%sequencesKept] = now
		e.sendClaim(out)
	} else {
		if e.onward == (ID{}) {
			out.Local(&Claimed{e.Lease})
		}
		if e.revoked {
			b.recall(now, e, out)
		} else {
			e.sendRenew(now, out)
		}
	}
	b.armBorrower(e)
}

// isKept reports whether an entry is to be saved: what others count on, or this site's own owner.
func (e *entry) isKept() bool {
	switch e.State {
	case Held:
		return e.Lent || e.due
	case Claiming, Active:
		return true
	case Ending:
		return e.Lent
	}
	return false
}

// AuditRecords returns which lease is not saved as it is, given what is stored under the keys that
// begin with RecordPrefix; nil: each is, and nothing else. Numbers of renewals and instants are
// counted anew after a restart, and may be old.
func AuditRecords(b *Book, stored map[string][]byte) error {
	count := 0
	for _, e := range b.entries {
		if !e.isKept() {
			continue
		}
		count++
		if err := e.auditRecord(stored[(*record)(e).RecordKey()]); err != nil {
			return err
		}
	}
	if len(stored) > count {
		return fmt.Errorf("%d leases are to be saved, and %d are", count, len(stored))
	}
	return nil
}

// AuditRecord returns what AuditRecords says of one lease, or of what is stored of one that there is not.
func AuditRecord(b *Book, id ID, stored func(key string) []byte) error {
	e := b.entries[id]
	value := stored((*record)(&entry{Lease: Lease{ID: id}}).RecordKey())
	switch {
	case e != nil && e.isKept():
		return e.auditRecord(value)
	case value != nil:
		return fmt.Errorf("lease %d of %s is over, or was not granted yet, and is saved", id.Number, id.Borrower)
	}
	return nil
}

// auditRecord returns how a lease that is to be saved is not saved as it is.
func (e *entry) auditRecord(stored []byte) error {
	was, err := decodeRecord(stored)
	if err != nil {
		return fmt.Errorf("lease %d of %s by %s, %v, is not saved", e.Number, e.Borrower, e.Lender, e.State)
	}
	is := e.Lease
	is.TTL, is.Age, is.Within = 0, 0, 0 // of a request, which is over
	if is.End = was.End; is != was.Lease || e.revoked != was.revoked || e.cause != was.cause || e.goneSpan != was.goneSpan {
		return fmt.Errorf("lease %d of %s by %s is %+v, wanted back: %t (over: %v), and saved as %+v, wanted back: %t (%v)", e.Number, e.Borrower, e.Lender, e.Lease, e.revoked, e.cause, was.Lease, was.revoked, was.cause)
	}
	return nil
}
