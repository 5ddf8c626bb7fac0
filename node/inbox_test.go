package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// said is a message of a test.
type said int

func (said) MessageKind() grid.Kind { return wire.MarketNegotiate }

func delivery(from string, i int) *grid.Delivery {
	return &grid.Delivery{From: grid.SiteID(from), Message: said(i)}
}

// stepAll takes what waits as the loop does, each step as long as took says, and
// returns who asked for each.
func stepAll(b *inbox, steps int, took func(asker string) time.Duration) (askers []string) {
	for range steps {
		in, by := b.next()
		if in == nil {
			break
		}
		b.pay(by, took(by.of.asker))
		askers = append(askers, by.of.asker)
	}
	return askers
}

func TestInboxKeepsTheOrderOfEach(t *testing.T) {
	b := newInbox()
	for i := range 10 {
		b.put(100 + i)
		b.deliver(delivery("a", i))
		b.deliver(delivery("b", i))
	}
	var own []grid.Input
	for range 4 {
		own = append(own, b.takeOwn(nil, 3)...)
	}
	if len(own) != 10 || own[0] != 100 || own[9] != 109 {
		t.Errorf("our own are %v", own)
	}
	next := map[grid.SiteID]int{}
	for range 20 {
		in, by := b.next()
		d := in.(*grid.Delivery)
		if int(d.Message.(said)) != next[d.From] {
			t.Fatalf("message %v of %s, want %d", d.Message, d.From, next[d.From])
		}
		next[d.From]++
		b.pay(by, 100*time.Microsecond)
	}
	if in, _ := b.next(); in != nil {
		t.Errorf("%v is left", in)
	}
	b.close()
	if b.deliver(delivery("a", 0)) || b.ask("u", 1) {
		t.Error("a closed inbox takes more")
	}
}

func TestFloodKeepsNobodyElseOut(t *testing.T) {
	b := newInbox()
	flood := 0
	for peer := range 20 {
		for b.deliver(delivery(fmt.Sprint("flood", peer), 0)) {
			flood++
		}
	}
	if most := inboxMax + 20*laneFree; flood > most {
		t.Errorf("%d messages of a flood wait, at most %d may", flood, most)
	}
	for i := range laneFree {
		if !b.deliver(delivery("honest", i)) {
			t.Fatalf("no room for message %d of an honest peer", i)
		}
	}
	if !b.ask("user", 1) {
		t.Fatal("no room for the request of a user")
	}
	got := stepAll(b, 120, func(string) time.Duration { return laneQuantum / 4 })
	for _, who := range []string{"honest", "user"} {
		if !slices.Contains(got, who) {
			t.Errorf("%s is not among the first %d: %v", who, len(got), got)
		}
	}
}

// TestWhoAsksSeldomComesFirst: the flooders are in their rounds when somebody else asks.
func TestWhoAsksSeldomComesFirst(t *testing.T) {
	b := newInbox()
	for peer := range 20 {
		for i := range 50 {
			b.deliver(delivery(fmt.Sprint("flood", peer), i))
		}
	}
	took := func(string) time.Duration { return laneQuantum / 2 }
	stepAll(b, 100, took)
	b.deliver(delivery("honest", 0))
	if got := stepAll(b, 2, took); !slices.Contains(got, "honest") {
		t.Errorf("before the honest peer come %v", got)
	}
}

func TestLoopIsSharedByTimeNotByMessages(t *testing.T) {
	b := newInbox()
	for i := range 2000 {
		b.deliver(delivery("slow", i))
		b.deliver(delivery("quick", i))
		b.ask("user", i)
	}
	took := map[string]time.Duration{"slow": 200 * time.Microsecond, "quick": 10 * time.Microsecond, "user": 20 * time.Microsecond}
	spent := map[string]time.Duration{}
	for _, who := range stepAll(b, 1500, func(who string) time.Duration { return took[who] }) {
		spent[who] += took[who]
	}
	if ratio := float64(spent["slow"]) / float64(spent["quick"]); ratio < 0.7 || ratio > 1.4 {
		t.Errorf("of the wire's time %v, want even shares", spent)
	}
	if ratio := float64(spent["user"]) / float64(spent["slow"]+spent["quick"]); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("of the loop's time %v, want half for users", spent)
	}
}

func TestLanesForgetWhoIsDone(t *testing.T) {
	b := newInbox()
	for i := range 3 * lanesMax {
		if !b.deliver(delivery(fmt.Sprint(i), 0)) {
			t.Fatalf("peer %d finds no room", i)
		}
		stepAll(b, 1, func(string) time.Duration { return laneQuantum / 10 })
		if n := len(b.wire.of); n > lanesMax {
			t.Fatalf("%d peers are remembered, want at most %d", n, lanesMax)
		}
	}
}

// TestNewcomersDoNotKeepOthersOut: whoever asks all the time has its turn although
// there is always somebody who has just begun.
func TestNewcomersDoNotKeepOthersOut(t *testing.T) {
	b := newInbox()
	took := func(string) time.Duration { return laneQuantum }
	for i := range 100 {
		b.deliver(delivery("busy", i))
	}
	stepAll(b, 1, took)
	busy := 0
	for i := range 20 * freshMax {
		b.deliver(delivery(fmt.Sprint(i), 0))
		for _, who := range stepAll(b, 1, took) {
			if who == "busy" {
				busy++
			}
		}
	}
	if busy < 10 {
		t.Errorf("it was asked for %d times beside %d newcomers", busy, 20*freshMax)
	}
}

// turnWatch says whether somebody who looks was answered before a turn was over.
type turnWatch struct {
	timers
	look  *look
	early bool
}

func (x *turnWatch) Acknowledge([]grid.TaskID) {
	select {
	case <-x.look.done:
		x.early = true
	default:
	}
}

// TestTold: who looks by DoTold in the turn in which a job ends returns after that is durable and told.
func TestTold(t *testing.T) {
	x := &turnWatch{look: &look{done: make(chan struct{}), told: true}}
	cfg := hostConfig(0, "", &p2p.Memory{}, &x.timers)
	start := cfg.Executor
	cfg.Executor = func(ended func(*grid.TaskEnded)) (Executor, error) { _, err := start(ended); return x, err }
	h := startHost(t, cfg)
	defer closeHost(t, h)
	job := testJob(h, 1, grid.Hour)
	job.Goal = grid.GoalLocal
	if _, err := submitTo(h, job); err != nil {
		t.Fatal(err)
	}
	v := awaitState(t, h, job.ID, site.Running)
	var state site.State
	x.look.at = func(s *site.Site) {
		v, _ := s.Job(job.ID)
		state = v.State
	}
	now := grid.Time(time.Now().UnixMicro())
	err := h.Do(t.Context(), func(*site.Site) { // both come in the next turn
		x.ended(&grid.TaskEnded{ID: grid.TaskID{Job: job.ID, Epoch: v.Epoch}, Result: grid.Result{Start: now, End: now + 1}})
		h.inbox.put(x.look)
	})
	if err != nil {
		t.Fatal(err)
	}
	if <-x.look.done; state != site.Done || x.early {
		t.Errorf("the job is %v, told before the turn was over: %v; want done and false", state, x.early)
	}
}
