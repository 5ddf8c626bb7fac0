package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A run that was killed goes on where it stopped, even if it died while it wrote.
func TestResultsGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	found, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.add(outcome{Kind: "kills", Seed: 4, Strikes: 3, Broken: []string{"lost"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := found.file.WriteString(`{"kind":"kills","strikes":9`); err != nil {
		t.Fatal(err)
	}
	found.close()
	if found, err = openResults(path); err != nil {
		t.Fatal(err)
	}
	if err := found.add(outcome{Kind: "kills", Strikes: 2}); err != nil {
		t.Fatal(err)
	}
	found.close()
	if found, err = openResults(path); err != nil {
		t.Fatal(err)
	}
	defer found.close()
	if strikes := found.strikes("kills"); strikes != 5 || len(found.all) != 2 {
		text, _ := os.ReadFile(path)
		t.Errorf("%d strikes in %d rounds, want 5 in 2: %s", strikes, len(found.all), text)
	}
	rows := tabulate(kinds[:1], found)
	if len(rows) != 1 || rows[0].Strikes != 5 || len(rows[0].Broken) != 1 || rows[0].Broken[0] != "seed 4: lost" {
		t.Errorf("the table has %+v", rows)
	}
}

// A round that broke a promise is run again with its seed, in place of what came of it; other rounds have
// seeds of their own, also while some are under way.
func TestResultsAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	found, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []outcome{{Kind: "kills", Seed: 1, Strikes: 4}, {Kind: "kills", Seed: 2, Strikes: 4, Broken: []string{"lost"}}, {Kind: "kills", Seed: 4, Strikes: 4}} {
		if err := found.add(o); err != nil {
			t.Fatal(err)
		}
	}
	k := kind{name: "kills", each: 4}
	q := &queue{chosen: []kind{k}, found: found, want: func(kind) int { return 18 }, seed: 1, running: map[round]int{}, again: found.broken()}
	for _, want := range []struct {
		seed    uint64
		strikes int
	}{{2, 4}, {3, 4}, {5, 2}} {
		_, p, more := q.next(plan{})
		if !more || p.seed != want.seed || p.strikes != want.strikes {
			t.Fatalf("the next round is %+v, want %+v", p, want)
		}
	}
	if _, p, more := q.next(plan{}); more {
		t.Errorf("there is one more round: %+v", p)
	}
	if err := found.add(outcome{Kind: "kills", Seed: 2, Strikes: 4}); err != nil {
		t.Fatal(err)
	}
	found.close()
	if found, err = openResults(path); err != nil {
		t.Fatal(err)
	}
	defer found.close()
	if rows := tabulate([]kind{k}, found); rows[0].Strikes != 12 || rows[0].Rounds != 3 || len(rows[0].Broken) > 0 {
		t.Errorf("the table has %+v", rows)
	}
}
