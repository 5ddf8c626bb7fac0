package corpus

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// NearVariable is the variable of the environment that says how many inputs are executed together with each: such as lie
// near it. None are if it is not set.
const NearVariable = "FUZZ_NEAR"

// nearSaid is how a target says that it heeds it.
const nearSaid = "near each: %d\n"

// Fuzz adds to a fuzz target whose inputs are bytes what its runs have found, and then is its f.Fuzz. What the testing package
// does for an input takes longer than most decoders do, and so an input can be executed together with others (NearVariable).
// Which these are follows from the input: one that fails does so again.
func Fuzz(f *testing.F, execute func(t *testing.T, input []byte)) {
	f.Helper()
	Add(f)
	near := 0
	if said := os.Getenv(NearVariable); said != "" {
		var err error
		if near, err = strconv.Atoi(said); err != nil || near < 0 {
			f.Fatalf("%s=%q: want a number", NearVariable, said)
		}
		fmt.Printf(nearSaid, near)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		execute(t, input)
		if near == 0 {
			return
		}
		n := newNeighbours(input)
		for range near {
			if t.Failed() {
				return
			}
			try(t, n.next(), execute)
		}
	})
}

// try executes an input, and tells which one it was if it failed.
func try(t *testing.T, input []byte, execute func(t *testing.T, input []byte)) {
	passed := false
	defer func() {
		if !passed {
			t.Logf("[]byte(%q) failed, which lies near the input", input)
		}
	}()
	execute(t, input)
	passed = !t.Failed()
}

// NearOf returns how many inputs a target has executed together with each, by what it has printed.
func NearOf(printed []byte) (near int64) {
	for line := range strings.Lines(string(printed)) {
		if n, _ := fmt.Sscanf(line, nearSaid, &near); n == 1 {
			return near
		}
	}
	return 0
}
