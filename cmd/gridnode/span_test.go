package main

import (
	"strings"
	"testing"
	"time"

	"gridnode/grid"
)

func TestParseSpan(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want grid.Time
	}{
		{"90", 90 * grid.Minute},
		{"1:30", grid.Minute + 30*grid.Second},
		{"90:00", 90 * grid.Minute},
		{"2:00:00", 2 * grid.Hour},
		{"1-12", 36 * grid.Hour},
		{"1-12:30", 36*grid.Hour + 30*grid.Minute},
		{"1-02:03:04", 26*grid.Hour + 3*grid.Minute + 4*grid.Second},
		{"0:0:1", grid.Second},
		{"1h30m", 90 * grid.Minute},
		{"250ms", 250 * grid.Millisecond},
		{"2d", 2 * grid.Day},
		{"2d6h", 54 * grid.Hour},
	} {
		got, err := parseSpan(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("parseSpan(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestParseSpanRefuses(t *testing.T) {
	for _, in := range []string{"", "0", "-5", "-1h", "0s", "1:60", "1:2:3:4", "1-2-3", "h", "+5", "1:-3", "5 m", "d", "99999d", "1e3", "2d-3"} {
		if got, err := parseSpan(in); err == nil {
			t.Errorf("parseSpan(%q) = %v, want an error", in, got)
		} else if !strings.Contains(err.Error(), "\""+in+"\"") {
			t.Errorf("parseSpan(%q): %v, want the text in it", in, err)
		}
	}
}

func TestFormatSpan(t *testing.T) {
	for _, tt := range []struct {
		in   grid.Time
		want string
	}{
		{12 * grid.Millisecond, "0.012s"},
		{75 * grid.Second, "1:15"},
		{grid.Hour + 2*grid.Second, "1:00:02"},
		{50*grid.Hour + grid.Minute, "2-02:01:00"},
		{-75 * grid.Second, "-1:15"},
	} {
		if got := formatSpan(tt.in); got != tt.want {
			t.Errorf("formatSpan(%d) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestParseDeadline(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want time.Time
	}{
		{"1h", now.Add(time.Hour)},
		{"2026-03-01T13:30:00Z", now.Add(90 * time.Minute)},
		{"2026-03-01T14:30:00+02:00", now.Add(30 * time.Minute)},
	} {
		got, err := parseDeadline(tt.in, now)
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("parseDeadline(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"2026-03-01T11:00:00Z", "2026-13-01T11:00:00Z", "soon", "-1h"} {
		if got, err := parseDeadline(in, now); err == nil {
			t.Errorf("parseDeadline(%q) = %v, want an error", in, got)
		}
	}
}
