package guest

import (
	"strings"
	"testing"
	"time"

	"gridnode/grid"
)

func at(t *testing.T, zone *time.Location, text string) grid.Time {
	t.Helper()
	v, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return grid.Time(v.UnixMicro())
}

func TestHoursCover(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine knows no time zones:", err)
	}
	for _, tt := range []struct {
		name, hours, start string
		zone               *time.Location
		span               grid.Time
		want               bool
	}{
		{"within a day", "08:00-18:00", "2030-03-04 09:00", time.UTC, grid.Hour, true},
		{"to its very end", "08:00-18:00", "2030-03-04 17:00", time.UTC, grid.Hour, true},
		{"beyond its end", "08:00-18:00", "2030-03-04 17:01", time.UTC, grid.Hour, false},
		{"before its begin", "08:00-18:00", "2030-03-04 07:59", time.UTC, grid.Hour, false},
		{"across midnight", "20:00-06:00", "2030-03-04 22:00", time.UTC, 8 * grid.Hour, true},
		{"across midnight, too long", "20:00-06:00", "2030-03-04 22:00", time.UTC, 8*grid.Hour + grid.Minute, false},
		{"after midnight", "20:00-06:00", "2030-03-05 03:00", time.UTC, 3 * grid.Hour, true},
		{"by day", "20:00-06:00", "2030-03-05 12:00", time.UTC, grid.Minute, false},
		{"at the end of a month", "20:00-06:00", "2030-02-28 23:00", time.UTC, 2 * grid.Hour, true},
		{"two windows that touch", "20:00-24:00,00:00-06:00", "2030-03-04 21:00", time.UTC, 9 * grid.Hour, true},
		{"two windows with a gap", "08:00-12:00,13:00-18:00", "2030-03-04 11:00", time.UTC, 3 * grid.Hour, false},
		{"the whole day", "00:00-24:00", "2030-03-04 11:00", time.UTC, 100 * grid.Day, true},
		{"the whole day in two", "06:00-18:00,18:00-06:00", "2030-03-04 11:00", time.UTC, 100 * grid.Day, true},
		{"another zone", "20:00-06:00", "2030-03-04 20:30", berlin, grid.Hour, true},
		{"the night on which clocks go forward", "20:00-06:00", "2030-03-30 20:00", berlin, 9 * grid.Hour, true},
		{"and is an hour shorter", "20:00-06:00", "2030-03-30 20:00", berlin, 9*grid.Hour + grid.Minute, false},
		{"the night on which they go back", "20:00-06:00", "2030-10-26 20:00", berlin, 11 * grid.Hour, true},
		{"and is an hour longer", "20:00-06:00", "2030-10-26 20:00", berlin, 11*grid.Hour + grid.Minute, false},
		{"an hour that comes twice", "02:00-02:30", "2030-10-27 02:10", berlin, grid.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := ParseHours(tt.hours)
			if err != nil {
				t.Fatal(err)
			}
			start := at(t, tt.zone, tt.start)
			if got := h.Cover(start, start+tt.span, tt.zone); got != tt.want {
				t.Errorf("%v from %s for %v: %v, want %v", h, tt.start, tt.span, got, tt.want)
			}
		})
	}
	if start := at(t, berlin, "2030-03-04 20:30"); !(Hours{{20 * 60, 6 * 60}}).Cover(start, start+grid.Hour, berlin) || (Hours{{20 * 60, 6 * 60}}).Cover(start, start+grid.Hour, time.UTC) {
		t.Error("half past eight in the evening in Berlin is half past seven in UTC")
	}
}

func TestHoursAreParsed(t *testing.T) {
	for _, tt := range []struct{ text, want, wrong string }{
		{"20:00-06:00", "20:00-06:00", ""},
		{" 13:00-14:00 , 08:00-12:00", "08:00-12:00,13:00-14:00", ""},
		{"00:00-24:00", "00:00-24:00", ""},
		{"10:00-10:00", "", "empty"},
		{"24:00-10:00", "", "begins at 00:00"},
		{"10:00", "", "part of the day"},
		{"10-12", "", "part of the day"},
		{"25:00-12:00", "", "part of the day"},
		{"08:00-12:00,11:00-13:00", "", "overlap"},
		{"20:00-06:00,05:00-07:00", "", "overlap"},
		{"08:00-12:00,08:00-09:00", "", "overlap"},
		{"", "", "part of the day"},
		{strings.Repeat("10:00-11:00,", windowsMax) + "10:00-11:00", "", "17 windows, at most 16"},
	} {
		h, err := ParseHours(tt.text)
		if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) || tt.wrong == "" && (err != nil || h.String() != tt.want) {
			t.Errorf("%q: %v, %v, want %q or %q", tt.text, h, err, tt.want, tt.wrong)
		}
	}
}
