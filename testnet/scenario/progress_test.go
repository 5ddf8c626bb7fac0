package scenario

import (
	"bytes"
	"os"
	"testing"
)

// TestProgressOnlyOnTerminals: a file or a pipe gets no progress bar.
func TestProgressOnlyOnTerminals(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	p := NewProgress(f, "leasing", 10, func() int64 { return 5 })
	p.Pulse()
	p.Stop()
	q := NewProgress(&b, "leasing", 10, func() int64 { return 5 })
	q.Pulse()
	q.Stop()
	if info, err := f.Stat(); err != nil || info.Size() != 0 || b.Len() != 0 {
		t.Errorf("progress was written to a file (%v) or a buffer (%q)", info, b.String())
	}
	NewProgress(nil, "leasing", 0, nil).Stop()
}
