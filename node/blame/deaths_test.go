package blame

import (
	"testing"

	"gridnode/grid"
)

// TestVanished: a job speaks for itself by one death at which it was not there.
func TestVanished(t *testing.T) {
	job := func(n uint64) grid.JobID { return grid.JobID{Lo: n} }
	var d Deaths
	at := grid.Time(0)
	die := func(jobs ...uint64) (suspect []uint64) {
		at += grid.Minute
		for i, n := range jobs {
			if d.Vanished(at+grid.Time(i)*grid.Second, job(n)) {
				suspect = append(suspect, n)
			}
		}
		var stored Deaths // as after a restart, which a death is
		if err := stored.Recover(d.AppendRecord(nil)); err != nil {
			t.Fatal(err)
		}
		d = stored
		return suspect
	}
	for i, tt := range []struct{ jobs, want []uint64 }{
		{[]uint64{1, 2}, []uint64{1, 2}}, // either may have done it
		{[]uint64{1}, []uint64{1}},
		{[]uint64{2, 1, 1}, []uint64{1}}, // 2 was not there the second time; 1 died once
		{[]uint64{3}, nil},
		{[]uint64{1}, nil}, // and neither was 1 the last time
		{[]uint64{1, 3}, nil},
		{[]uint64{1, 3}, nil},
		{[]uint64{1, 3}, []uint64{1}}, // three more times: the fourth is forgotten
	} {
		if got := die(tt.jobs...); len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
			t.Errorf("death %d of %v: suspect %v, want %v", i+1, tt.jobs, got, tt.want)
		}
	}
	at += span
	if got := die(9); len(got) != 1 {
		t.Errorf("after a long time: %v", got)
	}
}
