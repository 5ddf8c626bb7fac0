package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/corpus"
)

const swfSample = `; Version: 2.2
; Computer: IBM SP2
; Information: http://example.org/
;              http://example.org/labs/
; UnixStartTime: 835823160
; MaxNodes: 338 (batch partition; 512 total)
; MaxProcs: 338
; Note: THIS IS A CLEANED VERSION OF THE LOG!
; Note: uses the EASY scheduler
; Acknowledge: Dan and Steve
;
    1        0 588530    937  306 142.00    -1   -1  35100    -1  1  97  -1 307  3 -1 -1 -1
    2   164472 356587     75   17   2.5     512   8    300  1024  1  81   4 195  3  2  1 60
; a note in the middle
    3   164472     -1     -1   -1     -1    -1   -1     -1    -1 -1  -1  -1  -1 -1 -1 -1 -1
`

const gwfSample = `# Version: 1.0
# Computer: DAS-2
# MaxProcs: 400
1 1119277025.25 4 3600 8 3599.5 10240 8 7200 20480 1 U12 G0 app7 batch P1 fs0 fs1 UNITARY -1 12.75 3 -1 -1 -1 -1 -1 VO1 -1
2 1119277025 -1 60 1 -1 -1 -1 -1 -1 0 U3 G0 -1 batch -1 fs0 fs0 BoT BOT:17,3 -1 -1 mem=1,disk=2 linux -1 -1 -1 VO1 proj
3 1119277030 -1 60 1 -1 -1 -1 -1 -1 0 U12 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
`

// readAll reads every record of text.
func readAll(t testing.TB, text string, o Options) ([]Record, *Reader, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "test.swf", o)
	if err != nil {
		return nil, nil, err
	}
	var records []Record
	for {
		record, err := r.Next()
		if err == io.EOF {
			return records, r, nil
		}
		if err != nil {
			if _, again := r.Next(); again != err {
				t.Errorf("Next after %v returned %v, want the same again", err, again)
			}
			return records, r, err
		}
		records = append(records, record)
	}
}

func compressed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSWF(t *testing.T) {
	unknown := Record{
		Submit: Unknown, Wait: Unknown, RunTime: Unknown, Processors: Unknown, CPUTime: Unknown, Memory: Unknown,
		ProcessorsRequested: Unknown, TimeRequested: Unknown, MemoryRequested: Unknown, Status: Unknown,
		User: Unknown, Group: Unknown, Executable: Unknown, Queue: Unknown, Partition: Unknown,
		Preceding: Unknown, ThinkTime: Unknown, SiteOrigin: Unknown, SiteLast: Unknown, Structure: Unknown,
		Network: Unknown, Disk: Unknown, Organisation: Unknown, Project: Unknown,
	}
	first, second, third := unknown, unknown, unknown
	first.Line, first.Number = 12, 1
	first.Submit, first.Wait, first.RunTime = 0, 588530*grid.Second, 937*grid.Second
	first.Processors, first.CPUTime, first.TimeRequested = 306, 142*grid.Second, 35100*grid.Second
	first.Status, first.User, first.Executable, first.Queue = 1, 97, 307, 3
	second.Line, second.Number = 13, 2
	second.Submit, second.Wait, second.RunTime = 164472*grid.Second, 356587*grid.Second, 75*grid.Second
	second.Processors, second.CPUTime, second.Memory = 17, 2500*grid.Millisecond, 512<<10
	second.ProcessorsRequested, second.TimeRequested, second.MemoryRequested = 8, 300*grid.Second, 1<<20
	second.Status, second.User, second.Group, second.Executable, second.Queue, second.Partition = 1, 81, 4, 195, 3, 2
	second.Preceding, second.ThinkTime = 1, grid.Minute
	third.Line, third.Number, third.Submit = 15, 3, 164472*grid.Second
	want := []Record{first, second, third}

	double := swfSample + strings.Split(swfSample, "\n")[11] // gzip members may follow each other; no line break at the end
	for _, tt := range []struct {
		name, text string
		want       []Record
	}{
		{"plain", swfSample, want},
		{"DOS line breaks", strings.ReplaceAll(swfSample, "\n", "\r\n"), want},
		{"tabs", strings.ReplaceAll(swfSample, " ", "\t"), want},
		{"no line break at the end", strings.TrimSuffix(swfSample, "\n"), want},
		{"gzip", string(compressed(t, swfSample)), want},
		{"two gzip members", string(compressed(t, swfSample)) + string(compressed(t, strings.TrimPrefix(double, swfSample))),
			append(want[:3:3], func() Record { r := first; r.Line = 16; return r }())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, r, err := readAll(t, tt.text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%d records, want %d", len(got), len(tt.want))
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("record %d:\n got %+v\nwant %+v", i+1, got[i], tt.want[i])
				}
			}
			if r.Format() != FormatSWF || r.Header().MaxProcs() != 338 {
				t.Errorf("format %v, MaxProcs %d", r.Format(), r.Header().MaxProcs())
			}
		})
	}
}

