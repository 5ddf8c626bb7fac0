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
	if strikes, rounds := found.strikes("kills"); strikes != 5 || rounds != 2 {
		text, _ := os.ReadFile(path)
		t.Errorf("%d strikes in %d rounds, want 5 in 2: %s", strikes, rounds, text)
	}
	rows := tabulate(kinds[:1], found)
	if len(rows) != 1 || rows[0].Strikes != 5 || len(rows[0].Broken) != 1 || rows[0].Broken[0] != "seed 4: lost" {
		t.Errorf("the table has %+v", rows)
	}
}
