package guest

import (
	"encoding/json"
	"fmt"

	"gridnode/grid"
)

// HoldPrefix begins the keys of stored holds.
const HoldPrefix = "hold/"

// Hold keeps a job of another site, which waits here, from being started.
type Hold struct {
	Task  grid.TaskID
	Until grid.Time // when the site gives it back, if it is not released before
}

// holdRecord is the stored form.
type holdRecord struct {
	Job   string    `json:"job"`
	Epoch uint32    `json:"epoch"`
	Until grid.Time `json:"until"`
}

// RecordKey implements grid.Record.
func (h *Hold) RecordKey() string { return HoldPrefix + h.Task.Job.String() }

// AppendRecord implements grid.Record.
func (h *Hold) AppendRecord(dst []byte) []byte {
	text, err := json.Marshal(holdRecord{h.Task.Job.String(), h.Task.Epoch, h.Until})
	if err != nil {
		panic(fmt.Sprintf("guest: hold of %v does not encode: %v", h.Task, err))
	}
	return append(dst, text...)
}

func openHold(value []byte) (*Hold, error) {
	var r holdRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	id, err := grid.ParseJobID(r.Job)
	if err != nil {
		return nil, err
	}
	return &Hold{grid.TaskID{Job: id, Epoch: r.Epoch}, r.Until}, nil
}
