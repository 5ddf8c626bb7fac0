package shim

import (
	"os"
	"testing"
	"time"
)

// TestBare: a process that is just executing another program may yet show a mark, however often
// it is looked at; one that has cleared its environment will not, nor one that never shows any.
func TestBare(t *testing.T) {
	const pid = 1 << 30 // there is none
	p := &past{tasks: map[string]*known{"task": {pid: 7}}, alive: time.Now().Add(-time.Minute)}
	for _, tt := range []struct {
		name string
		bare bool
		ago  time.Duration // the first look
		want bool
	}{
		{"it is executing", true, 0, false},
		{"it has none", false, 0, true},
		{"it never shows any", true, 2 * bareMax, true},
	} {
		l := newLeftovers(p, "token")
		l.looks[pid] = &looks{first: time.Now().Add(-tt.ago)}
		sure := false
		for range 2 * looksMax {
			_, sure = l.owns(process{pid: pid, session: 7, started: l.until + 1, bare: tt.bare})
		}
		if sure != tt.want {
			t.Errorf("%s: sure is %t after %d looks", tt.name, sure, 2*looksMax)
		}
	}
	if self, ok := readProcess(os.Getpid()); !ok || self.bare {
		t.Errorf("this process: %+v, %t", self, ok)
	}
	if kernel, ok := parseStat([]byte("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 19 0 0 20 0 1 0 8 0 0 0 0 0 0 0 0 0 0 2147483647 0 0 0 0 0 2 0 0 0 0 0 0 0 0 0 0 0 0 0")); !ok || !kernel.bare {
		t.Errorf("a thread of the kernel: %+v, %t", kernel, ok)
	}
}
