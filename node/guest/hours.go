package guest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gridnode/grid"
)

// dayMinutes is how many minutes a day has on the dial. Days on which clocks change have
// more or fewer.
const dayMinutes = 24 * 60

// Window is a part of every day, in minutes since midnight on the dial of a zone. If it ends
// at or before its begin it ends on the next day.
type Window struct{ From, To int }

// Hours are parts of the day that do not overlap, by their begins; none: the whole day.
type Hours []Window

// windowsMax bounds the windows of one rule.
const windowsMax = 16

// ParseHours reads windows such as 20:00-06:00, with commas between them.
func ParseHours(text string) (Hours, error) {
	var h Hours
	for part := range strings.SplitSeq(text, ",") {
		w, err := parseWindow(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		h = append(h, w)
	}
	if len(h) > windowsMax {
		return nil, fmt.Errorf("%d windows, at most %d", len(h), windowsMax)
	}
	slices.SortFunc(h, func(a, b Window) int { return a.From - b.From })
	for i := range h {
		if next := h[(i+1)%len(h)]; len(h) > 1 && h[i].minutes() > (next.From-h[i].From+dayMinutes)%dayMinutes {
			return nil, fmt.Errorf("%v and %v overlap", h[i], next)
		}
	}
	return h, nil
}

func parseWindow(text string) (w Window, err error) {
	from, to, ok := strings.Cut(text, "-")
	if ok {
		if w.From, err = parseMinute(from); err == nil {
			w.To, err = parseMinute(to)
		}
	}
	switch {
	case !ok || err != nil:
		return w, fmt.Errorf("%q: want a part of the day such as 20:00-06:00", text)
	case w.From == dayMinutes:
		return w, fmt.Errorf("%q: a day begins at 00:00", text)
	case w.From == w.To:
		return w, fmt.Errorf("%q: it is empty; the whole day is 00:00-24:00", text)
	}
	return w, nil
}

func parseMinute(text string) (int, error) {
	if text == "24:00" {
		return dayMinutes, nil
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err
}

// minutes is how long the window is on the dial.
func (w Window) minutes() int {
	if w.To > w.From {
		return w.To - w.From
	}
	return w.To - w.From + dayMinutes
}

// String prints the window as it is read.
func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.To/60, w.To%60)
}

// String prints the hours as they are read.
func (h Hours) String() string {
	parts := make([]string, len(h))
	for i, w := range h {
		parts[i] = w.String()
	}
	return strings.Join(parts, ",")
}

// longest is the longest span within the hours, on the dial; windows that touch are one.
func (h Hours) longest() grid.Time {
	longest := 0
	for i := range h {
		minutes := h[i].minutes()
		for j := (i + 1) % len(h); j != i && h[j].From == (h[i].From+minutes)%dayMinutes; j = (j + 1) % len(h) {
			minutes += h[j].minutes()
		}
		longest = max(longest, minutes)
	}
	if longest >= dayMinutes {
		return grid.Never
	}
	return grid.Time(longest) * grid.Minute
}

// Cover reports whether all of the time from start to end is within the hours, by the dial
// of a zone.
func (h Hours) Cover(start, end grid.Time, zone *time.Location) bool {
	if len(h) == 0 || h.longest() == grid.Never {
		return true
	}
	for start < end {
		until, open := h.open(start, zone)
		if !open {
			return false
		}
		if until <= start { // the dial was put back into the window: it is a minute later at least
			until = start + grid.Minute
		}
		start = until
	}
	return true
}

// open returns until when the window lasts that an instant is in, if it is in one.
func (h Hours) open(at grid.Time, zone *time.Location) (until grid.Time, open bool) {
	t := time.UnixMicro(int64(at)).In(zone)
	minute := t.Hour()*60 + t.Minute()
	for _, w := range h {
		day := t.Day()
		switch {
		case w.From < w.To && minute >= w.From && minute < w.To:
		case w.From >= w.To && minute < w.To:
		case w.From >= w.To && minute >= w.From:
			day++
		default:
			continue
		}
		end := time.Date(t.Year(), t.Month(), day, w.To/60, w.To%60, 0, 0, zone)
		return grid.Time(end.UnixMicro()), true
	}
	return 0, false
}
