package chaos

import (
	"path/filepath"
	"testing"
)

// corpusMost is how many events a file of the corpus may have: a second's worth.
const corpusMost = 300_000

// TestCorpus: what once was violated is not any more. testdata/corpus has the replay files,
// small ones, each named after what was wrong.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := Replay(t.Context(), path, Config{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Events > corpusMost {
				t.Errorf("%d events, at most %d: shrink it", r.Events, corpusMost)
			}
		})
	}
}

// TestSwarm: mixtures of faults and features violate nothing, differ from seed to seed, and
// use every feature.
func TestSwarm(t *testing.T) {
	used := map[string]bool{}
	for seed := range uint64(12) {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours = seed, 5, 1
		cfg = cfg.Swarmed()
		if used[cfg.Features] {
			t.Errorf("seed %d: the features %s were there before", seed, cfg.Features)
		}
		used[cfg.Features] = true
		chosen, err := parseList("features", cfg.Features, featureBounds)
		if err != nil {
			t.Fatal(err)
		}
		for name := range chosen {
			used[name] = true
		}
		if _, err := Run(t.Context(), cfg); err != nil {
			t.Error(err)
		}
	}
	for name := range featureBounds {
		if !used[name] {
			t.Errorf("no seed uses %s", name)
		}
	}
}
