package workload

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gridnode/testnet/workload/tracestest"
)

// tracesDir returns where the real traces are, or skips the test.
func tracesDir(t testing.TB) string {
	t.Helper()
	dir := tracestest.Dir(t)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no traces: %v (set GRIDNODE_TRACES to their folder)", err)
	}
	return dir
}

func readTrace(t testing.TB, file string) (compressed, plain []byte) {
	t.Helper()
	compressed, err := os.ReadFile(filepath.Join(tracesDir(t), file))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return compressed, plain
}

// BenchmarkReader parses CTC SP2 (77222 jobs) from memory.
func BenchmarkReader(b *testing.B) {
	compressed, plain := readTrace(b, "CTC-SP2-1996-3.1-cln.swf.gz")
	for _, bb := range []struct {
		name string
		data []byte
	}{{"plain", plain}, {"gzip", compressed}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			records := 0
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(bb.data), "CTC", Options{})
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := r.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					records++
				}
			}
			b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
			b.SetBytes(int64(len(plain)))
		})
	}
}

// BenchmarkTrace makes jobs of CTC SP2.
func BenchmarkTrace(b *testing.B) {
	_, plain := readTrace(b, "CTC-SP2-1996-3.1-cln.swf.gz")
	b.ReportAllocs()
	jobs := 0
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(plain), "CTC", Options{})
		if err != nil {
			b.Fatal(err)
		}
		trace := NewTrace(r, Filter{Processors: 430})
		var job Job
		for {
			ok, err := trace.Next(&job)
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			jobs++
		}
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkGenerator draws jobs of the model.
func BenchmarkGenerator(b *testing.B) {
	g, err := NewGenerator(Lublin(256), Rand(1, 0))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var job Job
	for b.Loop() {
		if _, err := g.Next(&job); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkMerge merges the jobs of a thousand generators.
func BenchmarkMerge(b *testing.B) {
	sources := make([]Source, 1000)
	for i := range sources {
		g, err := NewGenerator(Lublin(64), Rand(1, i))
		if err != nil {
			b.Fatal(err)
		}
		sources[i] = g
	}
	m := NewMerge(sources...)
	b.ReportAllocs()
	var job Job
	for b.Loop() {
		if _, err := m.Next(&job); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
