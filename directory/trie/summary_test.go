package trie

import (
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// Nothing is left out on the word of few: it takes more than half of a cell's
// holders, and the most that any of them says counts.
func TestSummaryTakesMoreThanHalf(t *testing.T) {
	f := Fence{Holders: []grid.SiteID{"a", "b", "c", "d"}}
	low, high := Summary{Processors: 1, Price: 5}, Summary{Processors: 8, Price: 3}
	f.Testify("a", &low, 10)
	f.Testify("x", &low, 10) // not a holder
	f.Testify("b", &low, 10)
	f.Testify("b", &low, 10)
	if s, ok := f.Summary(0); ok {
		t.Errorf("two of four make the summary %+v", s)
	}
	f.Testify("c", &high, 20)
	if s, ok := f.Summary(0); !ok || s != high {
		t.Errorf("summary %+v, %v, want the most of all: %+v", s, ok, high)
	}
	if s, ok := f.Summary(10); ok {
		t.Errorf("one word that has not expired makes the summary %+v", s)
	}
	f.Testify("c", nil, 20)
	if s, ok := f.Summary(0); ok {
		t.Errorf("after one took its word back, %+v", s)
	}
}

// A summary is barren only for what none of its quotes has, and covers what it was
// extended to.
func TestSummaryCoversWhatItIsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1000)
		type offer struct{ processors, free, speed, price int64 }
		draw := func(label string) offer {
			return offer{number.Draw(t, label), number.Draw(t, label), number.Draw(t, label), number.Draw(t, label)}
		}
		s := Nothing()
		var offers []offer
		for range rapid.IntRange(0, 5).Draw(t, "quotes") {
			o := draw("quote")
			offers = append(offers, o)
			one := SummaryOf(o.processors, o.free, o.speed, grid.Price(o.price))
			before := s
			if s.Merge(one); (s == before) != before.Covers(one) {
				t.Fatalf("%+v covers %+v: %v, and merged they are %+v", before, one, before.Covers(one), s)
			}
		}
		least := draw("need")
		need := Need{Processors: least.processors, Free: least.free, Speed: least.speed, Price: grid.Price(least.price)}
		for _, o := range offers {
			if !s.Covers(SummaryOf(o.processors, o.free, o.speed, grid.Price(o.price))) {
				t.Fatalf("%+v does not cover %+v", s, o)
			}
			passes := o.processors >= least.processors && o.free >= least.free && o.speed >= least.speed && (least.price == 0 || o.price <= least.price)
			if passes && s.Barren(need) {
				t.Fatalf("%+v is barren for %+v, which %+v has", s, need, o)
			}
		}
	})
}

// Numbers are rounded up to a few bits, by no more than an eighth with four.
func TestRoundUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1<<40)
		if v := number.Draw(t, "number"); roundUp(v, 4) < v || roundUp(v, 4) > v+v/8 || v < 16 && roundUp(v, 4) != v {
			t.Fatalf("%d rounded up is %d", v, roundUp(v, 4))
		}
	})
}

func TestBarren(t *testing.T) {
	s := SummaryOf(8, 4, 2, 3)
	for _, tt := range []struct {
		need Need
		want bool
	}{
		{Need{}, false}, {Need{8, 4, 2, 3}, false},
		{Need{Processors: 9}, true}, {Need{Free: 5}, true}, {Need{Speed: 3}, true}, {Need{Price: 2}, true},
	} {
		if got := s.Barren(tt.need); got != tt.want || tt.need.Selective() != (tt.need != Need{}) {
			t.Errorf("%+v is barren for %+v: %v", s, tt.need, got)
		}
	}
}
