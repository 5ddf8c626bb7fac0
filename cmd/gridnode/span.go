package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

const spanWant = "want minutes (90), [d-]hh:mm:ss (1-12:00:00) or a duration (1h30m, 45s, 2d)"

// parseSpan reads a span as Slurm's -t takes it (minutes, mm:ss, hh:mm:ss, d-hh,
// d-hh:mm, d-hh:mm:ss) or as a duration with units d, h, m, s, ms. It must be
// more than 0 and at most 10 years.
func parseSpan(s string) (grid.Time, error) {
	const spanLimit = 10 * 365 * grid.Day
	span, ok := slurmSpan(s)
	if !ok {
		span, ok = unitSpan(s)
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("%q is not a span of time: %s", s, spanWant)
	case span <= 0:
		return 0, fmt.Errorf("%q is not more than zero: %s", s, spanWant)
	case span > spanLimit:
		return 0, fmt.Errorf("%q is more than ten years", s)
	}
	return span, nil
}

// slurmSpan reads digits, colons and at most one dash before the hours.
func slurmSpan(s string) (grid.Time, bool) {
	days, rest, dashed := strings.Cut(s, "-")
	if !dashed {
		days, rest = "0", s
	}
	d, ok := smallNumber(days)
	if !ok {
		return 0, false
	}
	var fields [3]grid.Time // hours, minutes, seconds
	parts := strings.Split(rest, ":")
	if len(parts) > len(fields) {
		return 0, false
	}
	first := 0 // what the first part counts
	switch {
	case dashed: // d-hh, d-hh:mm, d-hh:mm:ss
	case len(parts) < 3: // mm, mm:ss
		first = 1
	}
	for i, part := range parts {
		n, ok := smallNumber(part)
		if !ok || i > 0 && n > 59 {
			return 0, false
		}
		fields[first+i] = n
	}
	return d*grid.Day + fields[0]*grid.Hour + fields[1]*grid.Minute + fields[2]*grid.Second, true
}

func smallNumber(s string) (grid.Time, bool) {
	if s == "" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return grid.Time(n), err == nil && n >= 0
}

// unitSpan reads a Go duration that may begin with a number of days.
func unitSpan(s string) (grid.Time, bool) {
	var span grid.Time
	if days, rest, found := strings.Cut(s, "d"); found {
		n, ok := smallNumber(days)
		if !ok {
			return 0, false
		}
		span = n * grid.Day
		if s = rest; s == "" {
			return span, true
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, false
	}
	return span + grid.FromDuration(d), true
}

// formatSpan prints a span for people: whole seconds as [d-]hh:mm:ss or mm:ss,
// shorter ones in milliseconds.
func formatSpan(t grid.Time) string {
	if t < 0 {
		return "-" + formatSpan(-t)
	}
	if t == 0 {
		return "0"
	}
	if t < 10*grid.Second {
		return strconv.FormatFloat(t.Seconds(), 'f', 3, 64) + "s"
	}
	t = (t + grid.Second/2) / grid.Second
	seconds, minutes, hours := t%60, t/60%60, t/3600
	switch {
	case hours >= 24:
		return fmt.Sprintf("%d-%02d:%02d:%02d", hours/24, hours%24, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// parseDeadline reads a span from now, or an instant: RFC 3339, or the same
// without seconds or zone, which is then local time. It must lie after now.
func parseDeadline(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		at, err := time.ParseInLocation(layout, s, time.Local)
		if err != nil {
			continue
		}
		if !at.After(now) {
			return time.Time{}, fmt.Errorf("%q is over: it is %s now", s, now.Format(time.RFC3339))
		}
		return at, nil
	}
	span, err := parseSpan(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w, or an instant (2006-01-02T15:04:05Z)", err)
	}
	return now.Add(span.Duration()), nil
}
