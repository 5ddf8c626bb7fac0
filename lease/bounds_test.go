package lease

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// limit is a field with what it may be at least and at most.
type limit[T any] struct {
	name      string
	set       func(*T, int64)
	low, high int64
}

// open stands for no limit on that side.
const open = 1<<63 - 1

// keep checks that what is at a limit is taken, and what is beyond is not.
func keep[T any](t *testing.T, good T, limits []limit[T], take func(T) error) {
	t.Helper()
	for _, l := range limits {
		for _, v := range []int64{l.low - 1, l.low, l.high, l.high + 1} {
			x := good
			if l.low == -open && v <= l.low || l.high == open && (v == open || v < l.low-1) {
				continue
			}
			l.set(&x, v)
			if err := take(x); (err == nil) != (l.low <= v && v <= l.high) {
				t.Errorf("%s of %d, from %d to %d: %v", l.name, v, l.low, l.high, err)
			}
		}
	}
}

func TestWantsAtTheirBounds(t *testing.T) {
	keep(t, Want{Processors: 1, Span: grid.Hour}, []limit[Want]{
		{"processors", func(w *Want, v int64) { w.Processors = v }, 1, ProcessorsMax},
		{"span", func(w *Want, v int64) { w.Span = grid.Time(v) }, 1, int64(SpanLimit)},
		{"patience", func(w *Want, v int64) { w.Patience = grid.Time(v) }, 0, int64(PatienceLimit)},
		{"hold", func(w *Want, v int64) { w.Hold = grid.Time(v) }, 0, int64(HoldLimit)},
		{"ttl", func(w *Want, v int64) { w.TTL = int32(v) }, 0, TTLMax},
		{"within", func(w *Want, v int64) { w.Within = grid.Time(v) }, 0, int64(grid.SpanMax)},
		{"most", func(w *Want, v int64) { w.Most = grid.Price(v) }, 0, int64(grid.CreditsMax)},
		{"age", func(w *Want, v int64) { w.Age = grid.Time(v) }, 0, int64(grid.SpanMax)},
	}, func(w Want) error {
		b, out := newBook(t, "a", 4), grid.Outbox{}
		before := state(b)
		_, err := b.Request(grid.Hour, "b", w, &out)
		if err != nil && (!errors.Is(err, ErrBounds) || state(b) != before || len(out.Effects) > 0) {
			t.Errorf("%+v: %v, and the book is %s", w, err, state(b))
		}
		return err
	})
}

