package site

import (
	"bytes"
	"errors"
	"fmt"
)

// saved returns which jobs of a site a restart would not find as they are, if its records are
// these.
func saved(s *Site, records map[string][]byte) (err error) {
	for id, e := range s.jobs.byID {
		record, ok := records[e.RecordKey()]
		if !ok {
			err = errors.Join(err, fmt.Errorf("job %v is %v, and has no record", id, e.state))
			continue
		}
		stored, bad := decodeEntry(record)
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		if kept, is := durable(*stored), durable(*e); !bytes.Equal(kept, is) {
			err = errors.Join(err, fmt.Errorf("job %v is %v, and its record does not say all of that:\n%q, not\n%q", id, e.state, kept, is))
		}
	}
	return err
}

// durable returns a job's record with what must be in it, and no more. Who runs tasks knows what
// has begun, a span is stored for when a job's last lease has ended, and why a job waits is seen
// again.
func durable(e entry) []byte {
	switch e.state {
	case Placing, Queued:
		e.reason, e.verdicts, e.state = "", nil, Placing
	case Running:
		if e.gone = min(e.gone, 1); !divided(e.job) && e.gang == nil {
			e.verdicts, e.reason, e.state = nil, "", Placing
		}
	}
	return e.AppendRecord(nil)
}
