package workload

import (
	"bytes"
	"strings"
)

// Header is what a log says about itself before its first job. The published
// logs ask that whoever their Acknowledge lines name is acknowledged.
type Header struct {
	Entries []Entry // in the order of the file; keys may repeat
}

// Entry is one header line, "; Key: value". Key is empty on a line of free text,
// which usually continues the entry before it.
type Entry struct{ Key, Value string }

// Bounds of a header: the longest one known has 188 lines.
const (
	headerLinesMax = 1 << 14
	headerBytesMax = 1 << 20
)

// All returns the values of every entry with that key, in order. Case does not matter.
func (h *Header) All(key string) []string {
	var values []string
	for _, e := range h.Entries {
		if strings.EqualFold(e.Key, key) {
			values = append(values, e.Value)
		}
	}
	return values
}

// Get returns the value of the first entry with that key.
func (h *Header) Get(key string) (value string, ok bool) {
	for _, e := range h.Entries {
		if strings.EqualFold(e.Key, key) {
			return e.Value, true
		}
	}
	return "", false
}

// Int returns the number at the start of the first entry with that key: 338 for
// "MaxNodes: 338 (batch partition; 512 total)". It returns false if there is no
// such entry or no number.
func (h *Header) Int(key string) (n int64, ok bool) {
	value, _ := h.Get(key)
	word, _, _ := strings.Cut(value, " ")
	word, _, _ = strings.Cut(word, "\t")
	n, millionths, _, fault := number([]byte(word), 0)
	return n, fault == "" && millionths == 0 && n >= 0
}

// MaxProcs returns the number of processors of the machine, or 0 if the header
// does not say. Papers do not always use this number: CTC SP2 says 338 (its batch
// partition) where they use 430 or 512.
func (h *Header) MaxProcs() int64 {
	n, _ := h.Int("MaxProcs")
	return n
}

// entry reads a header line without its comment sign. A key is letters, digits,
// or one of "-_", and a colon with a blank or nothing after it, so that an
// address (http://...) is no key.
func entry(line []byte) Entry {
	text := string(bytes.TrimSpace(line))
	key, value, found := strings.Cut(text, ":")
	if !found || key == "" || value != "" && !blank(value[0]) {
		return Entry{Value: text}
	}
	for _, c := range []byte(key) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return Entry{Value: text}
		}
	}
	return Entry{Key: key, Value: strings.TrimSpace(value)}
}
