package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"gridnode/internal/corpus"
)

// write makes a journal of the given records and returns its path and offsets.
func write(t testing.TB, ahead int64, records ...string) (path string, offsets []int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal")
	j, err := Create(path, ahead)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		offset, err := j.Append([]byte(r))
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, offset)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	return path, offsets // left open, as after a crash: the zeros ahead stay
}

func read(t testing.TB, path string) ([]string, Tail) {
	t.Helper()
	var got []string
	tail, err := Read(path, func(_ int64, record []byte) error {
		got = append(got, string(record))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, tail
}

func TestRecordsComeBackInOrder(t *testing.T) {
	for _, ahead := range []int64{0, 64, 1 << 16} {
		want := []string{"one", "", string(make([]byte, 5000)), "four\x00\x00"}
		path, offsets := write(t, ahead, want...)
		got, tail := read(t, path)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("ahead %d: got %.80q, want %.80q", ahead, got, want)
		}
		if tail.Records != 4 || tail.Torn != 0 || tail.Damaged {
			t.Errorf("ahead %d: tail %+v, want 4 whole records and nothing else", ahead, tail)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for i, offset := range offsets {
			if r, err := ReadAt(file, offset); err != nil || string(r) != want[i] {
				t.Errorf("ahead %d: record at %d is %.20q, %v; want %.20q", ahead, offset, r, err, want[i])
			}
		}
		if _, err := ReadAt(file, offsets[1]+1); err == nil {
			t.Error("a record was found where none begins")
		}
	}
}

// A crash may leave any part of the last record.
func TestTornTailIsCutAtEveryByte(t *testing.T) {
	path, offsets := write(t, 0, "first record", "second record")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end := offsets[1]; end < int64(len(whole)); end++ {
		if err := os.WriteFile(path, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		j, tail, err := Open(path, 0, func(int64, []byte) error { return nil })
		if err != nil {
			t.Fatalf("cut at %d: %v", end, err)
		}
		if tail.Records != 1 || tail.Size != offsets[1] {
			t.Fatalf("cut at %d: tail %+v, want the first record only", end, tail)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != offsets[1] {
			t.Fatalf("cut at %d: a torn tail is left behind the first record: %d bytes, %v", end, info.Size(), err)
		}
		if _, err := j.Append([]byte("third")); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if got, tail := read(t, path); fmt.Sprint(got) != "[first record third]" || tail.Torn != 0 {
			t.Fatalf("cut at %d: then got %q, %+v", end, got, tail)
		}
	}
}

// A flipped bit is never read as a record, and is told from a torn tail by the
// whole records behind it.
func TestEveryFlippedBitIsSeen(t *testing.T) {
	records := []string{"first record", "second record", "third record that ends in nothing\x00\x00"}
	path, offsets := write(t, 256, records...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := offsets[2] + frameSize + int64(len(records[2]))
	for bit := range 8 * end {
		hurt := bytes.Clone(whole)
		hurt[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, hurt, 0o600); err != nil {
			t.Fatal(err)
		}
		first := 0 // the record the bit is in
		for first < 2 && bit/8 >= offsets[first+1] {
			first++
		}
		got, tail := read(t, path)
		if len(got) != first || tail.Damaged != (first < 2) || tail.Torn == 0 {
			t.Fatalf("bit %d of record %d: got %q, %+v", bit, first, got, tail)
		}
		if tail.Damaged && string(tail.Last) != records[2] {
			t.Fatalf("bit %d of record %d: last record %q", bit, first, tail.Last)
		}
		j, _, err := Open(path, 0, func(int64, []byte) error { return nil })
		if (err != nil) != tail.Damaged {
			t.Fatalf("bit %d: Open says %v with %+v", bit, err, tail)
		}
		if err == nil {
			j.Close()
		}
	}
}

// What a user put into his record must not be taken for a record behind damage.
func TestRecordInsideARecordIsNone(t *testing.T) {
	inner := appendFrame(nil, 0, []byte("forged"))
	path, offsets := write(t, 0, "first", "x"+string(inner)+"y")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, tail := read(t, path); tail.Damaged || tail.Size != offsets[1] {
		t.Errorf("a torn record with a forged one inside: %+v, want a torn tail at %d", tail, offsets[1])
	}
}

func TestErrorsAreTold(t *testing.T) {
	path, _ := write(t, 0, "one", "two")
	stop := errors.New("stop")
	if _, err := Read(path, func(int64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Read hid the caller's error: %v", err)
	}
	if _, _, err := Open(filepath.Join(t.TempDir(), "none"), 0, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening a missing journal: %v", err)
	}
	j, err := Create(filepath.Join(t.TempDir(), "journal"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(make([]byte, RecordMax+1)); err == nil {
		t.Error("an oversize record was taken")
	}
	if _, err := j.Append(make([]byte, RecordMax)); err != nil {
		t.Errorf("a record of the largest size was refused: %v", err)
	}
	j.file.Close() // any write fails from here on
	if _, err := j.Append([]byte("x")); err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("first failing append: %v", err)
	}
	if _, err := j.Append([]byte("x")); !errors.Is(err, ErrFailed) {
		t.Errorf("append after a failed one: %v, want ErrFailed", err)
	}
	if err := j.Sync(); err == nil {
		t.Error("Sync of a closed file succeeded")
	}
}

// allocated returns how many bytes of memory something takes.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestSizesBeyondTheFile: a broken place that claims records longer than what is left of the file makes nobody take the
// memory for them.
func TestSizesBeyondTheFile(t *testing.T) {
	var content []byte
	for range 100 {
		content = binary.LittleEndian.AppendUint32(content, mark)
		content = binary.LittleEndian.AppendUint32(content, RecordMax)
	}
	var tail Tail
	var err error
	taken := allocated(func() { tail, err = walk(io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))), nil) })
	if err != nil || tail.Records != 0 || tail.Torn == 0 {
		t.Errorf("%+v, %v of a journal that has no record", tail, err)
	}
	if taken > RecordMax/2 {
		t.Errorf("%d bytes of memory for a file of %d", taken, len(content))
	}
}

// Whatever bytes a file holds: no panic, records only where Append put them.
func FuzzRead(f *testing.F) {
	f.Add([]byte("gjl1"))
	f.Add(appendFrame(appendFrame(nil, 0, []byte("a")), 13, []byte("b")))
	corpus.Fuzz(f, func(t *testing.T, content []byte) {
		var rebuilt []byte
		tail, err := walk(io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))), func(offset int64, record []byte) error {
			rebuilt = appendFrame(rebuilt, offset, record)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(rebuilt, content[:tail.Size]) {
			t.Fatalf("records %x were read from %x", rebuilt, content)
		}
	})
}

// Any sequence of appends, reopenings and torn tails against a plain list.
func TestAgainstAList(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "journal")
		ahead := rapid.SampledFrom([]int64{0, 1, 100}).Draw(t, "ahead")
		j, err := Create(path, ahead)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // a crash, with part of a record behind the whole ones
				torn := appendFrame(nil, j.size, []byte("torn away"))
				torn = torn[:rapid.IntRange(0, len(torn)-1).Draw(t, "torn")]
				if _, err := j.file.WriteAt(torn, j.size); err != nil {
					t.Fatal(err)
				}
				j.file.Close()
				var got []string
				if j, _, err = Open(path, ahead, func(_ int64, r []byte) error {
					got = append(got, string(r))
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
					t.Fatalf("got %q, want %q", got, want)
				}
			default:
				r := rapid.StringN(0, 40, 200).Draw(t, "record")
				if _, err := j.Append([]byte(r)); err != nil {
					t.Fatal(err)
				}
				want = append(want, r)
			}
		}
		j.Close()
	})
}

