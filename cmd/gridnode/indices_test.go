package main

import (
	"slices"
	"testing"
)

func TestParseIndices(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []int64
	}{
		{"0-3", []int64{0, 1, 2, 3}},
		{"7", []int64{7}},
		{"1,3,5", []int64{1, 3, 5}},
		{"0-10:5,2", []int64{0, 5, 10, 2}},
		{"0-10:4", []int64{0, 4, 8}},
	} {
		got, err := parseIndices(tt.in)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("parseIndices(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "a", "3-1", "0-9%2", "1,1", "0-3,2", "-1", "0-9:0", "5:2", "0-10000", "1,,2", "0-99999999999", "+1", "0-5000,6000-20000"} {
		if got, err := parseIndices(in); err == nil {
			t.Errorf("parseIndices(%q) = %d indices, want an error", in, len(got))
		}
	}
	if got, err := parseIndices("0-9999"); err != nil || len(got) != arrayMax {
		t.Errorf("parseIndices(0-9999) = %d indices, %v, want %d: the limit itself is allowed", len(got), err, arrayMax)
	}
}

func TestParseSize(t *testing.T) {
	const mega = 1 << 20
	for _, tt := range []struct {
		in   string
		want int64
	}{{"100", 100 * mega}, {"1G", 1 << 30}, {"512K", 512 << 10}, {"2gib", 2 << 30}, {"7B", 7}, {"0", 0}, {"1024T", 1 << 50}} {
		got, err := parseSize(tt.in, mega)
		if err != nil || got != tt.want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "G", "-1", "1.5G", "1X", "1025T", "+1", "1 G", "99999999999999999999"} {
		if got, err := parseSize(in, mega); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", in, got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"deadline", "budget", "dry-run", "site"}
	for _, tt := range []struct{ word, want string }{
		{"dedline", "deadline"}, {"deadlien", "deadline"}, {"buget", "budget"}, {"sites", "site"}, {"policy", ""}, {"x", ""},
	} {
		if got := nearest(tt.word, names); got != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for _, tt := range []struct {
		in   int64
		want string
	}{{0, "0"}, {99_999, "99999"}, {1 << 20, "1024K"}, {3159563776, "3013M"}, {1 << 50, "1024T"}} {
		if got := formatSize(tt.in); got != tt.want {
			t.Errorf("formatSize(%d) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
