package logging

import (
	"bytes"
	"sync"
)

// tailMax bounds what a Tail keeps.
const tailMax = 256 << 10

// Tail keeps the last lines that were written to it. Safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte // at most twice tailMax
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(len(p)-tailMax, 0):]...)
	if len(t.text) > 2*tailMax {
		t.text = append(t.text[:0], t.text[len(t.text)-tailMax:]...)
	}
	return len(p), nil
}

// Lines returns the last whole lines.
func (t *Tail) Lines() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text
	if len(text) > tailMax {
		text = text[len(text)-tailMax:]
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return bytes.Clone(text)
}
