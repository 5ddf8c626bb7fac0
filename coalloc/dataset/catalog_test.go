package dataset

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// bench is a catalog with a driver that answers nothing by itself.
type bench struct {
	*testing.T
	c       *Catalog
	now     grid.Time
	out     grid.Outbox
	records map[string][]byte
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, now: grid.Hour, records: make(map[string][]byte)}
	b.boot()
	return b
}

func (b *bench) boot() {
	b.c = New(Config{Self: "self", Federation: "test"}, rand.New(rand.NewPCG(1, 1)))
	if err := b.c.Recover(b.now, maps.All(b.records)); err != nil {
		b.Fatal(err)
	}
}

// effects is what a step has ordered.
type effects struct {
	provide, find []grid.Key
	sends         []grid.Send
	answers       []any
	learnt        []string
}

func (b *bench) step(in grid.Input) (e effects) {
	b.Helper()
	b.c.Step(b.now, in, &b.out)
	if err := b.c.Audit(b.now); err != nil {
		b.Error(err)
	}
	for _, effect := range b.out.Effects {
		switch effect.Kind {
		case grid.EffectProvide:
			e.provide = append(e.provide, b.out.Keys[effect.Index])
		case grid.EffectProviders:
			e.find = append(e.find, b.out.Keys[effect.Index])
		case grid.EffectSend:
			e.sends = append(e.sends, b.out.Sends[effect.Index])
		case grid.EffectAnswer:
			e.answers = append(e.answers, b.out.Answers[effect.Index].Value)
		case grid.EffectSave:
			r := b.out.Records[effect.Index]
			b.records[r.RecordKey()] = r.AppendRecord(nil)
		case grid.EffectDelete:
			delete(b.records, b.out.Records[effect.Index].RecordKey())
		}
	}
	for _, in := range b.out.Locals {
		e.learnt = append(e.learnt, in.(*Learnt).Name)
	}
	b.out.Reset()
	return e
}

func (b *bench) hold(name string, size int64, shared bool) error {
	b.Helper()
	e := b.step(&Hold{Token: 1, Set: Set{DataSet: grid.DataSet{Name: name, Size: size}, Path: "/data/" + name, Shared: shared}})
	if len(e.answers) != 1 {
		b.Fatalf("answers %v", e.answers)
	}
	for _, key := range e.provide {
		b.step(&grid.Provided{Key: key, Stored: true})
	}
	return e.answers[0].(*Held).Err
}

// want has a data set looked up, of which the DHT names sites.
func (b *bench) want(name string, sites ...grid.SiteID) effects {
	b.Helper()
	if b.c.Want(b.now, name, &b.out) {
		b.Fatalf("%s is known already", name)
	}
	if e := b.step(grid.Tick{}); len(e.find) != 1 || e.find[0] != b.c.Key(name) {
		b.Fatalf("a look-up orders %+v", e)
	}
	return b.step(&grid.Providers{Key: b.c.Key(name), Peers: sites})
}

func (b *bench) inform(from grid.SiteID, name string, size int64, shared bool) effects {
	b.Helper()
	return b.step(&grid.Delivery{From: from, Message: &Inform{Name: name, Held: size >= 0, Size: max(size, 0), Shared: shared}})
}

func names(holders []Holder) (text string) {
	for _, h := range holders {
		text += string(h.Site)
	}
	return text
}

