package shim

import (
	"bufio"
	"testing"
)

// giver gives what it has to the first Read, and fails the test at the next.
type giver struct {
	*testing.T
	text []byte
}

func (o *giver) Read(b []byte) (int, error) {
	if o.text == nil {
		o.Fatal("it waits for more although there is something to do")
	}
	n := copy(b, o.text)
	o.text = nil
	return n, nil
}

// Orders that have come together are carried out together, and wait for no other.
func TestOrdersThatCameTogether(t *testing.T) {
	var text []byte
	for range ordersMax + 3 {
		text = appendFrame(text, kindRetire, nil)
	}
	for _, rest := range [][]byte{nil, {0, 0}, {0, 0, 0, 1}, {0, 0, 0, 9, byte(kindKill)}} {
		r := bufio.NewReader(&giver{t, append(text[:len(text):len(text)], rest...)})
		var buf []byte
		s := &shim{}
		for _, want := range []int{ordersMax, 3} {
			if orders, err := s.orders(r, &buf); err != nil || len(orders) != want {
				t.Errorf("%d orders, %v; want %d", len(orders), err, want)
			}
		}
	}
}
