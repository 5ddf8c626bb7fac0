package market

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// drawn makes valid messages at random.
type drawn struct{ *rapid.T }

func (d drawn) span(name string) grid.Time {
	return grid.Time(rapid.Int64Range(0, int64(grid.SpanMax)).Draw(d.T, name))
}

func (d drawn) spanOrNever(name string) grid.Time {
	if rapid.Bool().Draw(d.T, "no "+name) {
		return grid.Never
	}
	return d.span(name)
}

func (d drawn) credits(name string) grid.Credits {
	return grid.Credits(rapid.Int64Range(0, int64(grid.CreditsMax)).Draw(d.T, name))
}

func (d drawn) price() grid.Price { return max(d.credits("price"), 1) }

func (d drawn) number(name string) uint64 { return rapid.Uint64Min(1).Draw(d.T, name) }

func (d drawn) task() grid.TaskID {
	return grid.TaskID{
		Job:   grid.JobID{Hi: rapid.Uint64().Draw(d.T, "hi"), Lo: d.number("lo")},
		Epoch: rapid.Uint32Range(1, grid.EpochMax).Draw(d.T, "epoch"),
	}
}

func (d drawn) text(name string) string {
	return string(rapid.SliceOfN(rapid.Byte(), 0, textMax).Draw(d.T, name))
}

func (d drawn) negotiate() *Negotiate {
	return &Negotiate{
		Task: d.task(), Request: d.number("request"), Validity: d.span("validity"),
		Processors: rapid.Int64Range(1, processorsMax).Draw(d.T, "processors"), Memory: rapid.Int64Range(0, memoryMax).Draw(d.T, "memory"),
		Work:     grid.Work{Instructions: rapid.Int64Min(0).Draw(d.T, "instructions"), Traffic: rapid.Int64Min(0).Draw(d.T, "traffic")},
		Deadline: d.spanOrNever("deadline"), CostMax: d.credits("cost"),
		GPUs: rapid.SampledFrom([]grid.GPUs{{}, {Count: 3}, {Type: "a100", Count: grid.GPUsMax}}).Draw(d.T, "gpus"), Probe: rapid.Bool().Draw(d.T, "probe"),
	}
}

func (d drawn) reply() *Reply {
	r := &Reply{
		Task: d.task(), Request: d.number("request"), Refusal: Refusal(rapid.Uint8().Draw(d.T, "refusal")),
		HoldSpan: d.span("hold span"), Price: d.price(), Cost: d.credits("cost"),
		Start: grid.Never, Finish: grid.Never,
		Load: Load{
			Free: rapid.Int64Range(0, processorsMax).Draw(d.T, "free"), Widest: rapid.Int64Range(0, processorsMax).Draw(d.T, "widest"),
			Wait: d.span("wait"), Price: d.price(), Sequence: rapid.Uint64().Draw(d.T, "sequence"),
		},
	}
	if r.Refusal == Granted || rapid.Bool().Draw(d.T, "says when") {
		r.Finish = d.span("finish")
		r.Start = grid.Time(rapid.Int64Range(0, int64(r.Finish)).Draw(d.T, "start"))
	}
	r.GPUs, r.Probe = rapid.Int64Range(0, grid.GPUsMax).Draw(d.T, "gpus"), rapid.Bool().Draw(d.T, "probe")
	if r.Refusal == Granted && !r.Probe {
		r.Hold = d.number("hold")
	}
	return r
}

func (d drawn) submission() *JobSubmission {
	task := d.task()
	tasks := rapid.Int64Range(1, 8).Draw(d.T, "tasks")
	return &JobSubmission{
		Job: &grid.Job{
			ID: task.Job, Home: "a", User: "ann", Name: "job", Tasks: tasks,
			Resources: grid.Resources{Processors: tasks * rapid.Int64Range(1, 8).Draw(d.T, "processors")},
			Estimate:  1 + d.span("estimate")/2, Work: grid.Work{Instructions: rapid.Int64Min(0).Draw(d.T, "instructions")},
			Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.Goal(rapid.IntRange(0, 3).Draw(d.T, "goal")),
			Command: &grid.Command{Args: []string{"sh", "-c", "\xff"}, Env: []string{"A=b"}, Dir: "/"},
		},
		Epoch: task.Epoch, Hold: d.number("hold"), Price: d.price(), Cost: d.credits("cost"),
		Age: d.span("age"), Deadline: d.spanOrNever("deadline"), Losses: d.losses(),
	}
}