func TestConfigurationsAtTheirBounds(t *testing.T) {
	cluster, err := lrms.New(lrms.Config{Processors: 4})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, Config{Site: "a"}, []limit[Config]{ // 0 is the default
		{"hold", func(c *Config, v int64) { c.Hold = grid.Time(v) }, 0, int64(HoldLimit)},
		{"grace", func(c *Config, v int64) { c.Grace = grid.Time(v) }, 0, int64(HoldLimit)},
		{"span", func(c *Config, v int64) { c.SpanMax = grid.Time(v) }, 0, int64(SpanLimit)},
		{"drift", func(c *Config, v int64) { c.Drift = v }, 0, 100_000},
		{"term", func(c *Config, v int64) { c.Term = grid.Time(v) }, int64(grid.Second), int64(TermMax)},
		{"repetition", func(c *Config, v int64) { c.Retry = grid.Time(v) }, 0, open},
	}, func(c Config) error {
		_, err := New(c, cluster)
		return err
	})
	if _, err := New(Config{}, cluster); err == nil {
		t.Error("a book of no site")
	}
	keep(t, MatchConfig{}, []limit[MatchConfig]{
		{"threshold", func(c *MatchConfig, v int64) { c.Threshold = v }, 0, 1_000_000},
		{"delegation cycle", func(c *MatchConfig, v int64) { c.DelegationCycle = grid.Time(v) }, int64(grid.Second), int64(grid.Day)},
		{"matchmaking cycle", func(c *MatchConfig, v int64) { c.MatchCycle, c.Patience = grid.Time(v), 1 }, int64(grid.Second), int64(grid.Day)},
		{"ttl", func(c *MatchConfig, v int64) { c.TTL = int32(v) }, 0, TTLMax},
		{"phase", func(c *MatchConfig, v int64) { c.Phase = grid.Time(v) }, 0, int64(grid.Day)},
		{"patience", func(c *MatchConfig, v int64) { c.Patience = grid.Time(v) }, 0, int64(PatienceLimit)},
		{"slack", func(c *MatchConfig, v int64) { c.Slack = grid.Time(v) }, 0, int64(grid.Day)},
		{"ordering", func(c *MatchConfig, v int64) { c.Ordering = Ordering(max(v, 0)) }, -open, int64(OrderGossip)},
		{"selection", func(c *MatchConfig, v int64) { c.Selection = Selection(max(v, 0)) }, -open, int64(SelectWidest)},
		{"policy", func(c *MatchConfig, v int64) { c.Policy = Policy(max(v, 0)) }, -open, int64(XSTRD)},
	}, func(c MatchConfig) error {
		b := newBook(t, "a", 4)
		_, err := NewMatchmaker(c, b.cluster, b, nil, rand.New(rand.NewPCG(1, 1)))
		if err != nil && !errors.Is(err, ErrBounds) {
			t.Errorf("%+v: %v", c, err)
		}
		return err
	})
	for _, c := range []MatchConfig{{Retry: -1}, {Rounds: -1}, {Policy: SSTRD, Threshold: 1}, {Links: []Link{{}}}, {Links: []Link{{"b", Parent + 1}}}, {Links: make([]Link, LinksMax+1)}} {
		b := newBook(t, "a", 4)
		if _, err := NewMatchmaker(c, b.cluster, b, nil, rand.New(rand.NewPCG(1, 1))); !errors.Is(err, ErrBounds) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestRecordsOutOfBounds: a record that no book has stored is an error.
func TestRecordsOutOfBounds(t *testing.T) {
	good := entry{Lease: Lease{
		ID: ID{"a", 5}, Lender: "b", Processors: 3, State: Active, Epoch: 9, Since: 1, End: 2, Limit: 3, Span: 4,
		Subject: grid.JobID{Lo: 1}, Sink: "a", Source: "b", Key: 9, Hops: 1, Price: 5, Most: 6,
	}}
	const instant = int64(grid.Never / 2)
	keep(t, good, []limit[entry]{
		{"processors", func(e *entry, v int64) { e.Processors = v }, 1, ProcessorsMax},
		{"state", func(e *entry, v int64) { e.State = State(v) }, int64(Held), int64(Ending)},
		{"hold", func(e *entry, v int64) { e.hold = grid.Time(v) }, 0, int64(HoldLimit)},
		{"price", func(e *entry, v int64) { e.Price = grid.Price(v) }, 0, int64(grid.CreditsMax)},
		{"most", func(e *entry, v int64) { e.Most = grid.Price(v) }, 0, int64(grid.CreditsMax)},
		{"since", func(e *entry, v int64) { e.Since = grid.Time(v) }, 0, instant},
		{"end", func(e *entry, v int64) { e.End = grid.Time(v) }, 0, instant},
		{"gone", func(e *entry, v int64) { e.gone = grid.Time(v) }, 0, instant},
		{"term", func(e *entry, v int64) { e.goneSpan = grid.Time(v) }, 0, instant},
	}, func(e entry) error {
		_, err := decodeRecord((*record)(&e).AppendRecord(nil))
		return err
	})
	for name, change := range map[string]func(*entry){
		"no number":                       func(e *entry) { e.Number = 0 },
		"no borrower":                     func(e *entry) { e.Borrower = "" },
		"no lender":                       func(e *entry) { e.Lender = "" },
		"a long name":                     func(e *entry) { e.Lender = grid.SiteID(strings.Repeat("x", siteIDMax+1)) },
		"no epoch":                        func(e *entry) { e.Epoch = 0 },
		"lent, and claimed by the lender": func(e *entry) { e.Lent, e.State = true, Claiming },
	} {
		e := good
		change(&e)
		if got, err := decodeRecord((*record)(&e).AppendRecord(nil)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}

	kept := kin{Kin: Kin{Link: Link{"b", Child}, Standing: Linked, Since: 1, Until: 2}, number: 3}
	keep(t, kept, []limit[kin]{
		{"relation", func(k *kin, v int64) { k.Relation = Relation(v) }, int64(Child), int64(Parent)},
		{"standing", func(k *kin, v int64) { k.Standing = Standing(v) }, int64(Linked), int64(Leaving)},
		{"since", func(k *kin, v int64) { k.Since = grid.Time(v) }, 0, int64(grid.Never)},
		{"until", func(k *kin, v int64) { k.Until = grid.Time(v) }, 0, int64(grid.Never)},
	}, func(k kin) error {
		_, err := decodeKin((*kinRecord)(&k).AppendRecord(nil))
		return err
	})
}

// TestRecoverPassesOver: records of others, whatever they are called, are not the book's.
func TestRecoverPassesOver(t *testing.T) {
	var out grid.Outbox
	b := newBook(t, "a", 4)
	if err := b.Recover(grid.Hour, func(yield func(string, []byte) bool) {
		for _, key := range []string{"", "job/7", "lea", "leases", "lease"} {
			if !yield(key, []byte{0xff}) {
				return
			}
		}
	}, &out); err != nil || len(b.Leases()) > 0 {
		t.Errorf("%v, and the book has %v", err, b.Leases())
	}
	if err := b.Recover(grid.Hour, func(yield func(string, []byte) bool) { yield(RecordPrefix+"a/7", []byte{0xff}) }, &out); err == nil {
		t.Error("a record that is none is taken")
	}
}

// TestKeysAreForgotten: the oldest go when there are too many, or when they are too old, and
// room is not kept for them.
func TestKeysAreForgotten(t *testing.T) {
	r := newRecent[int](grid.Hour, 100)
	for i := range 1000 {
		now := grid.Time(i)
		if !r.add(now, i) || r.add(now, i) || !r.has(now, i) {
			t.Fatalf("key %d is not remembered as it was added", i)
		}
		if r.has(now, i-100) || i >= 99 && !r.has(now, i-99) || len(r.known) > 100 {
			t.Fatalf("of the keys before %d, %d are known", i, len(r.known))
		}
	}
	if len(r.order) > 300 {
		t.Errorf("room for %d keys is kept, of 100", len(r.order))
	}
	if now := grid.Time(999) + grid.Hour; !r.has(now-1, 999) || r.has(now, 999) || len(r.known) > 0 {
		t.Errorf("%d keys are known after an hour", len(r.known))
	}
}
