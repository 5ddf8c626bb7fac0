package main

import (
	"strings"
	"testing"
)

func TestPercentFlag(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
		err  string
	}{
		{"80", 80, ""}, {"80%", 80, ""}, {"1", 1, ""}, {"150", 150, ""}, {"0.5%", 0.5, ""}, {"82.5 %", 82.5, ""},
		{"0.8", 0, "say 80"}, {"0.8", 0, "write 0.8%"}, {"0", 0, "less than one percent"}, {"-3", 0, "want percent"}, {"much", 0, "want percent"}, {"NaN", 0, "want percent"},
	} {
		got := 7.0
		err := percentFlag{&got}.Set(tt.text)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%q: %v, %v, want %v", tt.text, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || got != 7):
			t.Errorf("%q: %v, %v, want an error with %q and nothing set", tt.text, got, err, tt.err)
		}
	}
}