func (d drawn) losses() uint32 { return rapid.Uint32Range(0, LossesMax).Draw(d.T, "losses") }

func (d drawn) completion() *JobCompletion {
	if rapid.Bool().Draw(d.T, "abandoned") {
		return &JobCompletion{Task: d.task(), Abandoned: true, Losses: d.losses()}
	}
	return &JobCompletion{
		Task: d.task(), Ago: d.span("ago"), Run: d.span("run"), ExitCode: rapid.Int32().Draw(d.T, "exit"),
		Reason: d.text("reason"), Cost: d.credits("cost"), Output: [2]grid.Kept{d.kept(), d.kept()},
	}
}

func (d drawn) kept() (k grid.Kept) {
	k.Size = rapid.Int64Min(0).Draw(d.T, "size")
	copy(k.Sum[:], rapid.SliceOfN(rapid.Byte(), len(k.Sum), len(k.Sum)).Draw(d.T, "sum"))
	return k
}

func (d drawn) acknowledge() *Acknowledge {
	k := &Acknowledge{Task: d.task(), Unknown: rapid.Bool().Draw(d.T, "unknown")}
	k.Of = rapid.SampledFrom([]grid.Kind{wire.MarketJobSubmission, wire.MarketJobCompletion, wire.MarketCancel}).Draw(d.T, "of")
	if k.Of != wire.MarketJobCompletion {
		k.Hold = d.number("hold")
	}
	return k
}

func (d drawn) cancel() *Cancel {
	return &Cancel{Task: d.task(), Hold: d.number("hold"), Cause: d.text("cause"), Answer: rapid.Bool().Draw(d.T, "answer")}
}

func (d drawn) message() wire.Message {
	switch rapid.IntRange(0, 5).Draw(d.T, "kind") {
	case 0:
		return d.negotiate()
	case 1:
		return d.reply()
	case 2:
		return d.submission()
	case 3:
		return d.completion()
	case 4:
		return d.acknowledge()
	}
	return d.cancel()
}

// TestRoundTrip checks that every valid message arrives as it was sent.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := drawn{t}.message()
		got, err := throughWire("a", sent)
		if err != nil {
			t.Fatalf("%+v: %v", sent, err)
		}
		if !reflect.DeepEqual(got, sent) {
			t.Fatalf("sent %+v\ngot  %+v", sent, got)
		}
		if id := sent.(grid.JobMessage).ForJob(); id != got.(grid.JobMessage).ForJob() || id.IsZero() {
			t.Fatalf("about job %v, got %v", id, got)
		}
	})
}

// TestSubmissionLeavesInstantsOut checks that no clock reading of home travels.
func TestSubmissionLeavesInstantsOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn{t}.submission()
		m.Job.Submit, m.Job.Deadline = 12345, 67890
		got, err := throughWire("a", m)
		if err != nil {
			t.Fatal(err)
		}
		if j := got.(*JobSubmission).Job; j.Submit != 0 || j.Deadline != grid.Never {
			t.Fatalf("submit %v, deadline %v arrived", j.Submit, j.Deadline)
		}
	})
}

