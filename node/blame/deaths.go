// Package blame says whether a job may be what takes a machine down. A machine that dies
// takes all with it that runs there; only a job that was there each time is suspect.
package blame

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Bounds of what is remembered.
const (
	deathsMax = 4    // a job that is to blame is found out after so many at the latest
	jobsMax   = 4096 // of one death
	span      = 7 * grid.Day
)

// Together is within what executions whose loss is found vanished in one death.
const Together = 10 * grid.Second

// Deaths are the latest deaths of a machine, oldest first. The zero value is ready. It is a
// grid.Record.
type Deaths struct{ list []death }

// death is one of them.
type death struct {
	at   grid.Time
	jobs []grid.JobID // that vanished
}

// Vanished notes that the execution of a job has vanished, and reports whether that speaks
// against the job: it was there each time, and this death is not counted yet.
func (d *Deaths) Vanished(now grid.Time, job grid.JobID) bool {
	d.list = slices.DeleteFunc(d.list, func(x death) bool { return x.at.Add(span) <= now })
	last := len(d.list) - 1
	if last < 0 || d.list[last].at.Add(Together) <= now {
		if len(d.list) == deathsMax {
			d.list = slices.Delete(d.list, 0, 1)
		}
		d.list = append(d.list, death{at: now})
		last = len(d.list) - 1
	}
	if newest := &d.list[last]; slices.Contains(newest.jobs, job) {
		return false
	} else if len(newest.jobs) < jobsMax {
		newest.jobs = append(newest.jobs, job)
	}
	for i := range d.list[:last] {
		if !slices.Contains(d.list[i].jobs, job) {
			return false
		}
	}
	return true
}

// RecordKey is where the deaths are stored.
const RecordKey = "deaths/latest"

// RecordKey implements grid.Record.
func (d *Deaths) RecordKey() string { return RecordKey }

// AppendRecord implements grid.Record.
func (d *Deaths) AppendRecord(dst []byte) []byte {
	p := new(wirepb.Deaths)
	for _, x := range d.list {
		q := &wirepb.Death{At: int64(x.at)}
		for _, id := range x.jobs {
			b := id.Bytes()
			q.Jobs = append(q.Jobs, b[:])
		}
		p.Deaths = append(p.Deaths, q)
	}
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, p)
	if err != nil {
		panic(fmt.Sprintf("blame: record does not encode: %v", err))
	}
	return out
}

// Recover takes what was stored in the place of what is known.
func (d *Deaths) Recover(record []byte) error {
	var p wirepb.Deaths
	if err := proto.Unmarshal(record, &p); err != nil {
		return err
	}
	d.list = nil
	for _, q := range p.Deaths {
		x := death{at: grid.Time(q.At)}
		for _, b := range q.Jobs {
			id, err := grid.JobIDFromBytes(b)
			if err != nil {
				return fmt.Errorf("death at %d: %w", q.At, err)
			}
			x.jobs = append(x.jobs, id)
		}
		d.list = append(d.list, x)
	}
	return nil
}
