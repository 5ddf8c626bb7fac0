package access

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestTurnsOfAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		var order []uint32
		take := func(uid uint32) {
			go func() {
				leave, err := turns.Take(t.Context(), uid)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, uid)
				leave()
			}()
			synctest.Wait()
		}
		first, err := turns.Take(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			take(1)
			take(2)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := turns.Take(ctx, 3); err == nil {
				t.Error("a turn for one who went away")
			}
		}()
		synctest.Wait()
		cancel()
		take(4) // the last to come
		first()
		synctest.Wait()
		if want := []uint32{2, 4, 1, 2, 1, 2, 1}; !slices.Equal(order, want) {
			t.Errorf("turns of %v, want %v", order, want)
		}
		if leave, err := turns.Take(t.Context(), 3); err != nil {
			t.Error(err)
		} else {
			leave()
		}
		if len(turns.waiting) != 0 || turns.free != 1 {
			t.Errorf("%d wait, %d are free, want 0 and 1", len(turns.waiting), turns.free)
		}
	})
}
