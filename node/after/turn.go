package after

import (
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Turn is what has become of a job's terms so far. It is stored with the job.
type Turn struct {
	Held    bool   // its owner holds it
	Failed  []bool // of the terms' dependencies: a job has failed; nil: none has
	Met     bool   // what it waited for has come: it does not wait for that again
	Retries int32  // how often it was run again because it had failed
	Again   bool   // once its execution has ended it is run again
}

// TurnOf returns the turn of a job that was just submitted.
func TurnOf(j *grid.Job) Turn { return Turn{Held: j.Terms != nil && j.Terms.Held} }

// fail notes that a job on which dependency i is has failed. It reports whether that is news.
func (t *Turn) fail(i, of int) bool {
	if t.Failed == nil {
		t.Failed = make([]bool, of)
	}
	news := !t.Failed[i]
	t.Failed[i] = true
	return news
}

func (t *Turn) failed(i int) bool { return i < len(t.Failed) && t.Failed[i] }

// Proto returns the stored form of t, nil for the zero value.
func (t *Turn) Proto() *wirepb.Turn {
	if !t.Held && t.Failed == nil && !t.Met && t.Retries == 0 && !t.Again {
		return nil
	}
	p := &wirepb.Turn{Held: t.Held, Met: t.Met, Retries: t.Retries, Again: t.Again}
	for i, failed := range t.Failed {
		if failed {
			p.Failed = append(p.Failed, uint32(i))
		}
	}
	return p
}

// TurnFromProto is the inverse of Proto for a job.
func TurnFromProto(j *grid.Job, p *wirepb.Turn) Turn {
	if p == nil {
		return Turn{}
	}
	t := Turn{Held: p.Held, Met: p.Met, Retries: p.Retries, Again: p.Again}
	for _, i := range p.Failed {
		if j.Terms != nil && int(i) < len(j.Terms.After) {
			t.fail(int(i), len(j.Terms.After))
		}
	}
	return t
}
