package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPersist: a connection that broke is made again while there is hope, and no longer.
func TestPersist(t *testing.T) {
	over := errors.New("over")
	unavailable, refused := &Error{Code: CodeUnavailable}, &Error{Code: CodeRefused}
	type end struct {
		there bool
		err   error
	}
	gone := end{false, ErrNoDaemon}
	for _, tt := range []struct {
		name     string
		patience time.Duration
		been     bool
		ends     []end // the last one again and again
		want     error
		calls    int
		took     time.Duration // pauses
	}{
		{"it ends well", time.Minute, false, []end{{true, nil}}, nil, 1, 0},
		{"another error", time.Minute, true, []end{{true, over}}, over, 1, 0},
		{"a refusal", time.Minute, true, []end{{true, refused}}, refused, 1, 0},
		{"never been there", time.Minute, false, []end{gone}, ErrNoDaemon, 1, 0},
		{"without patience", 0, true, []end{{true, ErrBroken}}, ErrBroken, 1, 0},
		{"it comes back", time.Minute, false, []end{{true, ErrBroken}, gone, {false, unavailable}, {true, nil}}, nil, 4, 700 * time.Millisecond},
		{"it stays away", time.Second, true, []end{gone}, ErrNoDaemon, 4, 700 * time.Millisecond},
		{"it breaks off after each step", time.Second, false, []end{{true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken},
			{true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, ErrBroken}, {true, over}}, over, 13, 1200 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, begun := 0, time.Now()
				err := persist(t.Context(), tt.patience, tt.been, func() (bool, error) {
					e := tt.ends[min(calls, len(tt.ends)-1)]
					calls++
					return e.there, e.err
				})
				if took := time.Since(begun); !errors.Is(err, tt.want) || calls != tt.calls || took != tt.took {
					t.Errorf("%v after %d calls and %v, want %v, %d, %v", err, calls, took, tt.want, tt.calls, tt.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := persist(ctx, time.Hour, true, func() (bool, error) { return false, ErrNoDaemon }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when its context ends: %v", err)
		}
	})
}
