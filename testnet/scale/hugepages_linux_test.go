package scale

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestPrepareHeap: the heap has room that is free, and the kernel may use large pages there.
func TestPrepareHeap(t *testing.T) {
	const bytes = 256 << 20
	prepareHeap(bytes)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapSys < bytes || m.HeapAlloc >= bytes {
		t.Errorf("the heap has %d bytes, %d of them are used, want %d, and that they are free", m.HeapSys, m.HeapAlloc, bytes)
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("no large pages here")
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if flags, found := strings.CutPrefix(line, "VmFlags:"); found && strings.Contains(flags, " hg ") {
			return
		}
	}
	t.Error("no part of the heap may have large pages")
}
