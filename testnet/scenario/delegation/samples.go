package delegation

import (
	"gridnode/grid"
	"gridnode/testnet/measure"
)

// Sample is what has happened until an instant.
type Sample struct {
	At        int64    `json:"at"` // seconds
	Submitted int64    `json:"submitted"`
	Started   int64    `json:"started"`
	Overhead  Overhead `json:"overhead"`
}

// Samples returns the samples of a run with Config.Sample, evenly
// spaced from the beginning on. The result must be one of Run's.
func Samples(r *measure.Result) []Sample {
	return r.Config.(*delegationReport).Samples
}

// sampled takes the samples that are due before what happens now is counted.
func (d *delegated) sampled() {
	if d.cfg.Sample == 0 {
		return
	}
	for every := grid.Time(d.cfg.Sample) * grid.Second; d.nextSample <= d.n.Now(); d.nextSample += every {
		s := Sample{At: int64(d.nextSample / grid.Second), Submitted: d.submissions, Started: d.starts, Overhead: d.overhead}
		if d.dmm() {
			s.Overhead.leases(measure.Sent(d.n).SentByName())
		}
		d.samples = append(d.samples, s)
	}
}
