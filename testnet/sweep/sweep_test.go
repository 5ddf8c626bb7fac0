package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary notes which runs begin and end, and how many are under way.
type diary struct {
	lock        sync.Mutex
	begun       []string
	under, most int
	memory, top int64
}

func (d *diary) run(name string, weight, memory int64, span time.Duration, err error) Run {
	return Run{Name: name, Weight: weight, Memory: memory, Do: func(ctx context.Context, pulse func(int64)) error {
		d.lock.Lock()
		d.begun = append(d.begun, name)
		d.under++
		d.memory += memory
		d.most, d.top = max(d.most, d.under), max(d.top, d.memory)
		d.lock.Unlock()
		defer func() {
			d.lock.Lock()
			d.under--
			d.memory -= memory
			d.lock.Unlock()
		}()
		pulse(500)
		select {
		case <-time.After(span):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// TestDo: the heaviest first, so many at a time as there are workers and memory, and one that
// needs more than there is alone; all end as soon as they can.
func TestDo(t *testing.T) {
	for _, tt := range []struct {
		name  string
		o     Options
		begun string // empty: whoever comes first
		most  int
		top   int64
		span  time.Duration
	}{
		{"one at a time", Options{Workers: 1}, "huge large middle small", 1, 9, 19 * time.Second},
		{"two", Options{Workers: 2}, "", 2, 13, 10 * time.Second},
		{"more than there are", Options{Workers: 9}, "", 4, 18, 10 * time.Second},
		{"little memory", Options{Workers: 9, Memory: 8}, "", 2, 9, 16 * time.Second},
		{"the next that fits", Options{Workers: 9, Memory: 12}, "", 2, 12, 16 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				var told []int64
				tt.o.Progress = func(done, total int64) {
					if total != 19 || done < 0 || len(told) > 0 && done < told[len(told)-1] {
						t.Errorf("progress of %d after %v, of %d", done, told, total)
					}
					told = append(told, done)
				}
				runs := []Run{
					d.run("small", 1, 2, time.Second, nil), d.run("middle", 2, 3, 2*time.Second, nil),
					d.run("huge", 10, 9, 10*time.Second, nil), d.run("large", 6, 4, 6*time.Second, nil),
				}
				begun := time.Now()
				if err := Do(t.Context(), runs, tt.o); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(d.begun, " "); tt.begun != "" && got != tt.begun {
					t.Errorf("begun %s, want %s", got, tt.begun)
				}
				if d.most != tt.most || d.top != tt.top {
					t.Errorf("%d at a time with %d of memory, want %d with %d", d.most, d.top, tt.most, tt.top)
				}
				if took := time.Since(begun); took != tt.span {
					t.Errorf("took %v, want %v", took, tt.span)
				}
				if last := told[len(told)-1]; last != 19 || tt.o.Workers == 1 && !slices.Contains(told, 5) {
					t.Errorf("progress %v, want half of the first run, and all in the end", told)
				}
			})
		})
	}
}

// TestFirstErrorEnds: those under way are told to end, the others are not begun, and the
// error says which run it was.
func TestFirstErrorEnds(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		var d diary
		runs := []Run{d.run("light", 1, 0, time.Second, nil), d.run("heavy", 9, 0, time.Hour, nil), d.run("middle", 5, 0, time.Minute, broken)}
		begun := time.Now()
		if err := Do(t.Context(), runs, Options{Workers: 2}); !errors.Is(err, broken) || err.Error() != "middle: broken" {
			t.Errorf("error %v, want that of the run in the middle", err)
		}
		if took := time.Since(begun); took != time.Minute || len(d.begun) != 2 {
			t.Errorf("it took %v and began %v, want a minute and two runs", took, d.begun)
		}
	})
}

// TestCancelled: a run that waits for memory waits no longer, and what the caller's context
// says is the error.
func TestCancelled(t *testing.T) {
	enough := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		runs := []Run{d.run("", 2, 5, time.Hour, nil), d.run("", 1, 5, time.Hour, nil)}
		begun := time.Now()
		if err := Do(ctx, runs, Options{Workers: 2, Memory: 8}); !errors.Is(err, enough) {
			t.Errorf("error %v, want the caller's", err)
		}
		if took := time.Since(begun); took != time.Minute || len(d.begun) != 1 {
			t.Errorf("it took %v and began %d runs, want a minute and one", took, len(d.begun))
		}
	})
	if err := Do(context.Background(), nil, Options{}); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
}

func TestAvailable(t *testing.T) {
	if got := availableIn("MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   20000000 kB\n"); got != 20_000_000<<10 {
		t.Errorf("%d bytes, want 20000000 KiB", got)
	}
	if got := availableIn("MemTotal: 5 kB\n"); got != 0 {
		t.Errorf("%d bytes, want 0: nobody can tell", got)
	}
}

// TestOver: runs are told in their order, whichever ends first, up to the first that fails; and
// all that are done elsewhere.
func TestOver(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name  string
		third error
		away  bool
		want  []int
	}{{"here", nil, false, []int{0, 1, 2, 3}}, {"one fails", failed, false, []int{0, 1}}, {"elsewhere", nil, true, []int{0, 1, 2, 3}}, {"elsewhere one fails", failed, true, nil}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				runs := []Run{d.run("a", 3, 0, 5*time.Second, nil), d.run("b", 9, 0, time.Second, nil), d.run("c", 1, 0, 9*time.Second, tt.third), d.run("d", 2, 0, 2*time.Second, nil)}
				var told []int
				o := Options{Workers: 4, Over: func(run int) { told = append(told, run) }}
				if tt.away {
					o.Away = func(context.Context, []Run, Options) error { return tt.third }
				}
				if err := Do(t.Context(), runs, o); !errors.Is(err, tt.third) || !slices.Equal(told, tt.want) {
					t.Errorf("told %v, %v; want %v, %v", told, err, tt.want, tt.third)
				}
				if tt.away && d.begun != nil {
					t.Errorf("%v are done here", d.begun)
				}
			})
		})
	}
}