// TestAnnounce: a record is put into the DHT at once, and again at growing intervals, or
// soon if nobody has taken it; after a restart, too, and not after the set is dropped.
func TestAnnounce(t *testing.T) {
	b := newBench(t)
	e := b.step(&Hold{Token: 7, Set: Set{DataSet: grid.DataSet{Name: "a", Size: 5}, Path: "/a"}})
	if len(e.provide) != 1 || e.provide[0] != b.c.Key("a") {
		t.Fatalf("%+v", e)
	}
	var pauses []grid.Time
	for i := range 12 {
		b.step(&grid.Provided{Key: b.c.Key("a"), Stored: i != 1})
		next := b.c.NextTimer()
		pauses = append(pauses, next-b.now)
		b.now = next
		if e = b.step(grid.Tick{}); len(e.provide) != 1 {
			t.Fatalf("at %v: %+v", b.now, e)
		}
	}
	for i, want := range []grid.Time{announceMin, announceAgain, 2 * announceMin, 4 * announceMin} {
		if pauses[i] < want && i != 1 || pauses[i] > want+want/4+announceMin/4 {
			t.Errorf("pause %d is %v, want %v and at most a quarter more", i, pauses[i], want)
		}
	}
	if last := pauses[len(pauses)-1]; last < announceMax || last > announceMax+announceMax/4 {
		t.Errorf("it settles at %v, want %v", last, announceMax)
	}
	b.boot()
	if e = b.step(grid.Tick{}); len(e.provide) != 1 {
		t.Errorf("after a restart: %+v", e)
	}
	e = b.step(&Drop{Token: 1, Name: "a"})
	b.step(&grid.Provided{Key: b.c.Key("a"), Stored: true})
	if e.answers[0].(*Held).Err != nil || b.c.NextTimer() != grid.Never || len(b.records) != 0 || b.c.puts != 0 || len(b.c.keys) != 0 {
		t.Errorf("after it was dropped: %+v, next %v, %d records", e, b.c.NextTimer(), len(b.records))
	}
	if e = b.step(&Drop{Token: 1, Name: "a"}); !errors.Is(e.answers[0].(*Held).Err, ErrUnknown) {
		t.Errorf("dropped twice: %+v", e)
	}
}

// TestRecordsArePaced: a site that holds much announces a few sets at a time, all in the end.
func TestRecordsArePaced(t *testing.T) {
	b := newBench(t)
	const n = 20
	for i := range n {
		b.c.enter(b.now, Set{DataSet: grid.DataSet{Name: fmt.Sprint("d", i)}, Path: "/d"})
	}
	under := b.step(grid.Tick{}).provide
	seen := make(map[grid.Key]bool)
	for len(under) > 0 {
		if len(under) > putsAlive {
			t.Fatalf("%d at a time", len(under))
		}
		key := under[0]
		if seen[key] {
			t.Fatalf("%x is announced twice", key[:4])
		}
		seen[key] = true
		under = append(under[1:], b.step(&grid.Provided{Key: key, Stored: true}).provide...)
	}
	if len(seen) != n {
		t.Errorf("%d of %d are announced", len(seen), n)
	}
}

// TestHoldersAreAsked: whom the DHT names counts only if he says himself that he holds it,
// and only who was asked is heard.
func TestHoldersAreAsked(t *testing.T) {
	b := newBench(t)
	e := b.want("x", "a", "b", "self", "a", "c")
	if len(e.sends) != 3 {
		t.Fatalf("asked: %+v", e.sends)
	}
	b.inform("z", "x", 9, true) // nobody has asked it
	b.inform("a", "y", 9, true) // nor about that
	b.inform("a", "x", 10, true)
	b.inform("a", "x", 11, true) // it has said so already
	if _, known := b.c.Known("x"); known {
		t.Error("known although two have not answered")
	}
	b.inform("b", "x", -1, false)
	e = b.step(&grid.Undelivered{To: "c", Message: &Inquire{"x"}})
	a, known := b.c.Known("x")
	if len(e.learnt) != 1 || !known || names(a.Holders) != "a" || a.Size() != 10 || a.Named != 3 || a.Silent != 1 {
		t.Errorf("%+v, %v, %+v", e, known, a)
	}
	if !b.c.Want(b.now, "x", &b.out) {
		t.Error("it is not fresh")
	}
	b.now += freshFound
	e = b.want("x") // the DHT names nobody: who held it is asked all the same
	if len(e.sends) != 1 || e.sends[0].To != "a" {
		t.Errorf("asked: %+v", e.sends)
	}
	b.now = b.c.NextTimer() // it is silent now, and still counts
	b.step(grid.Tick{})
	if a, _ = b.c.Known("x"); names(a.Holders) != "a" || a.Silent != 1 {
		t.Errorf("a holder is silent: %+v", a)
	}
	for range 20 {
		b.now += freshFound
		b.want("x")
		b.now += askMax
		b.step(grid.Tick{})
	}
	if a, _ = b.c.Known("x"); len(a.Holders) != 0 {
		t.Errorf("a holder was silent for ten minutes: %+v", a)
	}
}

