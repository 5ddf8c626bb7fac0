package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/internal/corpus"
)

// write writes inputs as Go's fuzzer does.
func write(t *testing.T, folder string, inputs ...string) {
	t.Helper()
	for i, in := range inputs {
		text := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", in)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What was kept stays; of what is new the shortest is kept, as far as there is room.
func TestKeep(t *testing.T) {
	of := target{room: "a", name: "FuzzA", folder: t.TempDir()}
	if err := os.WriteFile(filepath.Join(of.folder, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := t.TempDir()
	write(t, inputs, "middle", "first")
	if had, kept, err := of.keep(inputs); had != 0 || kept != 2 || err != nil {
		t.Fatalf("of 0 and 2 new ones %d and %d, %v", had, kept, err)
	}
	write(t, inputs, "middle", "first", strings.Repeat("long", keptMost/4), "b", "a")
	had, kept, err := of.keep(inputs)
	if had != 2 || kept != 4 || err != nil {
		t.Errorf("of 2 and 3 new ones, of which one is too long, %d and %d, %v", had, kept, err)
	}
	path, _ := corpus.Path(of.folder, of.name)
	lines, err := corpus.Read(path)
	if got, want := strings.Join(lines, " "), `[]byte("first") []byte("middle") []byte("a") []byte("b")`; got != want || err != nil {
		t.Errorf("%s, %v are kept, want %s", got, err, want)
	}
	if had, kept, err := of.keep(filepath.Join(inputs, "none")); had != 4 || kept != 4 || err != nil {
		t.Errorf("of 4 and none new %d and %d, %v", had, kept, err)
	}
}

// Turns of a target add up, in the file as well, and who was executed least comes first.
func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for _, r := range []result{{Target: "a.FuzzA", Executions: 5, Seconds: 1, Kept: 2}, {Target: "a.FuzzB", Executions: 7}, {Target: "a.FuzzA", Executions: 3, Seconds: 2, Kept: 4}} {
		s, err := readResults(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.add(r); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if a := s.all["a.FuzzA"]; a.Executions != 8 || a.Seconds != 3 || a.Kept != 4 {
		t.Errorf("after two turns: %+v", a)
	}
	targets := []target{{room: "a", name: "FuzzA"}, {room: "a", name: "FuzzB"}, {room: "a", name: "FuzzC"}}
	if s.leastFirst(targets); targets[0].name != "FuzzC" || targets[1].name != "FuzzB" {
		t.Errorf("first come %v", targets)
	}
	if rows := s.rows(targets); len(rows) != 3 || rows[0].Target != "a.FuzzA" || rows[2].Executions != 0 || rows[2].Want != wanted {
		t.Errorf("rows %+v", rows)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(path); err == nil {
		t.Error("a torn file of results is read")
	}
}

// Targets are found by the beginnings of their names.
func TestFind(t *testing.T) {
	targets, err := find(t.Context(), []string{"nowhere", "test/fuzz."})
	if err == nil {
		t.Errorf("found %v where there is none", targets)
	}
	t.Chdir("../..")
	targets, err = find(t.Context(), []string{"market/bank.FuzzDecodeDraw", "internal/wire"})
	var names []string
	for _, f := range targets {
		names = append(names, f.String())
	}
	if got, want := strings.Join(names, " "), "internal/wire.FuzzDecode internal/wire.FuzzOpen market/bank.FuzzDecodeDraw market/bank.FuzzDecodeDrawn"; got != want || err != nil {
		t.Errorf("found %s, %v, want %s", got, err, want)
	}
}

// What a program has executed is what Go's fuzzer says in the end, and with each input those near it.
func TestExecutions(t *testing.T) {
	const said = "fuzz: elapsed: 3s, execs: 7 (2/sec)\nfuzz: elapsed: 6s, execs: 10 (1/sec), new interesting: 5\nPASS\n"
	for text, want := range map[string]int64{said: 10, "near each: 3\n" + said: 40} {
		if n, err := executions([]byte(text)); n != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
	if n, err := executions([]byte("PASS\n")); err == nil {
		t.Errorf("nothing is said, and taken for %d", n)
	}
}

// TestOutOfTime: a target whose time was up has not failed; one that left an input has.
func TestOutOfTime(t *testing.T) {
	for said, want := range map[string]bool{
		"fuzz: elapsed: 45s, execs: 661155 (0/sec)\n--- FAIL: FuzzDecodeReport (45.14s)\n    context deadline exceeded\nFAIL\n":                                 true,
		"--- FAIL: FuzzX (1.02s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: context deadline exceeded\n\n    Failing input written to testdata\nFAIL\n": false,
		"--- FAIL: FuzzX (1.02s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n":                                    false,
		"PASS\n": false,
	} {
		if got := outOfTime.MatchString(said); got != want {
			t.Errorf("%t, want %t, of %q", got, want, said)
		}
	}
}
