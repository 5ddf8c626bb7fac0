package footprint

import (
	"bytes"
	_ "net/http" // a program of some size
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// resident returns how many KiB of file pages the process has.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Skip("the kernel does not count pages of files")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func TestTrim(t *testing.T) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := clean(bytes.NewReader(text), program)
	if err != nil || len(maps) == 0 {
		t.Fatalf("clean mappings are %x, %v", maps, err)
	}
	size := 0
	for _, m := range maps {
		if err := m.advise(unix.MADV_POPULATE_READ); err != nil {
			t.Skip(err) // a kernel before 5.14
		}
		size += int(m.end-m.begin) >> 10
	}
	before := resident(t)
	if before < size {
		t.Fatalf("%d KiB of files are resident, want all %d that are mapped", before, size)
	}
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before-size/3 {
		t.Errorf("%d KiB of files are resident, were %d with all %d that are mapped", after, before, size)
	}
}

func TestClean(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fd:01 77                  /bin/gridnoded (deleted)
Size:               1024 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00100000 fd:01 77                         /bin/gridnoded (deleted)
Anonymous:             0 kB
00600000-00700000 r--p 00200000 fd:01 77                         /bin/gridnoded (deleted)
Anonymous:            64 kB
00700000-00800000 rw-p 00300000 fd:01 77                         /bin/gridnoded (deleted)
Anonymous:             0 kB
00800000-00900000 r--s 00000000 fd:01 77                         /bin/gridnoded (deleted)
Anonymous:             0 kB
00900000-00a00000 r-xp 00000000 fd:01 78                         /lib/libc.so.6
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0
Anonymous:             0 kB
7fff34bf5000-7fff34bf7000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	const program = "/bin/gridnoded (deleted)" // replaced by a newer one
	want := []mapping{{0x400000, 0x500000}, {0x500000, 0x600000}}
	if got, err := clean(strings.NewReader(smaps), program); err != nil || !slices.Equal(got, want) {
		t.Errorf("clean mappings are %x, %v, want %x", got, err, want)
	}
	if got, err := clean(strings.NewReader(strings.Replace(smaps, "0050000", "x", 1)), program); err == nil {
		t.Errorf("clean mappings of nonsense are %x, want an error", got)
	}
}
