package main

import "testing"

// TestDetachKeys: the keys are found however what is typed is cut into pieces, and whatever
// only begins like them is passed on.
func TestDetachKeys(t *testing.T) {
	keys, err := parseKeys("ctrl-],d")
	if err != nil || string(keys) != "\x1dd" {
		t.Fatalf("%q, %v", keys, err)
	}
	for _, tt := range []struct {
		typed []string
		out   string
		found bool
	}{
		{[]string{"ls\r"}, "ls\r", false},
		{[]string{"a\x1ddb"}, "a", true},
		{[]string{"a\x1d", "d"}, "a", true},
		{[]string{"\x1d", "x"}, "\x1dx", false},
		{[]string{"\x1d\x1dd"}, "\x1d", true},
	} {
		w := watcher{keys: keys}
		var out []byte
		found := false
		for _, piece := range tt.typed {
			var some []byte
			some, found = w.pass([]byte(piece))
			out = append(out, some...)
		}
		if string(out) != tt.out || found != tt.found {
			t.Errorf("%q: %q, %v, want %q, %v", tt.typed, out, found, tt.out, tt.found)
		}
	}
	for _, text := range []string{"", "ctrl-", "ctrl-1", "ab", "a,,b"} {
		if _, err := parseKeys(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
