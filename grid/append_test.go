package grid

import (
	"slices"
	"testing"
)

func TestAppendOne(t *testing.T) {
	var list, want []int
	made := 0
	for i := range 1000 {
		before := cap(list)
		list, want = AppendOne(list, i), append(want, i)
		if cap(list) != before {
			made++
		}
		if spare := cap(list) - len(list); spare > len(list)/8+4 {
			t.Fatalf("%d values have room for %d more", len(list), spare)
		}
	}
	if !slices.Equal(list, want) {
		t.Error("it does not hold what was appended")
	}
	if made > 60 {
		t.Errorf("1,000 values were moved %d times", made)
	}
}
