package lease

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// samples is a message of each kind.
var samples = []wire.Message{
	&Request{Number: 7, Processors: 3, Span: grid.Hour, Patience: grid.Minute, Hold: grid.Second, Subject: grid.JobID{Hi: 1, Lo: 2}, Sink: "a", TTL: 3, Age: 9, Bank: "k", Most: 5, Within: 6},
	&Grant{Number: 7, Epoch: 8, Stamp: 9, Hold: grid.Minute, Span: grid.Hour, Source: "b", Key: 10, Hops: 2, Gone: grid.Hour, Price: 5},
	&Refuse{Number: 7, Reason: Busy, Free: 4, Price: 5, Ready: 6, Span: grid.Hour},
	&Claim{Number: 7, Epoch: 8, Sequence: 1, Stamp: 9},
	&Renew{Number: 7, Epoch: 8, Sequence: 2, Stamp: 9, Span: grid.Hour},
	&Renewed{Number: 7, Epoch: 8, Sequence: 2, Stamp: 9, Term: grid.Minute, Limit: grid.Hour, Gone: grid.Hour},
	&Release{Number: 7},
	&Released{Number: 7, Epoch: 8, Cause: Revoked, Gone: grid.Second},
	&Revoke{Number: 7, Epoch: 8},
	&Invite{Number: 7, Path: []grid.SiteID{"a", "b"}},
	&Join{Number: 7, Answer: AnswerNo, Reason: HasParent},
	&Family{Number: 7, Path: []grid.SiteID{"a"}, Siblings: []grid.SiteID{"b", "c"}, Reason: Parted, Reply: true},
}

func encode(t testing.TB, m wire.Message) []byte {
	b, err := proto.Marshal(m.Proto())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	if len(samples) != len(Protocol.Decoders) {
		t.Fatalf("%d samples for %d kinds", len(samples), len(Protocol.Decoders))
	}
	for _, m := range samples {
		got, err := Protocol.Decoders[m.MessageKind()]("x", encode(t, m))
		if err != nil || !reflect.DeepEqual(got, grid.Message(m)) {
			t.Errorf("%T: %+v, %v, want %+v", m, got, err, m)
		}
		if wire.KindName(m.MessageKind()) == "" {
			t.Errorf("%T has no name", m)
		}
	}
}

// TestMalformed: every field out of bounds is refused by the decoder.
func TestMalformed(t *testing.T) {
	request := func(change func(*Request)) wire.Message {
		m := *samples[0].(*Request)
		change(&m)
		return &m
	}
	grant := func(change func(*Grant)) wire.Message {
		m := *samples[1].(*Grant)
		change(&m)
		return &m
	}
	renewed := func(change func(*Renewed)) wire.Message {
		m := *samples[5].(*Renewed)
		change(&m)
		return &m
	}
	for i, m := range []wire.Message{
		request(func(m *Request) { m.Number = 0 }),
		request(func(m *Request) { m.Processors = 0 }),
		request(func(m *Request) { m.Processors = -1 }),
		request(func(m *Request) { m.Processors = ProcessorsMax + 1 }),
		request(func(m *Request) { m.Span = 0 }),
		request(func(m *Request) { m.Span = -1 }),
		request(func(m *Request) { m.Span = SpanLimit + 1 }),
		request(func(m *Request) { m.Patience = -1 }),
		request(func(m *Request) { m.Patience = PatienceLimit + 1 }),
		request(func(m *Request) { m.Hold = HoldLimit + 1 }),
		request(func(m *Request) { m.Subject = grid.JobID{} }),
		request(func(m *Request) { m.Sink = "" }),
		request(func(m *Request) { m.TTL = TTLMax + 1 }),
		request(func(m *Request) { m.TTL = -1 }),
		request(func(m *Request) { m.Age = -1 }),
		request(func(m *Request) { m.Bank = grid.SiteID(make([]byte, siteIDMax+1)) }),
		request(func(m *Request) { m.Most = -1 }),
		request(func(m *Request) { m.Most = grid.CreditsMax + 1 }),
		request(func(m *Request) { m.Within = -1 }),
		grant(func(m *Grant) { m.Price = -1 }),
		grant(func(m *Grant) { m.Price = grid.CreditsMax + 1 }),
		&Refuse{Number: 7, Reason: Busy, Ready: -1},
		&Refuse{Number: 7, Reason: Dear, Price: -1},
		&Refuse{Number: 7, Reason: Busy, Lends: ProcessorsMax + 1},
		&Refuse{Number: 7, Reason: Busy, Span: SpanLimit + 1},
		grant(func(m *Grant) { m.Epoch = 0 }),
		grant(func(m *Grant) { m.Hold = 0 }),
		grant(func(m *Grant) { m.Span = SpanLimit + 1 }),
		grant(func(m *Grant) { m.Key = 0 }),
		grant(func(m *Grant) { m.Hops = 0 }),
		grant(func(m *Grant) { m.Hops = HopsMax + 1 }),
		grant(func(m *Grant) { m.Source = "" }),
		grant(func(m *Grant) { m.Gone = -1 }),
		&Refuse{Number: 7, Free: 4},
		&Refuse{Number: 7, Reason: Busy, Free: -1},
		&Claim{Number: 7, Epoch: 8},
		&Claim{Number: 7, Sequence: 8},
		&Renew{Number: 7, Epoch: 8, Sequence: 2, Span: -1},
		grant(func(m *Grant) { m.Gone = goneMax + 1 }),
		renewed(func(m *Renewed) { m.Term = 0 }),
		renewed(func(m *Renewed) { m.Term, m.Limit = TermMax+1, SpanLimit }),
		renewed(func(m *Renewed) { m.Limit = m.Term - 1 }),
		renewed(func(m *Renewed) { m.Sequence = 0 }),
		&Release{},
		&Released{},
		&Revoke{Number: 7},
		&Invite{Number: 7},
		&Invite{Path: []grid.SiteID{"a"}},
		&Invite{Number: 7, Path: []grid.SiteID{"a", ""}},
		&Invite{Number: 7, Path: []grid.SiteID{"a", "b", "a"}},
		&Invite{Number: 7, Path: manySites(DepthMax + 1)},
		&Join{Number: 7, Answer: AnswerNo + 1},
		&Join{Number: 7, Answer: AnswerNo},
		&Family{Number: 7},
		&Family{Number: 7, Path: []grid.SiteID{grid.SiteID(make([]byte, siteIDMax+1))}},
		&Family{Number: 7, Path: []grid.SiteID{"a"}, Siblings: manySites(SiblingsMax + 1)},
	} {
		if got, err := Protocol.Decoders[m.MessageKind()]("x", encode(t, m)); !errors.Is(err, wire.ErrMalformed) || got != nil {
			t.Errorf("case %d: %T %+v was decoded as %+v, %v", i, m, m, got, err)
		}
	}
}

