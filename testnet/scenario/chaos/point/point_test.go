package point

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
)

// record is a record of a test.
type record string

// RecordKey implements grid.Record.
func (r record) RecordKey() string { return string(r) }

// AppendRecord implements grid.Record.
func (r record) AppendRecord(dst []byte) []byte { return dst }

// stepOf returns a step that saves two leases and forgets a job, sends a grant, tells, sends one more, starts a pilot.
func stepOf() *grid.Outbox {
	out := new(grid.Outbox)
	out.Save(record("lease/site-1/7"))
	out.Send("site-1", &lease.Grant{})
	out.Save(record("lease/site-2/8"))
	out.Tell(grid.Event{})
	out.Send("site-2", &lease.Grant{})
	out.Delete(record("job/ckydmwh1mbc860000g0000003c"))
	out.Start(grid.Task{ID: lease.TaskOf(3)})
	return out
}

// struck returns what is hit where a daemon dies at a place of that step.
func struck(cause Cause, place int) (hit []string) {
	c := NewCounts()
	c.Take(cause, stepOf())
	c.Hit(place)
	for _, p := range c.All() {
		if p.Hit > 0 {
			hit = append(hit, p.Name)
		}
	}
	return hit
}

// TestHit: who dies within a step dies after what has left, and before what comes next, and
// between a record and what carries it out; as the store fails, before what is to be saved.
func TestHit(t *testing.T) {
	for place, want := range map[int][]string{
		Unsaved: {"before forgetting job", "before saving lease"},
		0:       {"after forgetting job", "after saving lease", "before sending lease.grant", "between saving lease and sending lease.grant"},
		1:       {"after sending lease.grant", "before sending lease.grant", "between saving lease and sending lease.grant"},
		2:       {"after sending lease.grant", "before starting a pilot", "between saving lease and starting a pilot"},
		3:       {"after starting a pilot"},
		9:       {"after starting a pilot"}, // as a script may say that was written for another step
	} {
		if got := struck(Input, place); !slices.Equal(got, want) {
			t.Errorf("place %d: hit %q, want %q", place, got, want)
		}
	}
	if got, want := struck(Recovery, 1), []string{"after sending lease.grant, in recovery", "before sending lease.grant, in recovery"}; !slices.Equal(got, want) {
		t.Errorf("in a recovery: hit %q, want %q", got, want)
	}
	if got, want := struck(Timer, Unsaved), []string{"before forgetting job, on a timer", "before saving lease, on a timer"}; !slices.Equal(got, want) {
		t.Errorf("on a timer: hit %q, want %q", got, want)
	}
}

// TestSeen: each order of a step counts, but records of a kind are saved together; a daemon dies in the step taken last.
func TestSeen(t *testing.T) {
	c := NewCounts()
	for range 2 {
		c.Take(Input, stepOf())
	}
	got := make(map[string]int64)
	for _, p := range c.All() {
		got[p.Name] = p.Seen
	}
	want := map[string]int64{
		"before saving lease": 2, "after saving lease": 2, "before forgetting job": 2, "after forgetting job": 2,
		"before sending lease.grant": 4, "after sending lease.grant": 4, "between saving lease and sending lease.grant": 4,
		"before starting a pilot": 2, "after starting a pilot": 2, "between saving lease and starting a pilot": 2,
	}
	if !maps.Equal(got, want) || c.Orders() != 3 {
		t.Errorf("%d orders, seen %v, want %v", c.Orders(), got, want)
	}
	c.Hit(0)
	for _, p := range c.All() {
		if p.Hit > 1 {
			t.Errorf("one death is %d of %s", p.Hit, p.Name) // as orders of the step before would count
		}
	}
}

// TestChance: the seldomer an order comes, the likelier a daemon dies there; of what nobody has met
// every other time at most, and less where one has died before.
func TestChance(t *testing.T) {
	const usual = 0.001
	chance := func(weight float64, hits int) float64 {
		c := NewCounts()
		c.Take(Input, stepOf())
		for _, tally := range c.tallies {
			tally.weight = weightLeast
		}
		c.orders[2].weight = weight
		for range hits {
			c.Hit(3)
		}
		return c.Chance(3, usual)
	}
	for _, x := range []struct {
		weight float64
		hits   int
		want   float64
	}{{1, 0, usual}, {20, 0, 20 * usual}, {20, 3, 5 * usual}, {weightMost, 0, chanceMost}} {
		if got := chance(x.weight, x.hits); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("weight %v, hit %d times: %v, want %v", x.weight, x.hits, got, x.want)
		}
	}
}

// TestCensus: the census can be read, of what it does not have all is rare, and a broken one is an error.
func TestCensus(t *testing.T) {
	if len(weights()) < 150 {
		t.Errorf("%d kinds of orders were met", len(weights()))
	}
	common, rare := weightOf(order{act: send, message: wire.DirectoryPage}), weightOf(order{act: save, record: "lease", cause: Timer})
	unknown := weightOf(order{act: save, record: "nothing"})
	if !(common < 1 && rare > 1 && unknown == weightMost) {
		t.Errorf("weights are %v of what is common, %v of what is rare, %v of what was never met", common, rare, unknown)
	}
	w, err := read("\"saving job\",30\n\"saving lease, on a timer\",10\n")
	if err != nil || math.Abs(w["saving job"]-2./3) > 1e-9 || w["saving lease, on a timer"] != 2 {
		t.Errorf("weights are %v, %v", w, err)
	}
	for _, text := range []string{"saving job\n", "saving job,many\n", "saving job,0\n", "saving job,1\n\"\n"} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), "census") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestKind: kinds of records have one name, whatever they are about.
func TestKind(t *testing.T) {
	for key, want := range map[string]string{
		"job/ckydmwh1mbc860000g0000003c": "job", "bank/payment/ckydmwh1mbc860000g0000003c/1": "bank/payment",
		"bank/account/site-1": "bank/account", "deaths/latest": "deaths",
	} {
		if got := Kind(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

// TestMissing: of kinds of records and messages that no run has met there are points nevertheless; all
// kinds of records of the census are known.
func TestMissing(t *testing.T) {
	all := Missing(slices.Values([]string{"before saving job", "after sending bank.draw, in recovery", "before publishing gossip.load", "before sending lease.grant, on a timer"}))
	for _, name := range []string{"before saving lease", "after saving lease", "before sending data.inquire", "after sending data.inquire"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not missing", name)
		}
	}
	for _, name := range []string{"before saving job", "after saving job", "after sending bank.draw", "before sending gossip.load", "after sending lease.grant", "before sending "} {
		if slices.Contains(all, name) {
			t.Errorf("%s is missing", name)
		}
	}
	for name := range weights() {
		kind, _, _ := strings.Cut(name, ",")
		if of, saves := strings.CutPrefix(kind, "saving "); saves && !strings.Contains(of, " ") && !slices.Contains(records, of) {
			t.Errorf("records of kind %q are not known", of)
		}
	}
}
