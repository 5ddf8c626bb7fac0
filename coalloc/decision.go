package coalloc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"gridnode/grid"
	"gridnode/lease"
)

// RecordPrefix begins the keys of a Coordinator's records.
const RecordPrefix = "coalloc/"

// decision is an attempt as it is saved: from the decision to claim until the job is
// over.
type decision attempt

// RecordKey implements grid.Record.
func (d *decision) RecordKey() string { return RecordPrefix + d.task.Job.String() }

const decisionVersion = 1

// AppendRecord implements grid.Record: version, job, epoch, whether it has started,
// then component, processors, site and lease of each part.
func (d *decision) AppendRecord(dst []byte) []byte {
	id := d.task.Job.Bytes()
	dst = append(append(dst, decisionVersion), id[:]...)
	dst = binary.AppendUvarint(dst, uint64(d.task.Epoch))
	dst = append(dst, byte(btoi(d.phase == phaseStarted)))
	dst = binary.AppendUvarint(dst, uint64(len(d.parts)))
	text := func(s grid.SiteID) {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	for i := range d.parts {
		p := &d.parts[i]
		dst = binary.AppendUvarint(dst, uint64(p.Component))
		dst = binary.AppendUvarint(dst, uint64(p.Processors))
		text(p.Site)
		text(p.Lease.Borrower)
		dst = binary.AppendUvarint(dst, p.Lease.Number)
	}
	return dst
}

var errDecision = errors.New("not a decision to co-allocate")

// decodeDecision is the inverse of AppendRecord.
func decodeDecision(b []byte) (*attempt, error) {
	bad := false
	number := func(most uint64) uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	text := func() grid.SiteID {
		n := int(number(128))
		if n == 0 || n > len(b) {
			bad, b = true, nil
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return grid.SiteID(s)
	}
	if len(b) < 17 || b[0] != decisionVersion {
		return nil, errDecision
	}
	job, _ := grid.JobIDFromBytes(b[1:17])
	b = b[17:]
	a := &attempt{task: grid.TaskID{Job: job, Epoch: uint32(number(1<<32 - 1))}, phase: phaseClaiming}
	if number(1) == 1 {
		a.phase = phaseStarted
	}
	for range number(ComponentsMax) {
		var p partState
		p.Component, p.Processors = int32(number(ComponentsMax-1)), int64(number(ProcessorsMax))
		p.Site = text()
		p.Lease = lease.ID{Borrower: text(), Number: number(1<<64 - 1)}
		a.parts = append(a.parts, p)
		if bad {
			break
		}
	}
	if bad || len(b) != 0 || len(a.parts) == 0 {
		return nil, errDecision
	}
	return a, nil
}

// Recover takes up what was decided before a crash; records of other kinds are passed
// over. It comes before the book's own Recover, whose locals then say which claims
// are confirmed and which leases are over. Start comes Again for every job that has
// started. Jobs without a decision are not known any more: the owner submits those it
// has saved and that Knows does not report.
func (c *Coordinator) Recover(records iter.Seq2[string, []byte], out *grid.Outbox) error {
	for key, value := range records {
		if !strings.HasPrefix(key, RecordPrefix) {
			continue
		}
		a, err := decodeDecision(value)
		if err != nil {
			return fmt.Errorf("recover %s: %w", key, err)
		}
		for i := range a.parts {
			c.byLease[a.parts[i].Lease] = a
		}
		c.jobs[a.task.Job] = a
		if a.phase == phaseStarted {
			out.Local(a.start(true))
		}
	}
	return nil
}