func TestHeader(t *testing.T) {
	_, r, err := readAll(t, swfSample, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if got := fmt.Sprint(h.All("note")); got != "[THIS IS A CLEANED VERSION OF THE LOG! uses the EASY scheduler]" {
		t.Errorf("repeated key: %s", got)
	}
	if got, ok := h.Get("Acknowledge"); !ok || got != "Dan and Steve" {
		t.Errorf("Acknowledge = %q, %v", got, ok)
	}
	if got, ok := h.Int("MaxNodes"); !ok || got != 338 {
		t.Errorf("MaxNodes = %d, %v", got, ok)
	}
	if got, ok := h.Int("UnixStartTime"); !ok || got != 835823160 {
		t.Errorf("UnixStartTime = %d, %v", got, ok)
	}
	for _, key := range []string{"Computer", "NoSuchKey"} {
		if got, ok := h.Int(key); ok {
			t.Errorf("Int(%s) = %d, want none", key, got)
		}
	}
	// An address is not a key; the line continues the one before it.
	if got := h.Entries[3]; got != (Entry{Value: "http://example.org/labs/"}) {
		t.Errorf("continuation line: %+v", got)
	}
	if got := len(h.Entries); got != 11 {
		t.Errorf("%d entries, want all 11 lines before the first job", got)
	}
}

func TestGWF(t *testing.T) {
	for name, text := range map[string]string{
		"header":    gwfSample,
		"no header": gwfSample[strings.Index(gwfSample, "\n1 ")+1:],
	} {
		t.Run(name, func(t *testing.T) {
			got, r, err := readAll(t, text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 3 || r.Format() != FormatGWF {
				t.Fatalf("%d records of format %v", len(got), r.Format())
			}
			a, b, c := got[0], got[1], got[2]
			if a.Submit != 1119277025*grid.Second+250*grid.Millisecond || a.CPUTime != 3599*grid.Second+500*grid.Millisecond {
				t.Errorf("submitted at %d, CPU time %v", a.Submit, a.CPUTime)
			}
			if a.Processors != 8 || a.Memory != 10240<<10 || a.MemoryRequested != 20480<<10 || a.Network != 12 || a.Disk != 3 {
				t.Errorf("amounts: %+v", a)
			}
			for field, tt := range map[string]struct {
				n    int64
				want string
			}{
				"user": {a.User, "U12"}, "group": {b.Group, "G0"}, "executable": {a.Executable, "app7"}, "queue": {b.Queue, "batch"},
				"partition": {a.Partition, "P1"}, "origin": {a.SiteOrigin, "fs0"}, "last": {a.SiteLast, "fs1"},
				"structure": {b.Structure, "BoT"}, "organisation": {b.Organisation, "VO1"}, "project": {b.Project, "proj"},
				"no partition": {b.Partition, ""}, "no project": {c.Project, ""},
			} {
				if got := r.Word(tt.n); got != tt.want {
					t.Errorf("%s: %q, want %q", field, got, tt.want)
				}
			}
			if a.User != c.User || a.User == b.User || a.SiteOrigin != b.SiteLast {
				t.Errorf("equal words have different numbers, or different words equal ones")
			}
			if a.Preceding != Unknown || a.ThinkTime != Unknown {
				t.Errorf("fields of SWF only: %+v", a)
			}
		})
	}
}

// line returns an SWF line with one field replaced.
func line(field int, value string) string {
	fields := strings.Fields("7 100 0 60 4 -1 -1 4 120 -1 1 1 1 1 1 1 -1 -1")
	fields[field-1] = value
	return strings.Join(fields, " ")
}

func TestMalformed(t *testing.T) {
	good := line(1, "1") + "\n"
	for _, tt := range []struct{ name, bad, want string }{ // of fields that jobs are made of
		{"too few fields", "1 2 3", `test.swf:2: 3 fields, want 18 (SWF)`},
		{"too many fields", line(1, "1") + " 5 6", `test.swf:2: 20 fields, want 18 (SWF)`},
		{"word", line(9, "soon"), `test.swf:2: field 9 (requested time): "soon" is not a number`},
		{"minus", line(4, "-"), `field 4 (run time): "-" is not a number`},
		{"half a processor", line(5, "0.5"), `field 5 (allocated processors): 0.500000 is not a whole number`},
		{"absurd processors", line(8, "16777217"), `field 8 (requested processors): 16777217 is too large, at most 16777216`},
		{"absurd time", line(4, "9007199255"), `field 4 (run time): 9007199255 is too large, at most 9007199254`},
		{"overflow", line(2, "99999999999999999999999"), `field 2 (submit time): "99999999999999999999999" is too large`},
		{"overflow to a small number", line(4, "18446744073709551617"), `field 4 (run time): "18446744073709551617" is too large`},
		{"NULs", strings.Repeat("\x00", 100), `field 1 (job number): "\x00\x00`},
		{"binary", "\xff\xfe\x80", `field 1 (job number): "\xff\xfe\x80" is not a number`},
		{"long line", strings.Repeat("1 ", lineMax/2) + "1", `test.swf:2: the line is longer than 65536 bytes`},
		{"comment of the other format", "# 3", `field 1 (job number): "#" is not a number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := good + tt.bad + "\n" + strings.Replace(good, "1 ", "3 ", 1)
			records, _, err := readAll(t, text, Options{Strict: true})
			var at *LineError
			if !errors.Is(err, ErrMalformed) || !errors.As(err, &at) || at.Line != 2 || at.File != "test.swf" {
				t.Fatalf("error %v, want a LineError at line 2 of test.swf", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want it to say %q", err, tt.want)
			}
			if len(records) != 1 {
				t.Errorf("%d records before the error, want 1", len(records))
			}

			records, r, err := readAll(t, text, Options{})
			if err != nil || len(records) != 2 || records[1].Number != 3 || records[1].Line != 3 {
				t.Fatalf("not strict: %d records, %v, want the two good ones", len(records), err)
			}
			if s := r.Skipped(); s.Lines != 1 || len(s.Reasons) != 1 || s.Reasons[0].Line != 2 || s.Reasons[0].Count != 1 {
				t.Errorf("not strict: skipped %+v", s)
			}
			if s := r.Repaired(); s.Lines != 0 {
				t.Errorf("not strict: repaired %+v", s)
			}
		})
	}
}

// TestRepaired: a fault in a field that no job is made of costs nothing but that field,
// and a number below zero says no more than -1 does. A strict reader ends at either.
func TestRepaired(t *testing.T) {
	for _, tt := range []struct{ name, bad, want string }{
		{"status", line(11, "-4"), `test.swf:2: field 11 (status): "-4" is negative (only -1, for unknown, may be)`},
		{"negative estimate", line(9, "-2"), `field 9 (requested time): "-2" is negative`},
		{"negative submit", line(2, "-5"), `test.swf:2: field 2 (submit time): "-5" is negative (only -1, for unknown, may be)`},
		{"negative fraction", line(4, "-1.5"), `field 4 (run time): "-1.5" is negative`},
		{"point", line(6, "5."), `field 6 (average CPU time): "5." is not a number`},
		{"two points", line(6, "5.0.1"), `field 6 (average CPU time): "5.0.1" is not a number`},
		{"exponent", line(6, "1e9"), `field 6 (average CPU time): "1e9" is not a number`},
		{"plus", line(6, "+1"), `field 6 (average CPU time): "+1" is not a number`},
		{"absurd user", line(12, "1099511627777"), `field 12 (user): 1099511627777 is too large`},
		{"NUL", line(3, "1\x002"), `field 3 (wait time): "1\x002" is not a number`},
		{"long number", line(3, strings.Repeat("7", 1000)), `"77777777777777777777777777777777"... is too large`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := line(1, "1") + "\n" + tt.bad + "\n" + tt.bad + "\n"
			_, _, refused := readAll(t, text, Options{Strict: true})
			if refused == nil || !strings.Contains(refused.Error(), tt.want) {
				t.Fatalf("strictly: %v, want %q", refused, tt.want)
			}
			records, r, err := readAll(t, text, Options{})
			if err != nil || len(records) != 3 || r.Skipped().Lines != 0 {
				t.Fatalf("%d records, %v, skipped %+v", len(records), err, r.Skipped())
			}
			s := r.Repaired()
			if s.Lines != 2 || len(s.Reasons) != 1 || s.Reasons[0].Line != 2 || s.Reasons[0].Count != 2 || !strings.HasSuffix(refused.Error(), s.Reasons[0].Reason) {
				t.Errorf("repaired %+v", s)
			}
			if text := s.String(); !strings.HasPrefix(text, "2 lines: line 2 and 1 more: field ") {
				t.Errorf("it says %q", text)
			}
			// All but the field is as it was, and the field is unknown.
			whole, _, err := readAll(t, line(1, "7"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, want := records[1], whole[0]
			differ := 0
			for _, f := range []struct{ got, want, unknown int64 }{
				{int64(got.Submit), int64(want.Submit), Unknown}, {int64(got.Wait), int64(want.Wait), Unknown}, {int64(got.RunTime), int64(want.RunTime), Unknown},
				{int64(got.TimeRequested), int64(want.TimeRequested), Unknown}, {got.Status, want.Status, Unknown}, {got.User, want.User, Unknown},
				{int64(got.CPUTime), int64(want.CPUTime), Unknown}, {got.Processors, want.Processors, Unknown}, {got.ProcessorsRequested, want.ProcessorsRequested, Unknown},
			} {
				if f.got != f.want {
					differ++
					if f.got != f.unknown {
						t.Errorf("a field became %d", f.got)
					}
				}
			}
			if differ > 1 || got.Number != 7 {
				t.Errorf("%d fields differ:\n got %+v\nwant %+v", differ, got, want)
			}
		})
	}
}

// TestTraceTellsWhatItFound: what became of the lines has the numbers of those that are
// not as they should be.
func TestTraceTellsWhatItFound(t *testing.T) {
	text := strings.Join([]string{line(1, "1"), line(11, "-4"), "what is this", line(4, "0"), line(11, "-4"), line(2, "3")}, "\n")
	r, err := NewReader(strings.NewReader(text), "test.swf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	trace := NewTrace(r, Filter{})
	if n := len(collect(t, trace)); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
	want := `3 kept, 1 no run time; skipped 2 lines: line 3: field 1 (job number): "what" is not a number; ` +
		`line 6: submitted at 3 s, before the job above it (100 s): sort the file by submit time (field 2); ` +
		`repaired 2 lines: line 2 and 1 more: field 11 (status): "-4" is negative (only -1, for unknown, may be)`
	if got := trace.Lines(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMalformedFirstLine(t *testing.T) {
	// Without a header the format is only known from the first sound line.
	text := "what is this\n" + gwfSample[strings.Index(gwfSample, "\n1 ")+1:]
	_, _, err := readAll(t, text, Options{Strict: true})
	if want := "test.swf:1: 3 fields, want 18 (SWF) or 29 (GWF)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	records, r, err := readAll(t, text, Options{})
	if err != nil || len(records) != 3 || r.Format() != FormatGWF {
		t.Errorf("lenient: %d records of %v, %v", len(records), r.Format(), err)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	records, r, err := readAll(t, line(1, "1")+"\n"+strings.Repeat("x\n", 1000), Options{})
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if s := r.Skipped(); s.Lines != 1000 || len(s.Reasons) != 1 || s.Reasons[0].Count != 1000 {
		t.Errorf("%+v: want 1000 lines skipped for one reason", s)
	}
	var text strings.Builder
	for n := range 1000 {
		fmt.Fprintln(&text, line(1, fmt.Sprintf("x%d", n)))
	}
	_, r, err = readAll(t, text.String(), Options{Strict: false})
	if s := r.Skipped(); err != nil || s.Lines != 1000 || len(s.Reasons) != reasonsMax {
		t.Errorf("%v, %d lines skipped with %d reasons, want 1000 with %d", err, s.Lines, len(s.Reasons), reasonsMax)
	}
}

func TestWordsAreBounded(t *testing.T) {
	bad := strings.Replace(gwfSample, "U12", strings.Repeat("u", wordMaxSize+1), 1)
	if _, _, err := readAll(t, bad, Options{Strict: true}); err == nil || !strings.Contains(err.Error(), "field 12 (user): a word of 257 bytes, at most 256") {
		t.Errorf("a long word: %v", err)
	}
	bad = strings.Replace(gwfSample, "U12", "U\x0012", 1)
	if _, _, err := readAll(t, bad, Options{Strict: true}); err == nil || !strings.Contains(err.Error(), `field 12 (user): "U\x0012" holds a control character`) {
		t.Errorf("a NUL in a word: %v", err)
	}
	r, err := NewReader(strings.NewReader(gwfSample), "test.gwf", Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	r.words = make([]string, wordsMax)
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "more than 1048576 different words") {
		t.Errorf("too many words: %v", err)
	}
}

func TestHeaderIsBounded(t *testing.T) {
	job := line(1, "1") + "\n"
	for name, tt := range map[string]struct{ header, want string }{
		"lines": {strings.Repeat(";\n", headerLinesMax+1), "test.swf:16385: the header is longer than"},
		"bytes": {strings.Repeat("; "+strings.Repeat("x", 1022)+"\n", 1025), "the header is longer than"},
		"NUL":   {"; Computer: \x00\n", "test.swf:1: the header holds a NUL byte"},
		"line":  {"; " + strings.Repeat("x", lineMax) + "\n", "test.swf:1: the line is longer than"},
	} {
		if _, _, err := readAll(t, tt.header+job, Options{Strict: true}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		records, r, err := readAll(t, tt.header+job, Options{})
		if err != nil || len(records) != 1 || r.Skipped().Lines == 0 {
			t.Errorf("%s, lenient: %d records, %v, skipped %d", name, len(records), err, r.Skipped().Lines)
		}
	}
	if _, _, err := readAll(t, strings.Repeat(";\n", headerLinesMax)+job, Options{Strict: true}); err != nil {
		t.Errorf("a header of the longest length: %v", err)
	}
}

func TestDamagedFiles(t *testing.T) {
	long := swfSample + strings.Repeat(line(1, "9")+"\n", 5000)
	whole := compressed(t, long)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // in the check sum
	for _, tt := range []struct{ name, path, want string }{
		{"truncated gzip", write("short.swf.gz", whole[:len(whole)/2]), "the compressed data ends too early"},
		{"flipped bit", write("flipped.swf.gz", flipped), "gzip: invalid checksum"},
		{"gzip header only", write("header.swf.gz", whole[:4]), "not a sound gzip file"},
		{"empty", write("empty.swf", nil), "the file is empty"},
		{"missing", filepath.Join(dir, "missing.swf"), "no such file"},
		{"folder", dir, "is a directory"},
	} {
		// What is damaged below the level of lines ends any reader.
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s strict=%v", tt.name, strict), func(t *testing.T) {
				r, err := Open(tt.path, Options{Strict: strict})
				for err == nil {
					_, err = r.Next()
				}
				if r != nil {
					if _, again := r.Next(); again != err {
						t.Errorf("Next after %v returned %v, want the same again", err, again)
					}
				}
				if err == io.EOF || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
					t.Errorf("error %v, want it to say %q and name %s", err, tt.want, tt.path)
				}
			})
		}
	}
	r, err := Open(write("sound.swf.gz", whole), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 5003 {
		t.Errorf("%d records in the undamaged file, want 5003", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"SWF": swfSample + strings.Repeat(line(6, "142.50")+"\n", 5000),
		"GWF": gwfSample + strings.Repeat(strings.Split(gwfSample, "\n")[3]+"\n", 5000),
	} {
		r, err := NewReader(strings.NewReader(text), name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		next := func() {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		next()
		next()
		next()
		if allocs := testing.AllocsPerRun(1000, next); allocs != 0 {
			t.Errorf("%s: %v allocations a record, want none", name, allocs)
		}
	}
}

// TestNumberAgainstRationals compares the scanner with math/big on anything that
// looks like a number or nearly so.
func TestNumberAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{0,19}(\.[0-9]{0,9})?[x-]?`).Draw(t, "text")
		checkNumber(t, text)
	})
	for _, text := range []string{"-1", "-1.000", "0", "-0", "007", "999999999999999999", "1000000000000000000", ".5", "-.5", "1.", "-1.00000001", "1.00000001"} {
		checkNumber(t, text)
	}
}

func checkNumber(t interface{ Fatalf(string, ...any) }, text string) {
	integral, millionths, end, fault := number([]byte(text), 0)
	value, isNumber := new(big.Rat).SetString(text)
	whole, fraction, dotted := strings.Cut(text, ".")
	digits := strings.TrimPrefix(whole, "-")
	want := isNumber && digits != "" && len(digits) <= 18 && (!dotted || fraction != "") &&
		(value.Sign() > 0 || value.Sign() == 0 && whole[0] != '-' || value.Cmp(big.NewRat(-1, 1)) == 0)
	if (fault == "") != want {
		t.Fatalf("number(%q): fault %q, want a number: %v", text, fault, want)
	}
	if fault != "" {
		return
	}
	micro := value.Mul(value, big.NewRat(micros, 1))
	floor := new(big.Int).Div(micro.Num(), micro.Denom())
	got := new(big.Int).Add(new(big.Int).Mul(big.NewInt(integral), big.NewInt(micros)), big.NewInt(millionths))
	if got.Cmp(floor) != 0 || end != len(text) {
		t.Fatalf("number(%q) = %v millionths up to byte %d, want %v", text, got, end, floor)
	}
	// The short cut must agree wherever it applies.
	if n, end, ok := plain([]byte(text), 0); ok && (n != integral || end != len(text) || millionths != 0) {
		t.Fatalf("plain(%q) = %d up to byte %d, number says %d", text, n, end, integral)
	}
}

func FuzzSWF(f *testing.F) {
	f.Add([]byte(swfSample))
	f.Add(compressed(f, swfSample))
	f.Add([]byte(line(6, "1.5") + "\n" + line(2, "-5")))
	f.Add([]byte(line(11, "-4") + "\n" + line(1, "-2") + "\n" + line(12, "x")))
	f.Add([]byte(";\n;\n#\n\x00\n"))
	corpus.Fuzz(f, fuzzReader)
}

func FuzzGWF(f *testing.F) {
	f.Add([]byte(gwfSample))
	f.Add(compressed(f, gwfSample))
	f.Add([]byte(strings.Replace(gwfSample, "U12", "-", 1)))
	corpus.Fuzz(f, fuzzReader)
}

// fuzzReader checks that no bytes make a reader panic, loop or return a value out
// of bounds, that one that is not strict gives at least the same records, and that every
// line is accounted for.
func fuzzReader(t *testing.T, data []byte) {
	strict, _, _ := drain(t, data, Options{Strict: true})
	all, skipped, repaired := drain(t, data, Options{})
	if all < strict {
		t.Errorf("%d records strictly, %d else", strict, all)
	}
	if strict+repaired > all {
		t.Errorf("%d records, %d of them repaired, but %d strictly", all, repaired, strict)
	}
	if skipped+repaired > int64(bytes.Count(data, []byte("\n")))+1 && !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		t.Errorf("%d lines skipped and %d repaired of %d", skipped, repaired, bytes.Count(data, []byte("\n"))+1)
	}
}

