package p2p

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestBacklog: so many orders are carried out at a time, the others in turn, and those that find no room
// are refused; and so it is again when all are done.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const alive, most = 2, 3
		n := newNetwork(Config{})
		begun, proceed := make(chan int, 100), make(chan bool)
		b := backlog[int]{n: n, alive: alive, most: most, carry: func(o int) { begun <- o; <-proceed }}
		for range 3 {
			for o := range alive + most {
				if !b.add(o) {
					t.Fatalf("order %d is refused", o)
				}
				synctest.Wait()
			}
			if b.add(9) {
				t.Error("an order above the bound is taken")
			}
			var order []int
			for done := range alive + most {
				if want := min(alive, alive+most-done); len(begun)+len(order)-done != want {
					t.Errorf("%d are carried out when %d are done, want %d", len(begun)+len(order)-done, done, want)
				}
				for len(begun) > 0 {
					order = append(order, <-begun)
				}
				proceed <- true
				synctest.Wait()
			}
			if !slices.IsSorted(order) || len(order) != alive+most {
				t.Errorf("carried out: %v", order)
			}
		}
		n.cancel()
		if b.add(1) {
			t.Error("an order is taken when the network is closed")
		}
	})
}
