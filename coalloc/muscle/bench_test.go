package muscle

import (
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// drawn is a batch of random jobs for clusters of 10, 14, 18, … processors, or of
// one width.
func drawn(seed uint64, jobs, clusters, width int) *Batch {
	rng := draws(seed)
	b := &Batch{}
	widest := 0
	for i := range clusters {
		m := width
		if m == 0 {
			m = 10 + 4*i
		}
		widest = max(widest, m)
		b.Clusters = append(b.Clusters, Cluster{Processors: m, Weights: titan.DefaultWeights})
	}
	for range jobs {
		span := grid.Time(5+rng.IntN(95)) * grid.Second
		j := Job{Processors: 1 + rng.IntN(widest), Deadline: span * grid.Time(1+rng.IntN(6))}
		for range clusters {
			j.Spans = append(j.Spans, span)
		}
		b.Jobs = append(b.Jobs, j)
	}
	return b
}

func BenchmarkPack(b *testing.B) {
	for _, size := range []struct{ jobs, clusters, width int }{{100, 4, 0}, {100, 10, 0}, {1000, 1, 1000}, {1000, 10, 1000}, {1000, 10, 64}} {
		b.Run(fmt.Sprintf("jobs=%d/clusters=%d/width=%d", size.jobs, size.clusters, size.width), func(b *testing.B) {
			batch := drawn(1, size.jobs, size.clusters, size.width)
			rng := draws(1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Pack(batch, Published, rng); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sizes := sizesOf(drawn(1, n, 1, n))
			b.ReportAllocs()
			for b.Loop() {
				NewTable(sizes, n)
			}
		})
	}
}