func BenchmarkAppendSync(b *testing.B) {
	for _, ahead := range []int64{0, 1 << 20} {
		b.Run(fmt.Sprintf("ahead=%d", ahead), func(b *testing.B) {
			j, err := Create(filepath.Join(b.TempDir(), "journal"), ahead)
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			record := make([]byte, 650)
			for b.Loop() {
				if _, err := j.Append(record); err != nil {
					b.Fatal(err)
				}
				if err := j.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFrameIsAsEver: journals of earlier releases are read.
func TestFrameIsAsEver(t *testing.T) {
	const want = "676a6c31060000008381a4bb7265636f7264"
	if got := hex.EncodeToString(appendFrame(nil, 4096, []byte("record"))); got != want {
		t.Errorf("a frame is %s, was %s", got, want)
	}
}

// TestDamagedLengthTakesNoMemory: a length beyond all bounds is damage, whatever memory there is.
func TestDamagedLengthTakesNoMemory(t *testing.T) {
	path, offsets := write(t, 0, "first", "second")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const length = 1 << 30
	binary.LittleEndian.PutUint32(whole[offsets[1]+4:], length)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	var tail Tail
	taken := allocated(func() { got, tail = read(t, path) })
	if fmt.Sprint(got) != "[first]" || tail.Torn == 0 {
		t.Errorf("got %q, %+v", got, tail)
	}
	if taken > length/2 {
		t.Errorf("%d bytes were taken for a record that says it has %d", taken, length)
	}
}
