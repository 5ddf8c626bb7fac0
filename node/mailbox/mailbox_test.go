package mailbox

import (
	"slices"
	"testing"
)

func TestBox(t *testing.T) {
	b := New[int]()
	b.Put(1)
	b.Put(2)
	<-b.Wake() // one token for both
	if items, closed := b.Take(); !slices.Equal(items, []int{1, 2}) || closed || b.Len() != 0 {
		t.Fatalf("take: %v, closed %t, %d left, want 1 and 2 from an open box", items, closed, b.Len())
	}
	b.Put(3)
	b.Close()
	b.Put(4) // says nothing: nobody reads it
	<-b.Wake()
	if items, closed := b.Take(); !slices.Equal(items, []int{3}) || !closed {
		t.Fatalf("take after the end: %v, closed %t, want 3 and closed", items, closed)
	}
}