// lines is the buffer of all readers of drain: most inputs are far shorter than it.
var lines = bufio.NewReaderSize(nil, lineMax)

func drain(t *testing.T, data []byte, o Options) (records, skipped, repaired int64) {
	// A bomb is not what is looked for here. A buffer as large as a reader's own is taken for it.
	lines.Reset(bytes.NewReader(data))
	r, err := NewReader(lines, "fuzz", o)
	if err != nil {
		return 0, 0, 0
	}
	filter := Filter{NoEstimate: NoEstimateRunTime}
	for range 1 << 20 {
		record, err := r.Next()
		if err != nil {
			if err != io.EOF && !o.Strict && errors.Is(err, ErrMalformed) {
				t.Errorf("a reader that is not strict returned %v", err)
			}
			return records, r.Skipped().Lines, r.Repaired().Lines
		}
		records++
		var job Job
		if filter.Job(&record, &job) != Kept {
			continue
		}
		if job.Submit < 0 || job.Submit > grid.SpanMax || job.RunTime < 1 || job.RunTime > job.Estimate || job.Estimate > grid.SpanMax ||
			job.Processors < 1 || job.Processors > processorsMax || job.Memory < 0 || job.Memory > 1<<50 {
			t.Errorf("line %d: %+v", record.Line, job)
		}
	}
	return records, r.Skipped().Lines, r.Repaired().Lines
}