// TestDecodersCheckEveryField breaks one field of a valid message at a time.
func TestDecodersCheckEveryField(t *testing.T) {
	id := []byte("0123456789abcdef")
	long := make([]byte, textMax+1)
	beyond := int64(grid.SpanMax) + 1
	negotiate := func(change func(*wirepb.MarketNegotiate)) proto.Message {
		p := &wirepb.MarketNegotiate{Job: id, Epoch: 1, Request: 1, Processors: 1}
		change(p)
		return p
	}
	reply := func(change func(*wirepb.MarketReply)) proto.Message {
		p := &wirepb.MarketReply{Job: id, Epoch: 1, Request: 1, Hold: 1, Start: new(int64), Finish: new(int64), Price: 1, Load: &wirepb.MarketLoad{Price: 1}}
		change(p)
		return p
	}
	submission := func(change func(*wirepb.MarketJobSubmission)) proto.Message {
		p := &wirepb.MarketJobSubmission{Epoch: 1, Hold: 1, Price: 1, Job: &wirepb.Job{Id: id, Home: "a", Processors: 1, Tasks: 1, Estimate: 1, Budget: -1}}
		change(p)
		return p
	}
	completion := func(change func(*wirepb.MarketJobCompletion)) proto.Message {
		p := &wirepb.MarketJobCompletion{Job: id, Epoch: 1}
		change(p)
		return p
	}
	acknowledge := func(change func(*wirepb.MarketAcknowledge)) proto.Message {
		p := &wirepb.MarketAcknowledge{Job: id, Epoch: 1, Of: uint32(wire.MarketJobSubmission), Hold: 1}
		change(p)
		return p
	}
	cancel := func(change func(*wirepb.MarketCancel)) proto.Message {
		p := &wirepb.MarketCancel{Job: id, Epoch: 1, Hold: 1}
		change(p)
		return p
	}
	for _, tt := range []struct {
		kind grid.Kind
		good proto.Message
		bad  []proto.Message
	}{
		{wire.MarketNegotiate, negotiate(func(*wirepb.MarketNegotiate) {}), []proto.Message{
			negotiate(func(p *wirepb.MarketNegotiate) { p.Job = id[:15] }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Job = make([]byte, 16) }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Epoch = 0 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Epoch = grid.EpochMax + 1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Request = 0 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Validity = -1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Validity = beyond }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Processors = 0 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Processors = processorsMax + 1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Memory = -1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Memory = memoryMax + 1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Instructions = -1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Instructions = math.MinInt64 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Traffic = -1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Deadline = proto.Int64(-1) }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.Deadline = &beyond }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.CostMax = -1 }),
			negotiate(func(p *wirepb.MarketNegotiate) { p.CostMax = int64(grid.CreditsMax) + 1 }),
		}},
		{wire.MarketReply, reply(func(*wirepb.MarketReply) {}), []proto.Message{
			reply(func(p *wirepb.MarketReply) { p.Job = nil }),
			reply(func(p *wirepb.MarketReply) { p.Epoch = 0 }),
			reply(func(p *wirepb.MarketReply) { p.Epoch = grid.EpochMax + 1 }),
			reply(func(p *wirepb.MarketReply) { p.Request = 0 }),
			reply(func(p *wirepb.MarketReply) { p.Refusal = 256 }),
			reply(func(p *wirepb.MarketReply) { p.Hold = 0 }),
			reply(func(p *wirepb.MarketReply) { p.Refusal = 1 }),
			reply(func(p *wirepb.MarketReply) { p.HoldSpan = -1 }),
			reply(func(p *wirepb.MarketReply) { p.Price = -1 }),
			reply(func(p *wirepb.MarketReply) { p.Price = 0 }),
			reply(func(p *wirepb.MarketReply) { p.Price = int64(grid.CreditsMax) + 1 }),
			reply(func(p *wirepb.MarketReply) { p.Cost = int64(grid.CreditsMax) + 1 }),
			reply(func(p *wirepb.MarketReply) { p.Start = nil }),
			reply(func(p *wirepb.MarketReply) { p.Finish = nil }),
			reply(func(p *wirepb.MarketReply) { p.Start, p.Finish = proto.Int64(2), proto.Int64(1) }),
			reply(func(p *wirepb.MarketReply) { p.Finish = &beyond }),
			reply(func(p *wirepb.MarketReply) { p.Load = nil }),
			reply(func(p *wirepb.MarketReply) { p.Load.Free = -1 }),
			reply(func(p *wirepb.MarketReply) { p.Load.Widest = processorsMax + 1 }),
			reply(func(p *wirepb.MarketReply) { p.Load.Wait = beyond }),
			reply(func(p *wirepb.MarketReply) { p.Load.Price = -1 }),
			reply(func(p *wirepb.MarketReply) { p.Load.Price = 0 }),
			reply(func(p *wirepb.MarketReply) { p.Load.Price = int64(grid.CreditsMax) + 1 }),
		}},
		{wire.MarketJobSubmission, submission(func(*wirepb.MarketJobSubmission) {}), []proto.Message{
			submission(func(p *wirepb.MarketJobSubmission) { p.Job = nil }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Job.Processors = 0 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Job.Home = "b" }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Job.Submit = 1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Job.Deadline = 1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Epoch = 0 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Epoch = grid.EpochMax + 1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Job.Coallocation = &wirepb.Coallocation{Count: "2"} }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Hold = 0 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Losses = LossesMax + 1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Price = -1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Price = 0 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Price = int64(grid.CreditsMax) + 1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Cost = -1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Age = -1 }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Age = beyond }),
			submission(func(p *wirepb.MarketJobSubmission) { p.Deadline = proto.Int64(-1) }),
		}},
		{wire.MarketJobCompletion, completion(func(*wirepb.MarketJobCompletion) {}), []proto.Message{
			completion(func(p *wirepb.MarketJobCompletion) { p.Job = nil }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Epoch = 0 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Epoch = grid.EpochMax + 1 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Ago = -1 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Run = beyond }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Reason = long }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Cost = -1 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Abandoned, p.ExitCode = true, 1 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Losses = 1 }),
			completion(func(p *wirepb.MarketJobCompletion) { p.Abandoned, p.Losses = true, LossesMax+1 }),
		}},
		{wire.MarketAcknowledge, acknowledge(func(*wirepb.MarketAcknowledge) {}), []proto.Message{
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Job = nil }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Epoch = 0 }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Epoch = grid.EpochMax + 1 }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Hold = 0 }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Of = 0 }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Of = 256 + uint32(wire.MarketJobSubmission) }),
			acknowledge(func(p *wirepb.MarketAcknowledge) { p.Of = uint32(wire.MarketJobCompletion) }),
		}},
		{wire.MarketCancel, cancel(func(*wirepb.MarketCancel) {}), []proto.Message{
			cancel(func(p *wirepb.MarketCancel) { p.Job = nil }),
			cancel(func(p *wirepb.MarketCancel) { p.Epoch = 0 }),
			cancel(func(p *wirepb.MarketCancel) { p.Epoch = grid.EpochMax + 1 }),
			cancel(func(p *wirepb.MarketCancel) { p.Hold = 0 }),
			cancel(func(p *wirepb.MarketCancel) { p.Cause = long }),
		}},
	} {
		decode := func(p proto.Message) error {
			body, err := proto.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Protocol.Decoders[tt.kind]("a", body)
			return err
		}
		if err := decode(tt.good); err != nil {
			t.Errorf("%s %v: %v", wire.KindName(tt.kind), tt.good, err)
		}
		for _, bad := range tt.bad {
			if err := decode(bad); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s %v: error %v, want malformed", wire.KindName(tt.kind), bad, err)
			}
		}
	}
}

