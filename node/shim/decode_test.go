package shim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/node/sandbox"
)

// What is encoded comes back, whatever bytes its strings hold.
func TestRoundTrips(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")) })
	id := rapid.StringMatching("[a-z0-9.]{1,128}")
	number := rapid.Int64Min(0)
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{
			ID: id.Draw(t, "id"), Args: rapid.SliceOfN(text, 0, 5).Draw(t, "args"), Env: rapid.SliceOfN(text, 0, 5).Draw(t, "env"),
			Dir: "/" + text.Draw(t, "dir"), Stdout: "/" + text.Draw(t, "stdout"), Stderr: "/" + text.Draw(t, "stderr"),
			Limit: grid.Time(rapid.Int64Range(0, int64(grid.SpanMax)).Draw(t, "limit")),
		}
		spec.Args = append([]string{"x"}, spec.Args...)
		spec.Log, spec.Outputs = rapid.Int64Range(0, 9).Draw(t, "log"), Outputs(rapid.Uint8Max(uint8(outputsUnknown)-1).Draw(t, "outputs"))
		if rapid.Bool().Draw(t, "planned") {
			spec.Plan = &sandbox.Plan{Kind: sandbox.Landlock, Read: []string{"/data"}, Ports: []uint16{4711}, Limits: sandbox.Limits{Memory: number.Draw(t, "memory")}}
		}
		if rapid.Bool().Draw(t, "with peers") {
			spec.Peers = &Peers{Gang: id.Draw(t, "gang"), Rank: rapid.IntRange(0, 1).Draw(t, "rank"), Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}}
		}
		var gotSpec Spec
		err := gotSpec.decode(spec.append(nil))
		if err != nil || !reflect.DeepEqual(gotSpec.Plan, spec.Plan) || !reflect.DeepEqual(gotSpec.Peers, spec.Peers) || gotSpec.Log != spec.Log || gotSpec.Outputs != spec.Outputs {
			t.Fatalf("got %+v, %v; want %+v", gotSpec, err, spec)
		}
		gotSpec.Plan, spec.Plan = nil, nil
		if !bytes.Equal(gotSpec.append(nil), spec.append(nil)) {
			t.Fatalf("got %+v; want %+v", gotSpec, spec)
		}
		end := Ended{
			ID: spec.ID, ExitCode: rapid.Int32Range(0, 255).Draw(t, "code"), Cause: Cause(rapid.Uint8Max(uint8(causeUnknown)-1).Draw(t, "cause")),
			Reason: text.Draw(t, "reason"), Start: grid.Time(number.Draw(t, "start")), End: grid.Time(number.Draw(t, "end")),
			User: grid.Time(number.Draw(t, "user")), System: grid.Time(number.Draw(t, "system")), MaxRSS: number.Draw(t, "rss"),
			OutputCut: rapid.Bool().Draw(t, "cut"), Silent: rapid.Bool().Draw(t, "silent"),
		}
		var gotEnd Ended
		if err := gotEnd.decode(end.append(nil)); err != nil || gotEnd != end {
			t.Fatalf("got %+v, %v; want %+v", gotEnd, err, end)
		}
		task := Task{ID: spec.ID, Running: end.OutputCut, Start: end.Start}
		var gotTask Task
		if err := gotTask.decode(task.append(nil)); err != nil || gotTask != task {
			t.Fatalf("got %+v, %v; want %+v", gotTask, err, task)
		}
		gotID, gotReason, err := decodeKill(appendKill(nil, spec.ID, end.Reason))
		if err != nil || gotID != spec.ID || gotReason != end.Reason {
			t.Fatalf("got %q, %q, %v", gotID, gotReason, err)
		}
	})
}

// Bytes from a socket never panic; what is accepted is within its bounds.
func FuzzDecode(f *testing.F) {
	spec := Spec{ID: "t", Args: []string{"true"}, Env: []string{"A=1"}, Dir: "/d", Stdout: "/o", Stderr: "/e", Limit: 5}
	end := Ended{ID: "t", ExitCode: 7, Reason: "r", Start: 1, End: 2}
	f.Add(spec.append(nil))
	f.Add(end.append(nil))
	f.Add((&Task{ID: "t", Start: 9, Running: true}).append(nil))
	f.Add(appendFrame(nil, kindHello, helloBody))
	f.Add([]byte("123 (a) b) S 1 123 123 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7654321 0"))
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		var s Spec
		if s.decode(b) == nil {
			if err := s.check(); err != nil {
				t.Errorf("accepted %q: %v", b, err)
			}
			var again Spec
			if err := again.decode(s.append(nil)); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%q does not come back: %v", b, err)
			}
		}
		var e Ended
		if e.decode(b) == nil && (e.Cause >= causeUnknown || e.ExitCode < 0 || e.ExitCode > 255 || len(e.Reason) > reasonMax || e.End < 0) {
			t.Errorf("accepted %+v", e)
		}
		var task Task
		task.decode(b)
		decodeKill(b)
		parseStat(b)
		var buf []byte
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			_, body, err := readFrame(r, &buf)
			if err != nil {
				break
			}
			if len(body) > frameMax {
				t.Errorf("frame of %d bytes", len(body))
			}
		}
		(&records{}).replay(b, &past{tasks: make(map[string]*known)})
	})
}

func TestFrameBounds(t *testing.T) {
	var buf []byte
	for size, want := range map[int]string{0: "want 1", 1: "", frameMax: "", frameMax + 1: "want 1", 1<<32 - 1: "want 1"} {
		head := binary.BigEndian.AppendUint32(nil, uint32(size))
		frame := io.MultiReader(bytes.NewReader(append(head, byte(kindAck))), bytes.NewReader(make([]byte, min(size, frameMax))))
		k, body, err := readFrame(bufio.NewReader(frame), &buf)
		if want == "" && (err != nil || k != kindAck || len(body) != size-1) {
			t.Errorf("frame of %d bytes: %d of kind %d, %v", size, len(body), k, err)
		}
		if want != "" && (!errors.Is(err, errEncoding) || !strings.Contains(err.Error(), want)) {
			t.Errorf("frame of %d bytes: %v, want it refused for its length", size, err)
		}
	}
	if cap(buf) > frameMax {
		t.Errorf("%d bytes were allocated", cap(buf))
	}
}

func TestParseStat(t *testing.T) {
	self, ok := readProcess(os.Getpid())
	if !ok || self.pid != os.Getpid() || self.parent != os.Getppid() || self.state != 'R' && self.state != 'S' || self.started == 0 {
		t.Errorf("this process is %+v", self)
	}
	p, ok := parseStat([]byte("77 (a) Z (b) c) S 1 75 74 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7654321 0 0\n"))
	if want := (process{pid: 77, state: 'S', parent: 1, group: 75, session: 74, started: 7654321}); !ok || p != want {
		t.Errorf("got %+v, %v; want %+v", p, ok, want)
	}
	for _, bad := range []string{"", "77", "77 (a", "77 (a) S 1 2", "x (a) S 1 75 74 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7654321 0", "77 (a) S 1 75 74 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 x 0"} {
		if p, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is taken for %+v", bad, p)
		}
	}
}

func TestReasonsFit(t *testing.T) {
	for _, reason := range []string{"short", strings.Repeat("x", 1000), strings.Repeat("ä", 1000)} {
		got := shorten(reason)
		if len(got) > reasonMax || !strings.HasPrefix(reason, strings.TrimSuffix(got, "...")) {
			t.Errorf("%.20q... became %q", reason, got)
		}
	}
}
