package wire_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// submission is a message for these tests: a job and nothing else.
type submission struct{ job *grid.Job }

func (s *submission) MessageKind() grid.Kind { return wire.MarketJobSubmission }
func (s *submission) Proto() proto.Message   { return wire.JobProto(s.job) }

var protocol = wire.Protocol{ID: "/gridnode/test/1.0.0", Decoders: map[grid.Kind]wire.Decoder{
	wire.MarketJobSubmission: func(_ grid.SiteID, body []byte) (grid.Message, error) {
		var p wirepb.Job
		if err := proto.Unmarshal(body, &p); err != nil {
			return nil, wire.Malformed("job: %v", err)
		}
		job, err := wire.JobFromProto(&p)
		if err != nil {
			return nil, err
		}
		return &submission{job}, nil
	},
}}

func drawJob(t *rapid.T) *grid.Job {
	text := rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 20)
	tasks := rapid.Int64Range(1, 64).Draw(t, "tasks")
	j := &grid.Job{
		ID: grid.JobID{Hi: rapid.Uint64Min(1).Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}, Home: "home",
		User: string(text.Draw(t, "user")), Name: string(text.Draw(t, "name")),
		Resources: grid.Resources{Processors: tasks * rapid.Int64Range(1, 8).Draw(t, "cpus"), Memory: rapid.Int64Range(0, 1<<40).Draw(t, "memory")},
		Tasks:     tasks, Submit: grid.Time(rapid.Int64Range(0, 1<<50).Draw(t, "submit")),
		Estimate: grid.Time(rapid.Int64Range(1, 1<<50).Draw(t, "estimate")),
		Work:     grid.Work{Instructions: rapid.Int64Min(0).Draw(t, "instructions"), Traffic: rapid.Int64Min(0).Draw(t, "traffic")},
		Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.Goal(rapid.IntRange(0, 3).Draw(t, "goal")), TTL: rapid.Int32Range(grid.NoTTL, grid.TTLMax).Draw(t, "ttl"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		j.Deadline, j.Budget = grid.Time(rapid.Int64Range(1, 1<<50).Draw(t, "deadline")), grid.Credits(rapid.Int64Range(0, 1<<50).Draw(t, "budget"))
	}
	if rapid.Bool().Draw(t, "terms") {
		j.Terms = &grid.Terms{Nice: rapid.Int32Range(0, grid.NiceMax).Draw(t, "nice"), Once: true}
	}
	if rapid.Bool().Draw(t, "command") {
		j.Command = &grid.Command{Args: []string{"sh", "-c", string(text.Draw(t, "script"))}, Env: []string{"A=" + string(text.Draw(t, "value"))}, Dir: "/tmp"}
	}
	return j
}

func TestJobsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawJob(t)
		frame, err := wire.Encode(&submission{want})
		if err != nil {
			t.Fatal(err)
		}
		body, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(frame)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := protocol.Decode("x", body)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.(*submission).job, want) {
			t.Fatalf("got %+v, want %+v", got.(*submission).job, want)
		}
	})
}