// TestHoldersInOrder: who holds a data set is known by ID, in whatever order they answered; and
// what cannot be delivered about one that is looked for no more changes nothing.
func TestHoldersInOrder(t *testing.T) {
	b := newBench(t)
	b.want("x", "a", "b", "c")
	for _, site := range []grid.SiteID{"c", "a", "b"} {
		b.inform(site, "x", 10, true)
	}
	b.step(&grid.Undelivered{To: "a", Message: &Inquire{"nobody asked"}})
	b.step(&grid.Undelivered{To: "a", Message: &Inquire{"x"}})
	if a, known := b.c.Known("x"); !known || names(a.Holders) != "abc" || a.Silent != 0 {
		t.Errorf("%v, %+v", known, a)
	}
}

// TestNobodyIsLookedForLessAndLess: what nobody holds is looked up again soon at first.
func TestNobodyIsLookedForLessAndLess(t *testing.T) {
	b := newBench(t)
	for _, want := range []grid.Time{freshNone, 2 * freshNone, 4 * freshNone, freshFound, freshFound} {
		b.want("x")
		if next := b.c.looks["x"].deadline; next-b.now != want || !b.c.Want(next-1, "x", &b.out) {
			t.Errorf("looked up again after %v, want %v", next-b.now, want)
		}
		b.now = b.c.looks["x"].deadline
	}
	b.want("x", "a")
	b.inform("a", "x", 1, true)
	b.now += freshFound
	b.want("x", "a")
	b.inform("a", "x", -1, true)
	if next := b.c.looks["x"].deadline; next-b.now != freshNone {
		t.Errorf("after it was held, looked up again after %v, want %v", next-b.now, freshNone)
	}
}

// TestMostHoldersCount: who says another size holds something else.
func TestMostHoldersCount(t *testing.T) {
	b := newBench(t)
	b.want("x", "a", "b", "c", "d")
	b.inform("a", "x", 10, true)
	b.inform("b", "x", 10, false)
	b.inform("c", "x", 1<<40, true)
	b.inform("d", "x", 1, true)
	a, _ := b.c.Known("x")
	if a.Size() != 10 || names(a.Holding(grid.SizeUnknown)) != "ab" || names(a.Holding(1)) != "d" || names(a.Holding(2)) != "" {
		t.Errorf("size %d, holding %v", a.Size(), a.Holding(grid.SizeUnknown))
	}
	if err := b.hold("x", 10, true); err != nil {
		t.Fatal(err)
	}
	if a, _ = b.c.Known("x"); names(a.Holding(10)) != "abself" {
		t.Errorf("with this site: %+v", a.Holders)
	}
	if none := (&Found{}); none.Size() != grid.SizeUnknown || none.Holding(grid.SizeUnknown) != nil {
		t.Errorf("of nobody: %d, %v", none.Size(), none.Holding(grid.SizeUnknown))
	}
}

// TestLiarsAreBounded: a DHT that names hundreds costs a bounded number of questions.
func TestLiarsAreBounded(t *testing.T) {
	b := newBench(t)
	var sites []grid.SiteID
	for i := range 10 * HoldersMax {
		sites = append(sites, grid.SiteID(fmt.Sprintf("s%03d", i)))
	}
	if e := b.want("x", sites...); len(e.sends) != HoldersMax {
		t.Errorf("%d are asked, want %d", len(e.sends), HoldersMax)
	}
	b.now += askMax
	b.step(grid.Tick{})
	if a, known := b.c.Known("x"); !known || a.Silent != HoldersMax {
		t.Errorf("%v, %+v", known, a)
	}
}

// TestLooksAreBounded: of many data sets a few are looked up at a time, and what was
// looked up longest ago is forgotten when there are too many.
func TestLooksAreBounded(t *testing.T) {
	b := newBench(t)
	under := 0
	var asked []grid.Key
	for i := range looksMax + 10 {
		b.c.Want(b.now, fmt.Sprint("x", i), &b.out)
		e := b.step(grid.Tick{})
		under += len(e.find)
		asked = append(asked, e.find...)
	}
	if under != looksAlive || len(b.c.looks) != looksMax {
		t.Fatalf("%d under way, %d in all", under, len(b.c.looks))
	}
	if e := b.step(&Find{Token: 3, Name: "more"}); len(e.answers) != 1 || !errors.Is(e.answers[0].(*Found).Err, ErrBusy) {
		t.Errorf("with no room: %+v", e)
	}
	learnt := 0
	for len(asked) > 0 {
		e := b.step(&grid.Providers{Key: asked[0]})
		asked = append(asked[1:], e.find...)
		learnt += len(e.learnt)
	}
	if learnt != looksMax || len(b.c.alive) != 0 || len(b.c.backlog) != 0 {
		t.Errorf("%d looked up, %d under way, %d wait", learnt, len(b.c.alive), len(b.c.backlog))
	}
	b.now += freshNone
	b.want("more")
	if len(b.c.looks) != looksMax || len(b.c.keys) != looksMax {
		t.Errorf("%d remembered, %d keys", len(b.c.looks), len(b.c.keys))
	}
}

