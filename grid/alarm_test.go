package grid

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAlarms compares the heap with a list that is searched.
func TestAlarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var alarms Alarms[int]
		all := make([]Alarm[int], 8)
		order := map[int]int{} // when each was set
		at := map[int]Time{}
		clock := 0
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "alarm")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				when := Time(rapid.IntRange(0, 5).Draw(t, "at"))
				alarms.Set(&all[i], when)
				clock++
				order[i], at[i] = clock, when
			case 1:
				alarms.Stop(&all[i])
				delete(at, i)
			case 2:
				now := Time(rapid.IntRange(0, 5).Draw(t, "now"))
				want := -1
				for j, when := range at {
					if when <= now && (want < 0 || when < at[want] || when == at[want] && order[j] < order[want]) {
						want = j
					}
				}
				got := alarms.Pop(now)
				if want < 0 && got != nil || want >= 0 && got != &all[want] {
					t.Fatalf("popped %v at %v, want alarm %d of %v", got, now, want, at)
				}
				if want >= 0 {
					delete(at, want)
				}
			}
			next := Never
			for _, when := range at {
				next = min(next, when)
			}
			if alarms.Next() != next || alarms.Len() != len(at) {
				t.Fatalf("next %v of %d, want %v of %d", alarms.Next(), alarms.Len(), next, len(at))
			}
		}
	})
}

func TestAlarmForNeverIsStopped(t *testing.T) {
	var alarms Alarms[int]
	var one Alarm[int]
	alarms.Set(&one, 5)
	alarms.Set(&one, Never)
	if alarms.Len() != 0 {
		t.Error("an alarm for never is still set")
	}
}

// TestAlarmSetBy: an alarm that is not set, or later than it was to be, is told.
func TestAlarmSetBy(t *testing.T) {
	var as Alarms[int]
	var a Alarm[int]
	by := func(latest Time, want string) {
		t.Helper()
		err := a.Check(latest)
		if a.SetBy(latest) != (want == "") || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("by %v: %t, %v, want %q", latest, a.SetBy(latest), err, want)
		}
	}
	by(Never, "no timer")
	as.Set(&a, 5)
	by(4, "looked at again")
	by(5, "")
	by(6, "")
	as.Stop(&a)
	by(5, "no timer")
}
