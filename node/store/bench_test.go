package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A job's record is about this long in the store.
const jobSize = 600

func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, size := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("batch=%d,syncBadger=%v", size, sync), func(b *testing.B) {
				options := testOptions(b)
				options.SyncBadger = sync
				s, err := Open(filepath.Join(b.TempDir(), "store"), options)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				value := make([]byte, jobSize)
				var batch Batch
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					batch.Reset()
					for range size {
						batch.Set(fmt.Sprintf("job/%026d/1", n%20000), value)
						n++
					}
					if err := s.Commit(&batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// Recovery of a site with 100,000 jobs whose process was killed: Open and All.
func BenchmarkRecovery(b *testing.B) {
	for _, check := range []bool{false, true} {
		b.Run(fmt.Sprintf("check=%v", check), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "store")
			s := openTest(b, dir)
			value := make([]byte, jobSize)
			var batch Batch
			for i := range 100_000 {
				copy(value, fmt.Sprint(i))
				batch.Set(fmt.Sprintf("job/%026d/1", i), value)
				if batch.Len() == 100 {
					if err := s.Commit(&batch); err != nil {
						b.Fatal(err)
					}
					batch.Reset()
				}
			}
			left := crash(b, dir)
			closeTest(b, s)
			options := testOptions(b)
			if check {
				options.Check = checkCommand
			}
			for b.Loop() {
				b.StopTimer()
				if err := os.RemoveAll(dir); err != nil {
					b.Fatal(err)
				}
				if err := os.CopyFS(dir, os.DirFS(left)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				s, err := Open(dir, options)
				if err != nil {
					b.Fatal(err)
				}
				records, failed := s.All("job/")
				n := 0
				for range records {
					n++
				}
				if err := failed(); err != nil || n != 100_000 {
					b.Fatalf("%d jobs recovered, %v", n, err)
				}
				b.StopTimer()
				closeTest(b, s)
				b.StartTimer()
			}
		})
	}
}

func BenchmarkOpenSmall(b *testing.B) {
	for _, check := range []bool{false, true} {
		b.Run(fmt.Sprintf("check=%v", check), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "store")
			options := testOptions(b)
			if check {
				options.Check = checkCommand
			}
			for b.Loop() {
				s, err := Open(dir, options)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				closeTest(b, s)
				b.StartTimer()
			}
		})
	}
}
