package liar

import "testing"

// TestPapers: nothing that is forged is believed, and all that is right is.
func TestPapers(t *testing.T) {
	for seed := range uint64(100) {
		if err := Papers(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