// fuzzDecoder feeds a decoder: no panic, and what it accepts survives a round trip
// and an agent.
func fuzzDecoder(f *testing.F, kind grid.Kind, draw func(drawn) wire.Message) {
	for seed := range 8 {
		example := rapid.Custom(func(t *rapid.T) []byte {
			body, err := proto.Marshal(draw(drawn{t}).Proto())
			if err != nil {
				t.Fatal(err)
			}
			return body
		}).Example(seed)
		f.Add(example)
	}
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		m, err := Protocol.Decoders[kind]("a", body)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) || m != nil {
				t.Fatalf("message %v, error %v", m, err)
			}
			return
		}
		if again, err := throughWire("a", m.(wire.Message)); err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
		n := newNetwork(t)
		n.silent = true
		b := n.add(Config{Offer: Offer{Site: "b", Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Foreign: true}}, 0)
		b.step(&grid.Delivery{From: "a", Message: m})
		b.step(&grid.Undelivered{To: "a", Message: m})
	})
}

func FuzzDecodeNegotiate(f *testing.F) {
	fuzzDecoder(f, wire.MarketNegotiate, func(d drawn) wire.Message { return d.negotiate() })
}

func FuzzDecodeReply(f *testing.F) {
	fuzzDecoder(f, wire.MarketReply, func(d drawn) wire.Message { return d.reply() })
}

func FuzzDecodeJobSubmission(f *testing.F) {
	fuzzDecoder(f, wire.MarketJobSubmission, func(d drawn) wire.Message { return d.submission() })
}

func FuzzDecodeJobCompletion(f *testing.F) {
	fuzzDecoder(f, wire.MarketJobCompletion, func(d drawn) wire.Message { return d.completion() })
}

func FuzzDecodeAcknowledge(f *testing.F) {
	fuzzDecoder(f, wire.MarketAcknowledge, func(d drawn) wire.Message { return d.acknowledge() })
}

func FuzzDecodeCancel(f *testing.F) {
	fuzzDecoder(f, wire.MarketCancel, func(d drawn) wire.Message { return d.cancel() })
}