// TestFindRefuses: users are told that a name is none, and that too many wait for the same data set.
func TestFindRefuses(t *testing.T) {
	b := newBench(t)
	if e := b.step(&Find{Token: 1, Name: "a name\n"}); len(e.answers) != 1 || e.answers[0].(*Found).Err == nil || len(e.find) > 0 {
		t.Errorf("of what is no name: %+v", e)
	}
	for i := range askersMax {
		if e := b.step(&Find{Token: uint64(i + 2), Name: "x"}); len(e.answers) > 0 {
			t.Fatalf("user %d is told %+v at once", i, e.answers[0])
		}
	}
	if e := b.step(&Find{Token: 99, Name: "x"}); len(e.answers) != 1 || !errors.Is(e.answers[0].(*Found).Err, ErrBusy) {
		t.Errorf("one more than may wait: %+v", e)
	}
	if e := b.step(&grid.Providers{Key: b.c.Key("x")}); len(e.answers) != askersMax {
		t.Errorf("%d are told in the end, want %d", len(e.answers), askersMax)
	}
}

// TestDHTIsSilent: a look-up ends although the driver never answers.
func TestDHTIsSilent(t *testing.T) {
	b := newBench(t)
	b.c.Want(b.now, "x", &b.out)
	b.step(&Find{Token: 5, Name: "x"})
	b.now = b.c.NextTimer()
	e := b.step(grid.Tick{})
	if len(e.answers) != 1 || len(e.learnt) != 1 || b.now > grid.Hour+findMax {
		t.Errorf("%+v at %v", e, b.now)
	} else if a := e.answers[0].(*Found); !errors.Is(a.Err, ErrUnanswered) {
		t.Errorf("a user is told %+v, as if nobody held it", a)
	}
	if e := b.step(&grid.Providers{Key: b.c.Key("x"), Peers: []grid.SiteID{"a"}}); len(e.sends) != 0 {
		t.Errorf("too late an answer: %+v", e)
	}
	b.want("y", "a")
	b.step(&grid.Delivery{From: "a", Message: &Inform{Name: "y", Held: true, Size: 10}})
	b.step(&Find{Token: 6, Name: "y"})
	b.now += findMax
	e = b.step(grid.Tick{})
	if a, known := b.c.Known("y"); !known || names(a.Holders) != "a" || !errors.Is(a.Err, ErrUnanswered) {
		t.Errorf("of who held it a moment ago is left %+v", a)
	}
}

// TestInquire: everybody learns whether a set is held, and nothing else.
func TestLend(t *testing.T) {
	b := newBench(t)
	name := TreeName(strings.Repeat("a", 64))
	e := b.step(&Lend{Name: name, Size: 7, Until: b.now + grid.Hour})
	if len(e.provide) != 1 || e.provide[0] != b.c.Key(name) || len(e.answers)+len(b.records) != 0 {
		t.Fatalf("it orders %+v and keeps %v", e, b.records)
	}
	b.step(&grid.Provided{Key: e.provide[0], Stored: true})
	asked := func() *Inform {
		e := b.step(&grid.Delivery{From: "other", Message: &Inquire{name}})
		return e.sends[0].Message.(*Inform)
	}
	if m := asked(); !m.Held || m.Size != 7 || !m.Shared {
		t.Errorf("who asks for it learns %+v", m)
	}
	if _, held := b.c.Get(name); held {
		t.Error("it is a data set")
	}
	for s := range b.c.Sets {
		t.Errorf("%s is listed", s.Name)
	}
	if err := b.hold(name, 1, false); !errors.Is(err, ErrRefused) {
		t.Errorf("a data set of that name: %v", err)
	}
	if e := b.step(&Drop{Token: 1, Name: name}); !errors.Is(e.answers[0].(*Held).Err, ErrUnknown) {
		t.Errorf("it is dropped: %+v", e.answers[0])
	}
	b.now += grid.Hour / 2
	b.step(&Lend{Name: name, Size: 7, Until: b.now + grid.Hour})
	b.now += grid.Hour - 1
	b.step(grid.Tick{})
	if m := asked(); !m.Held {
		t.Error("it is given up before its time")
	}
	if next := b.c.NextTimer(); next > b.now+1 {
		t.Errorf("the next timer is %v, its end %v", next, b.now+1)
	}
	b.now++
	if e := b.step(grid.Tick{}); asked().Held || len(e.provide) != 0 {
		t.Error("it is announced beyond its time")
	}
	for i := range lentMax + 10 {
		b.step(&Lend{Name: TreeName(fmt.Sprint(i)), Size: 7, Until: b.now + grid.Hour})
	}
	if len(b.c.sets) != lentMax {
		t.Errorf("%d are announced, at most %d", len(b.c.sets), lentMax)
	}
	if err := b.hold("x", 1, false); err != nil {
		t.Errorf("beside them: %v", err)
	}
}

