package grid_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gridnode/grid"
)

func TestTime(t *testing.T) {
	for _, tt := range []struct {
		in   grid.Time
		want string
	}{
		{0, "0s"}, {grid.Hour + 2*grid.Minute + 3*grid.Second, "1h2m3s"}, {grid.Never, "never"}, {1500, "1.5ms"},
	} {
		if got := tt.in.String(); got != tt.want {
			t.Errorf("Time(%d).String() = %q, want %q", int64(tt.in), got, tt.want)
		}
	}
	if got := grid.Time(math.MaxInt64 / 2).Duration(); got != math.MaxInt64 {
		t.Errorf("a span beyond time.Duration became %v", got)
	}
	if got := grid.FromDuration(3*time.Second + 999); got != 3*grid.Second {
		t.Errorf("FromDuration = %d", int64(got))
	}
	if got := grid.Never.Add(1); got != grid.Never {
		t.Errorf("Never+1 = %d", int64(got))
	}
	if got := grid.Time(5).Add(-2); got != 3 {
		t.Errorf("5-2 = %d", int64(got))
	}
}

func TestJobIDText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := grid.JobID{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		got, err := grid.ParseJobID(id.String())
		if err != nil || got != id {
			t.Fatalf("ParseJobID(%q) = %v, %v", id.String(), got, err)
		}
	})
	for _, bad := range []string{"", "abc", "0000000000000000000000000u", "00000000000000000000000000000"} {
		if _, err := grid.ParseJobID(bad); !errors.Is(err, grid.ErrJobID) {
			t.Errorf("ParseJobID(%q): %v", bad, err)
		}
	}
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) grid.TaskID {
			return grid.TaskID{
				Job:   grid.JobID{Hi: rapid.Uint64Range(0, 2).Draw(t, label), Lo: rapid.Uint64Range(0, 2).Draw(t, label)},
				Epoch: rapid.Uint32Range(0, 2).Draw(t, label),
			}
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v: %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%v ≤ %v ≤ %v but not %v ≤ %v", a, b, c, a, c)
		}
	})
}

func TestCostAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := grid.Price(rapid.Int64Range(0, int64(grid.CreditsMax)).Draw(t, "price"))
		processors := rapid.Int64Range(1, 1<<24).Draw(t, "processors")
		span := grid.Time(rapid.Int64Range(0, int64(grid.SpanMax)).Draw(t, "span"))
		want := new(big.Int).Mul(big.NewInt(int64(price)), big.NewInt(processors))
		want.Mul(want, big.NewInt(int64(span)))
		want.Add(want, big.NewInt(int64(grid.Hour)/2))
		want.Div(want, big.NewInt(int64(grid.Hour)))
		if limit := big.NewInt(int64(grid.CreditsMax)); want.Cmp(limit) > 0 {
			want = limit
		}
		if got := grid.CostProcessorTime.Cost(price, processors, span); int64(got) != want.Int64() {
			t.Fatalf("cost %d, want %v", got, want)
		}
		if a, b := grid.CostPaper.Cost(price, processors, span), grid.CostProcessorTime.Cost(price, 1, span); a != b {
			t.Fatalf("eq. 3 charges %d for %d processors and %d for one", a, processors, b)
		}
	})
}

func TestCostModelText(t *testing.T) {
	for _, m := range []grid.CostModel{grid.CostProcessorTime, grid.CostPaper} {
		if got, err := grid.ParseCostModel(m.String()); err != nil || got != m {
			t.Errorf("%v is parsed as %v, %v", m, got, err)
		}
	}
	if _, err := grid.ParseCostModel("free"); err == nil {
		t.Error("an unknown cost model was parsed")
	}
}

func TestCreditsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := grid.Credits(rapid.Int64Range(0, int64(grid.CreditsMax)/int64(grid.Credit)*int64(grid.Credit)).Draw(t, "c"))
		if got, err := grid.ParseCredits(c.String()); err != nil || got != c {
			t.Fatalf("ParseCredits(%q) = %d, %v; want %d", c.String(), got, err, c)
		}
	})
	for _, bad := range []string{"", ".", "1.", "-1", "1e3", "1.2345678", "99999999999999999999", "0x10", "1 "} {
		if _, err := grid.ParseCredits(bad); !errors.Is(err, grid.ErrCredits) {
			t.Errorf("ParseCredits(%q): %v", bad, err)
		}
	}
	if got := grid.Credits(math.MinInt64).String(); got != "-9223372036854.775808" {
		t.Errorf("smallest amount prints as %s", got)
	}
}

