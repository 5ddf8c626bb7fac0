package grid

import (
	"fmt"
	"strconv"
	"strings"
)

// GPUs is what a job needs of accelerators. The zero value is none.
type GPUs struct {
	Type  string // as the site calls it; empty: any
	Count int64  // 0 to GPUsMax
}

// Bounds of GPUs.
const (
	GPUsMax    = 1024
	gpuTypeMax = 32
)

// String returns it as users write it: "a100:2", or "2".
func (g GPUs) String() string {
	if g.Type == "" {
		return strconv.FormatInt(g.Count, 10)
	}
	return g.Type + ":" + strconv.FormatInt(g.Count, 10)
}

// ParseGPUs is the inverse of String. A type alone means one of them.
func ParseGPUs(text string) (GPUs, error) {
	kind, count, typed := strings.Cut(text, ":")
	if !typed {
		if _, err := strconv.Atoi(text); err == nil {
			kind, count = "", text
		} else {
			count = "1"
		}
	}
	n, err := strconv.ParseInt(count, 10, 64)
	g := GPUs{Type: kind, Count: n}
	if err != nil || n < 1 || kind == "" && (typed || text == "") || g.Check() != nil {
		return GPUs{}, fmt.Errorf("%q: want a number of GPUs, 1 to %d, such as 2, or a type and a number, such as a100:2", text, GPUsMax)
	}
	return g, nil
}

// Check returns an error that says what is out of bounds.
func (g GPUs) Check() error {
	if g.Count < 0 || g.Count > GPUsMax {
		return fmt.Errorf("%d GPUs, want 0 to %d", g.Count, GPUsMax)
	}
	if len(g.Type) > gpuTypeMax || g.Count == 0 && g.Type != "" {
		return fmt.Errorf("%d GPUs of type %.40q, at most %d bytes", g.Count, g.Type, gpuTypeMax)
	}
	for i := range len(g.Type) {
		switch c := g.Type[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Errorf("GPUs of type %q: want letters, digits, dots, dashes and underscores", g.Type)
		}
	}
	return nil
}