func TestInquire(t *testing.T) {
	b := newBench(t)
	if err := b.hold("x", 10, true); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Inform{"x": {"x", true, 10, true}, "y": {Name: "y"}} {
		e := b.step(&grid.Delivery{From: "a", Message: &Inquire{name}})
		if len(e.sends) != 1 || *e.sends[0].Message.(*Inform) != want || e.sends[0].To != "a" {
			t.Errorf("%s: %+v", name, e.sends)
		}
	}
}

// TestHoldRefuses what is out of bounds.
func TestHoldRefuses(t *testing.T) {
	b := newBench(t)
	set := func(name, path string, size int64, folder, shared bool) Set {
		return Set{DataSet: grid.DataSet{Name: name, Size: size}, Path: path, Folder: folder, Shared: shared}
	}
	for _, tt := range []struct {
		set  Set
		word string
	}{
		{set("", "/x", 1, false, false), "0 bytes"},
		{set(strings.Repeat("x", grid.DataNameMax+1), "/x", 1, false, false), "want 1 to"},
		{set("a b", "/x", 1, false, false), "no name"},
		{set("-x", "/x", 1, false, false), "no name"},
		{set("sha256:12", "/x", 1, false, false), "64 hexadecimal"},
		{set("x", "x", 1, false, false), "absolute"},
		{set("x", "/x", -1, false, false), "-1 bytes"},
		{set("x", "/x", grid.DataSizeMax+1, false, false), "at most"},
		{set("x", "/x", 1, true, true), "directory"},
	} {
		e := b.step(&Hold{Token: 1, Set: tt.set})
		if err := e.answers[0].(*Held).Err; !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.word) || len(e.provide) != 0 {
			t.Errorf("%+v: %v, want %q", tt.set, err, tt.word)
		}
	}
	for i := range SetsMax {
		b.c.enter(b.now, set(fmt.Sprint("x", i), "/x", 1, false, false))
	}
	if err := b.hold("more", 1, false); !errors.Is(err, ErrRefused) {
		t.Errorf("one more than %d: %v", SetsMax, err)
	}
	if err := b.hold("x1", 2, false); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

// TestRecordsSurvive: what is recovered is what was saved; a record that is none is named.
func TestRecordsSurvive(t *testing.T) {
	b := newBench(t)
	want := Set{DataSet: grid.DataSet{Name: "sha256:" + strings.Repeat("0a", 32), Size: 7}, Path: "/d\xff", Modified: 5, Shared: true}
	b.step(&Hold{Token: 1, Set: want})
	want.Added = b.now
	b.boot()
	if got := slices.Collect(b.c.Sets); len(got) != 1 || *got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.records[RecordPrefix+"x"] = []byte{1, 2, 3}
	if err := New(Config{}, nil).Recover(0, maps.All(b.records)); err == nil || !strings.Contains(err.Error(), RecordPrefix+"x") {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range []wire.Message{&Inquire{"x"}, &Inform{"x", true, 5, true}} {
		frame, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[1:])
	}
	corpus.Fuzz(f, func(t *testing.T, frame []byte) {
		m, err := Protocol.Decode("a", frame)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again, err := wire.Encode(m.(wire.Message))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Protocol.Decode("a", again[1:]); err != nil && len(again) < 128 || err == nil && fmt.Sprint(back) != fmt.Sprint(m) {
			t.Fatalf("%v becomes %v, %v", m, back, err)
		}
	})
}