// "d = 2·D(J, R_k)" needs D at home to be exactly what the trace says (eq. 2, 5).
func TestWorkAtHomeIsTheGivenSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := grid.Time(rapid.Int64Range(1, int64(365*grid.Day)).Draw(t, "span"))
		home := grid.Rating{Speed: rapid.Int64Range(1, 100_000).Draw(t, "speed"), Bandwidth: rapid.Int64Range(1, 200_000).Draw(t, "bandwidth")}
		comm := rapid.Int64Range(0, 1000).Draw(t, "communication")
		if got := grid.WorkOf(span, comm, home).At(home); got != span {
			t.Fatalf("%d became %d", span, got)
		}
		faster := grid.Rating{Speed: home.Speed * 2, Bandwidth: home.Bandwidth * 2}
		if got := grid.WorkOf(span, comm, home).At(faster); got < span/2 || got > span/2+2 {
			t.Fatalf("twice as fast takes %d of %d", got, span)
		}
	})
}

// Eq. 2 with table 1: a job of KTH (900 MIPS, 1.6 Gb/s) at NASA (930, 4).
func ExampleWork_At() {
	kth := grid.Rating{Speed: 900, Bandwidth: 1600}
	nasa := grid.Rating{Speed: 930, Bandwidth: 4000}
	work := grid.WorkOf(1000*grid.Second, 100, kth) // 10 % communication
	fmt.Println(work.At(kth), work.At(nasa))
	// Output: 16m40s 15m10.967742s
}

func TestWorkSaturates(t *testing.T) {
	w := grid.WorkOf(grid.SpanMax, 500, grid.Rating{Speed: grid.RatingMax, Bandwidth: grid.RatingMax})
	if got := w.At(grid.Rating{Speed: 1, Bandwidth: 1}); got != grid.SpanMax {
		t.Errorf("absurd work takes %v", got)
	}
}

type note struct{}

func (note) MessageKind() grid.Kind { return 1 }

type row struct{}

func (row) RecordKey() string            { return "row" }
func (row) AppendRecord(b []byte) []byte { return b }

func TestOutboxKeepsOrder(t *testing.T) {
	var out grid.Outbox
	for range 2 { // the second round uses the memory of the first
		out.Save(row{})
		out.Send("b", note{})
		out.Closest(grid.Key{1})
		out.Start(grid.Task{Limit: 5})
		out.Publish("topic", note{})
		out.Tell(grid.Event{Kind: grid.JobEnded})
		out.Delete(row{})
		out.Kill(grid.Task{Cause: "why"})
		out.Answer(7, "yes")
		out.Local(grid.Tick{})
		want := []grid.Effect{
			{Kind: grid.EffectSave}, {Kind: grid.EffectSend}, {Kind: grid.EffectClosest}, {Kind: grid.EffectStart},
			{Kind: grid.EffectPublish, Index: 1}, {Kind: grid.EffectTell}, {Kind: grid.EffectDelete, Index: 1},
			{Kind: grid.EffectKill, Index: 1}, {Kind: grid.EffectAnswer},
		}
		if fmt.Sprint(out.Effects) != fmt.Sprint(want) {
			t.Fatalf("effects %v, want %v", out.Effects, want)
		}
		if out.Sends[1].To != "topic" || out.Tasks[1].Cause != "why" || out.Answers[0].Token != 7 || len(out.Locals) != 1 {
			t.Fatalf("outbox %+v", out)
		}
		out.Reset()
		if len(out.Effects)+len(out.Sends)+len(out.Records)+len(out.Tasks)+len(out.Keys)+len(out.Events)+len(out.Answers)+len(out.Locals) != 0 {
			t.Fatalf("not empty after Reset: %+v", out)
		}
	}
}

// TestOutboxFeedsOnce: what follows from an input is fed on after it, what stood there
// before is left alone, and nothing is found twice.
func TestOutboxFeedsOnce(t *testing.T) {
	var out grid.Outbox
	if !out.Empty() {
		t.Error("a new outbox is not empty")
	}
	out.Local("another's")
	out.Local(1)
	out.Local(2)
	var fed []grid.Input
	apply := func(in grid.Input) {
		if fed = append(fed, in); in == 1 {
			out.Local(3)
		}
	}
	out.Feed(1, apply)
	out.Feed(1, apply)
	if want := []grid.Input{1, 2, 3}; !slices.Equal(fed, want) {
		t.Errorf("fed %v, want %v", fed, want)
	}
	if len(out.Locals) != 1 || out.Empty() {
		t.Errorf("%v is left, want what stood there before", out.Locals)
	}
}

func BenchmarkOutbox(b *testing.B) {
	var out grid.Outbox
	b.ReportAllocs()
	for b.Loop() {
		out.Save(row{})
		out.Send("b", note{})
		out.Tell(grid.Event{})
		out.Reset()
	}
}

func TestSlabGivesDistinctZeroValues(t *testing.T) {
	var slab grid.Slab[int]
	seen := map[*int]bool{}
	for range 1000 {
		p := slab.New()
		if *p != 0 || seen[p] {
			t.Fatalf("value %p given out twice or not zero: %d", p, *p)
		}
		*p, seen[p] = 1, true
	}
}