func TestCheckJobNamesTheField(t *testing.T) {
	good := func() *grid.Job {
		return &grid.Job{ID: grid.JobID{Lo: 1}, Home: "h", Resources: grid.Resources{Processors: 4}, Tasks: 2, Estimate: 1, Deadline: grid.Never, Budget: grid.NoBudget}
	}
	if err := wire.CheckJob(good()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		spoil      func(*grid.Job)
	}{
		{"id", "without an id", func(j *grid.Job) { j.ID = grid.JobID{} }},
		{"home", "home of 0 bytes", func(j *grid.Job) { j.Home = "" }},
		{"long home", "home of 129", func(j *grid.Job) { j.Home = grid.SiteID(strings.Repeat("h", 129)) }},
		{"site", "site of 129", func(j *grid.Job) { j.Site = grid.SiteID(strings.Repeat("h", 129)) }},
		{"user", "user of 65", func(j *grid.Job) { j.User = strings.Repeat("u", 65) }},
		{"name", "name of 129", func(j *grid.Job) { j.Name = strings.Repeat("n", 129) }},
		{"no processors", "0 processors", func(j *grid.Job) { j.Processors = 0 }},
		{"too many processors", "processors, want", func(j *grid.Job) { j.Processors = 1<<24 + 1 }},
		{"tasks", "3 tasks on 4", func(j *grid.Job) { j.Tasks = 3 }},
		{"memory", "memory", func(j *grid.Job) { j.Memory = -1 }},
		{"submit", "submission", func(j *grid.Job) { j.Submit = -1 }},
		{"estimate", "estimate", func(j *grid.Job) { j.Estimate = 0 }},
		{"work", "work", func(j *grid.Job) { j.Work.Traffic = -1 }},
		{"deadline", "deadline", func(j *grid.Job) { j.Deadline = -5 }},
		{"budget", "budget", func(j *grid.Job) { j.Budget = -2 }},
		{"goal", "goal", func(j *grid.Job) { j.Goal = 9 }},
		{"ttl", "delegated", func(j *grid.Job) { j.TTL = grid.TTLMax + 1 }},
		{"negative ttl", "delegated", func(j *grid.Job) { j.TTL = -2 }},
		{"run time", "run time", func(j *grid.Job) { j.RunTime = -1 }},
		{"nice", "nice -1, want 0", func(j *grid.Job) { j.Terms = &grid.Terms{Nice: -1} }},
		{"too nice", "nice", func(j *grid.Job) { j.Terms = &grid.Terms{Nice: grid.NiceMax + 1} }},
		{"program", "program", func(j *grid.Job) { j.Command = &grid.Command{} }},
		{"NUL", "NUL", func(j *grid.Job) { j.Command = &grid.Command{Args: []string{"a\x00b"}} }},
		{"environment", "command of", func(j *grid.Job) {
			j.Command = &grid.Command{Args: []string{"a"}, Env: []string{strings.Repeat("e", 48<<10)}}
		}},
		{"command", "command of", func(j *grid.Job) { j.Command = &grid.Command{Args: []string{strings.Repeat("a", 48<<10)}} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := good()
			tt.spoil(j)
			if err := wire.CheckJob(j); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestResultBounds(t *testing.T) {
	for _, r := range []grid.Result{
		{Start: 2, End: 1}, {Start: -1, End: 1}, {End: grid.SpanMax + 1}, {Cost: -1}, {Cost: grid.CreditsMax + 1}, {Reason: strings.Repeat("r", 257)},
	} {
		if _, err := wire.ResultFromProto(wire.ResultProto(r)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	want := grid.Result{Start: 1, End: 5, ExitCode: -3, Reason: "why", Cost: 9}
	if got, err := wire.ResultFromProto(wire.ResultProto(want)); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := wire.ResultFromProto(nil); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("no result: %v", err)
	}
}

func TestFrameBounds(t *testing.T) {
	uvarint := func(n uint64) []byte { return binary.AppendUvarint(nil, n) }
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"end", nil, io.EOF},
		{"empty frame", uvarint(0), wire.ErrMalformed},
		{"one too long", append(uvarint(wire.FrameMax+1), make([]byte, wire.FrameMax+1)...), wire.ErrMalformed},
		{"absurd length", uvarint(1 << 60), wire.ErrMalformed},
		{"length cut", []byte{0x80}, wire.ErrMalformed},
		{"length without end", bytes.Repeat([]byte{0xff}, 20), wire.ErrMalformed},
		{"body cut", append(uvarint(9), 1, 2), wire.ErrMalformed},
		{"longest", append(uvarint(wire.FrameMax), make([]byte, wire.FrameMax)...), nil},
	} {
		if _, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(tt.bytes))); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	big := &grid.Job{Command: &grid.Command{Args: []string{strings.Repeat("x", wire.FrameMax)}}}
	if _, err := wire.Encode(&submission{big}); err == nil {
		t.Error("a message larger than a frame was encoded")
	}
}

// TestSpanTravels: a message names the span of its sender, whatever number that is, and one that
// names none is read as before.
func TestSpanTravels(t *testing.T) {
	job := &grid.Job{
		ID: grid.JobID{Hi: 1, Lo: 2}, Home: "a", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Second,
		Work: grid.Work{Instructions: 1}, Deadline: grid.Never, Budget: grid.NoBudget,
	}
	for _, span := range []uint64{0, 1, 1<<64 - 1} {
		frame, err := wire.EncodeTraced(&submission{job}, span)
		if err != nil {
			t.Fatal(err)
		}
		body, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(frame)))
		if err != nil {
			t.Fatal(err)
		}
		m, got, err := protocol.DecodeTraced("a", body)
		if err != nil || got != span || m.(*submission).job.ID != job.ID {
			t.Errorf("span %d comes as %d, of %v: %v", span, got, m, err)
		}
	}
}

func TestDecodeRefusesStrangers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		frame []byte
	}{
		{"noise", []byte{0xff, 0xff}},
		{"unspoken kind", mustProto(t, &wirepb.Envelope{Kind: uint32(wire.GossipLoad)})},
		{"unknown kind", mustProto(t, &wirepb.Envelope{Kind: 1 << 30})},
		{"bad body", mustProto(t, &wirepb.Envelope{Kind: uint32(wire.MarketJobSubmission), Body: []byte{0xff}})},
		{"empty body", mustProto(t, &wirepb.Envelope{Kind: uint32(wire.MarketJobSubmission)})},
	} {
		if m, err := protocol.Decode("x", tt.frame); !errors.Is(err, wire.ErrMalformed) || m != nil {
			t.Errorf("%s: %v, %v", tt.name, m, err)
		}
	}
}

