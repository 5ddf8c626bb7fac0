package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/internal/grid"
)

// kolmogorovSmirnov returns the two-sample statistic and its asymptotic p-value.
// Both samples get sorted. For a discrete distribution the p-value is too large;
// see permutation.
func kolmogorovSmirnov(a, b []float64) (d, p float64) {
	slices.Sort(a)
	slices.Sort(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := min(a[i], b[j])
		for i < len(a) && a[i] <= x {
			i++
		}
		for j < len(b) && b[j] <= x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	root := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	lambda := (root + 0.12 + 0.11/root) * d
	if lambda < 0.2 {
		return d, 1
	}
	for k, sign := 1.0, 2.0; k < 100; k, sign = k+1, -sign {
		p += sign * math.Exp(-2*k*k*lambda*lambda)
	}
	return d, min(max(p, 0), 1)
}

type columnsOf struct{ runTimes, sizes, gaps []float64 }

func sample(t testing.TB, s Source, n int) (c columnsOf) {
	t.Helper()
	last := grid.Time(0)
	var job Job
	for range n {
		ok, err := s.Next(&job)
		if err != nil || !ok {
			t.Fatalf("job %d: ok=%v err=%v", len(c.sizes)+1, ok, err)
		}
		c.runTimes = append(c.runTimes, job.RunTime.Seconds())
		c.sizes = append(c.sizes, float64(job.Processors))
		c.gaps = append(c.gaps, (job.Submit - last).Seconds())
		last = job.Submit
	}
	return c
}

func TestKS(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		trace, err := OpenTrace("/work/shared/traces/lublin_256.swf.gz", Filter{NoEstimate: NoEstimateRunTime}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := sample(t, trace, 10000)
		g, err := NewGenerator(Lublin(256), rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			t.Fatal(err)
		}
		got := sample(t, g, 10000)
		d1, p1 := kolmogorovSmirnov(got.runTimes, want.runTimes)
		d2, p2 := kolmogorovSmirnov(got.sizes, want.sizes)
		d3, p3 := kolmogorovSmirnov(got.gaps, want.gaps)
		t.Logf("seed %d: run time D=%.4f p=%.3f; size D=%.4f p=%.3f; gap D=%.4f p=%.3f", seed, d1, p1, d2, p2, d3, p3)
	}
	m := Lublin(256)
	t.Logf("%+v", m.Means())
	m.SetSerial(0.95)
	t.Logf("serial .95 %+v", m.Means())
	m = LublinKinds(128)
	t.Logf("kinds %+v", m.Means())
}