func manySites(n int) (list []grid.SiteID) {
	for i := range n {
		list = append(list, grid.SiteID(fmt.Sprint("site", i)))
	}
	return list
}

func fuzzDecoder(f *testing.F, kind grid.Kind) {
	for _, m := range samples {
		if m.MessageKind() == kind {
			f.Add(encode(f, m))
		}
	}
	f.Add([]byte{0xff})
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		m, err := Protocol.Decoders[kind]("x", body)
		if err != nil {
			if m != nil || !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%v with %v", m, err)
			}
			return
		}
		again, err := Protocol.Decoders[kind]("x", encode(t, m.(wire.Message)))
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v becomes %+v, %v", m, again, err)
		}
	})
}

func FuzzDecodeRequest(f *testing.F)  { fuzzDecoder(f, wire.LeaseRequest) }
func FuzzDecodeGrant(f *testing.F)    { fuzzDecoder(f, wire.LeaseGrant) }
func FuzzDecodeRefuse(f *testing.F)   { fuzzDecoder(f, wire.LeaseRefuse) }
func FuzzDecodeClaim(f *testing.F)    { fuzzDecoder(f, wire.LeaseClaim) }
func FuzzDecodeRenew(f *testing.F)    { fuzzDecoder(f, wire.LeaseRenew) }
func FuzzDecodeRenewed(f *testing.F)  { fuzzDecoder(f, wire.LeaseRenewed) }
func FuzzDecodeRelease(f *testing.F)  { fuzzDecoder(f, wire.LeaseRelease) }
func FuzzDecodeReleased(f *testing.F) { fuzzDecoder(f, wire.LeaseReleased) }
func FuzzDecodeRevoke(f *testing.F)   { fuzzDecoder(f, wire.LeaseRevoke) }

func FuzzDecodeInvite(f *testing.F) { fuzzDecoder(f, wire.LeaseInvite) }
func FuzzDecodeJoin(f *testing.F)   { fuzzDecoder(f, wire.LeaseJoin) }
func FuzzDecodeFamily(f *testing.F) { fuzzDecoder(f, wire.LeaseFamily) }

func FuzzDecodeRecord(f *testing.F) {
	e := &entry{Lease: Lease{
		ID: ID{"a", 7}, Lender: "b", Processors: 3, State: Active, Epoch: 8, Since: 1, End: 2, Limit: 3, Span: 2, Subject: grid.JobID{Lo: 1}, Sink: "a", Source: "b", Key: 8, Hops: 1,
	}, sequence: 4, stamp: 5, gone: 6, goneSpan: 7, revoked: true}
	f.Add((*record)(e).AppendRecord(nil))
	corpus.Fuzz(f, func(t *testing.T, value []byte) {
		e, err := decodeRecord(value)
		if err != nil {
			return
		}
		first := (*record)(e).AppendRecord(nil)
		again, err := decodeRecord(first)
		if err != nil || !bytes.Equal(first, (*record)(again).AppendRecord(nil)) {
			t.Fatalf("%+v becomes %+v, %v", e, again, err)
		}
	})
}

func FuzzDecodeLinkRecord(f *testing.F) {
	k := &kin{Kin: Kin{Link: Link{"a", Parent}, Standing: Offered, Origin: ByInvitation, Since: 1, Until: 2}, number: 7}
	f.Add((*kinRecord)(k).AppendRecord(nil))
	corpus.Fuzz(f, func(t *testing.T, value []byte) {
		k, err := decodeKin(value)
		if err != nil {
			return
		}
		first := (*kinRecord)(k).AppendRecord(nil)
		again, err := decodeKin(first)
		if err != nil || !bytes.Equal(first, (*kinRecord)(again).AppendRecord(nil)) {
			t.Fatalf("%+v becomes %+v, %v", k, again, err)
		}
	})
}