func TestSealAndOpen(t *testing.T) {
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := wire.Seal(key, "quote", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	payload, signer, err := wire.Open("quote", envelope)
	if err != nil || string(payload) != "content" || signer != grid.SiteID(id.String()) {
		t.Fatalf("Open = %q, %s, %v", payload, signer, err)
	}
	if _, _, err := wire.Open("withdrawal", envelope); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a quote passed for a withdrawal: %v", err)
	}
	for i := range envelope {
		forged := bytes.Clone(envelope)
		forged[i] ^= 1
		if p, s, err := wire.Open("quote", forged); err == nil && (string(p) != "content" || s != signer) {
			t.Fatalf("flipped bit in byte %d accepted: %q by %s", i, p, s)
		}
	}
}

func TestCounter(t *testing.T) {
	var a, b wire.Counter
	a.Sent(wire.MarketNegotiate, 10)
	a.Sent(wire.MarketNegotiate, 5)
	b.Received(wire.MarketNegotiate, 15)
	b.Sent(200, 1) // unknown kinds are dropped, not counted elsewhere
	b.Malformed++
	a.Add(&b)
	if got := a.SentOf(wire.MarketNegotiate); got != (wire.Count{Messages: 2, Bytes: 15}) {
		t.Errorf("sent %+v", got)
	}
	if got := a.ReceivedOf(wire.MarketNegotiate); got != (wire.Count{Messages: 1, Bytes: 15}) {
		t.Errorf("received %+v", got)
	}
	if got := a.SentByName(); len(got) != 1 || got["market.negotiate"] != 2 || a.Malformed != 1 {
		t.Errorf("by name %v, malformed %d", got, a.Malformed)
	}
}

func FuzzDecode(f *testing.F) {
	job := &grid.Job{ID: grid.JobID{Lo: 1}, Home: "h", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: 1, Deadline: grid.Never, Budget: -1}
	frame, err := wire.Encode(&submission{job})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		body, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		m, err := protocol.Decode("x", body)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := wire.CheckJob(m.(*submission).job); err != nil {
			t.Fatalf("decoded, but %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	envelope, err := wire.Seal(key, "quote", []byte("content"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(envelope)
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		if _, _, err := wire.Open("quote", b); err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("untyped error %v", err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	m := &submission{&grid.Job{ID: grid.JobID{Lo: 1}, Home: "h", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: 1, Command: &grid.Command{Args: []string{"true"}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Encode(m); err != nil {
			b.Fatal(err)
		}
	}
}

func mustProto(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKindOf: what a frame says first tells what it costs, and bytes of a peer are no harm.
func TestKindOf(t *testing.T) {
	all, err := wire.Encode(&submission{&grid.Job{}})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.ReadFrame(bytes.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		frame []byte
		want  grid.Kind
	}{
		{frame, wire.MarketJobSubmission}, {frame[:2], wire.MarketJobSubmission}, {frame[:1], 0}, {frame[1:], 0}, {nil, 0},
		{[]byte{8, 0xff}, 0}, {binary.AppendUvarint([]byte{8}, wire.KindMax), 0}, {binary.AppendUvarint([]byte{8}, 1<<63), 0},
	} {
		if got := wire.KindOf(tt.frame); got != tt.want {
			t.Errorf("kind %d of %x, want %d", got, tt.frame, tt.want)
		}
	}
}

// TestCheck: values at their bounds are good, and of all that is wrong the first is told.
func TestCheck(t *testing.T) {
	var c wire.Check
	c.Within("low", 1, 1, 3)
	c.Within("high", 3, 1, 3)
	c.Positive("one", 1)
	if c.Err != nil {
		t.Errorf("values at their bounds: %v", c.Err)
	}
	c.Within("first", 4, 1, 3)
	first := c.Err
	c.Within("second", 0, 1, 3)
	c.Fail("third")
	if first == nil || c.Err != first {
		t.Errorf("told is %v, want %v", c.Err, first)
	}
}

// TestCounterSince: what was counted before is taken away of everything.
func TestCounterSince(t *testing.T) {
	var before, now wire.Counter
	for _, c := range []*wire.Counter{&before, &now} {
		c.Sent(wire.MarketNegotiate, 10)
		c.Received(wire.MarketReply, 20)
		c.Malformed++
	}
	if now.Subtract(&before); now != (wire.Counter{}) {
		t.Errorf("of what was counted before is left: sent %+v, received %+v, malformed %d", now.SentOf(wire.MarketNegotiate), now.ReceivedOf(wire.MarketReply), now.Malformed)
	}
}

// TestJobAbroad: whom to notify only a job's home is to know.
func TestJobAbroad(t *testing.T) {
	j := &grid.Job{ID: grid.JobID{Lo: 1}, Home: "h", Terms: &grid.Terms{Notify: "mail:somebody@example.org", Nice: 7}}
	if p := wire.JobAbroad(j); len(p.Terms.Notify) > 0 || p.Terms.Nice != 7 || p.Home != "h" {
		t.Errorf("abroad: %v", p)
	}
	if p := wire.JobProto(j); string(p.Terms.Notify) != j.Terms.Notify {
		t.Errorf("at home: %v", p)
	}
}
