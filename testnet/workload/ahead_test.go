package workload

import (
	"errors"
	"slices"
	"testing"
)

// broken is a source that ends with an error.
type broken struct {
	Jobs
	err error
}

func (b *broken) Next(job *Job) (bool, error) {
	if ok, _ := b.Jobs.Next(job); ok {
		return true, nil
	}
	return false, b.err
}

// TestAhead: what comes of it is what the source gives, whatever its length, with the error
// in its place, and the same again after that.
func TestAhead(t *testing.T) {
	fault := errors.New("line 7 is malformed")
	for _, count := range []int{0, 1, aheadBatch - 1, aheadBatch, aheadBatch + 1, 3*aheadBatches*aheadBatch + 5} {
		for _, err := range []error{nil, fault} {
			jobs := make(Jobs, count)
			for i := range jobs {
				jobs[i] = Job{Number: int64(i + 1), User: "someone"}
			}
			given := slices.Clone(jobs)
			a := NewAhead(&broken{jobs, err})
			var got []Job
			var job Job
			for {
				ok, failed := a.Next(&job)
				if !ok {
					if failed != err {
						t.Errorf("%d jobs end with %v, want %v", count, failed, err)
					}
					break
				}
				got = append(got, job)
			}
			if !slices.Equal(got, given) {
				t.Errorf("%d jobs come of %d, or others", len(got), count)
			}
			if ok, failed := a.Next(&job); ok || failed != err {
				t.Errorf("after the end of %d jobs: %t, %v; want the same again", count, ok, failed)
			}
			a.Close()
		}
	}
}

// TestAheadClosed: the source is left alone once Close has returned.
func TestAheadClosed(t *testing.T) {
	for _, taken := range []int{0, 1, aheadBatch + 1} {
		g, err := NewGenerator(Lublin(16), Rand(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		counted := &counting{Source: g}
		a := NewAhead(counted)
		var job Job
		for range taken {
			if ok, err := a.Next(&job); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		a.Close()
		if n, most := counted.n, taken+(aheadBatches+1)*aheadBatch; n > most { // under the race detector: nobody else reads it
			t.Errorf("%d jobs were read while %d were taken, want at most %d", n, taken, most)
		}
		a.Close()
		for range (aheadBatches + 2) * aheadBatch {
			if ok, _ := a.Next(&job); !ok {
				return
			}
		}
		t.Error("a closed one goes on")
	}
}

type counting struct {
	Source
	n int
}

func (c *counting) Next(job *Job) (bool, error) {
	c.n++
	return c.Source.Next(job)
}
