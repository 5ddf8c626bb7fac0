package record

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// signer is a key, and whose it is.
type signer struct {
	key crypto.PrivKey
	id  grid.SiteID
}

func newSigner(t testing.TB, seed byte) signer {
	key, _, err := crypto.GenerateEd25519Key(strings.NewReader(strings.Repeat(string(rune('a'+seed)), 64)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, grid.SiteID(id.String())}
}

func (s signer) record(t testing.TB, change func(*Record)) *Record {
	r := &Record{
		Site: s.id, Sequence: 7, Issued: grid.Hour, Lifetime: LifetimeDefault,
		Offer: Offer{
			Name: "delft", Authority: "TU Delft", Addresses: []string{"/ip4/192.0.2.1/tcp/4001/p2p/" + string(s.id)},
			Resources: grid.Resources{Processors: 64, Memory: 1 << 30}, Rating: grid.Rating{Speed: 1000, Bandwidth: 100}, Services: Runs | Lends,
		},
	}
	if change != nil {
		change(r)
	}
	err := r.seal(func(payload []byte) ([]byte, error) { return wire.Seal(s.key, Domain, payload) })
	if err != nil && change == nil {
		t.Fatal(err)
	}
	return r
}

// TestMessagesSurviveTheWire: what is sent is what arrives.
func TestMessagesSurviveTheWire(t *testing.T) {
	a, b := newSigner(t, 0), newSigner(t, 1)
	if a.id > b.id {
		a, b = b, a
	}
	for _, m := range []wire.Message{
		&Enter{a.record(t, nil)}, &Entered{}, &Entered{7, Full, []grid.SiteID{"x", "y"}}, &Inquire{1, "delft"},
		&Inform{Token: 1}, &Inform{2, []*Record{a.record(t, nil), b.record(t, nil)}},
	} {
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Protocol.Decode(a.id, frame[wireHead(frame):]); err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%T came back as %v, %v", m, back, err)
		}
	}
}

// wireHead returns the length of what stands before a frame's message.
func wireHead(frame []byte) int {
	for i, b := range frame {
		if b < 0x80 {
			return i + 1
		}
	}
	return len(frame)
}

// TestBadRecordsAreMalformed: who signs for another, signs for another purpose, changes
// what was signed, or goes beyond a bound, is not believed.
func TestBadRecordsAreMalformed(t *testing.T) {
	a, b := newSigner(t, 0), newSigner(t, 1)
	good := a.record(t, nil)
	changed := append([]byte(nil), good.Sealed...)
	changed[len(changed)/2] ^= 1
	payload, _, err := wire.Open(Domain, good.Sealed)
	if err != nil {
		t.Fatal(err)
	}
	purpose, err := wire.Seal(a.key, "quote", payload)
	if err != nil {
		t.Fatal(err)
	}
	other, err := wire.Seal(b.key, Domain, payload)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]byte{"nothing": nil, "changed": changed, "another purpose": purpose, "signed by another": other, "too long": make([]byte, sealedMax+1)}
	for name, change := range map[string]func(*Record){
		"no site":              func(r *Record) { r.Site = "" },
		"long name":            func(r *Record) { r.Name = strings.Repeat("x", NameMax+1) },
		"name with a newline":  func(r *Record) { r.Name = "a\nb" },
		"long authority":       func(r *Record) { r.Authority = strings.Repeat("x", NameMax+1) },
		"many addresses":       func(r *Record) { r.Addresses = make([]string, addressesMax+1) },
		"empty address":        func(r *Record) { r.Addresses = []string{""} },
		"long address":         func(r *Record) { r.Addresses = []string{strings.Repeat("x", addressMax+1)} },
		"too many processors":  func(r *Record) { r.Processors = processorsMax + 1 },
		"negative memory":      func(r *Record) { r.Memory = -1 },
		"too fast":             func(r *Record) { r.Speed = grid.RatingMax + 1 },
		"sequence 0":           func(r *Record) { r.Sequence = 0 },
		"issued before time":   func(r *Record) { r.Issued = -1 },
		"no lifetime":          func(r *Record) { r.Lifetime = 0 },
		"lives for ever":       func(r *Record) { r.Lifetime = lifetimeMax + 1 },
		"of another, signed a": func(r *Record) { r.Site = b.id },
	} {
		tests[name] = a.record(t, change).Sealed
	}
	for name, sealed := range tests {
		if r, err := Open(sealed); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		for _, m := range []proto.Message{&wirepb.RecordEnter{Sealed: sealed}, &wirepb.RecordInform{Sealed: [][]byte{sealed}}} {
			body, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			decode := decodeEnter
			if _, ok := m.(*wirepb.RecordInform); ok {
				decode = decodeInform
			}
			if back, err := decode(a.id, body); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s in %T: %v, %v", name, m, back, err)
			}
		}
	}
	for _, m := range []wire.Message{
		&Entered{Claims: make([]grid.SiteID, claimsMax+1)}, &Entered{Claims: []grid.SiteID{"b", "a"}}, &Entered{Refusal: refusalMax + 1},
		&Inquire{}, &Inquire{Text: strings.Repeat("x", textMax+1)}, &Inform{Records: []*Record{good, good}}, &Enter{b.record(t, nil)},
	} {
		body, err := proto.Marshal(m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Protocol.Decoders[m.MessageKind()](a.id, body); err == nil {
			t.Errorf("%v was taken as %v", m, back)
		}
	}
}

// TestTheLargestAnswerFits: an answer of as many of the largest records as there may be is
// within the bound of messages.
func TestTheLargestAnswerFits(t *testing.T) {
	s := newSigner(t, 0)
	r := s.record(t, func(r *Record) {
		r.Name, r.Authority = strings.Repeat("n", NameMax), strings.Repeat("a", NameMax)
		for range addressesMax {
			r.Addresses = append(r.Addresses[:min(len(r.Addresses), addressesMax-1)], strings.Repeat("x", addressMax))
		}
	})
	if _, err := Open(r.Sealed); err != nil {
		t.Fatalf("the largest record has %d bytes: %v", len(r.Sealed), err)
	}
	m := &Inform{Token: 1 << 63}
	for range informMax {
		m.Records = append(m.Records, r)
	}
	if body, err := proto.Marshal(m.Proto()); err != nil || len(body) > frameMax {
		t.Errorf("%d bytes, at most %d: %v", len(body), frameMax, err)
	}
}

// TestAsManyRecordsAsThereMayBe: an answer of that many decodes, and one of more does not.
func TestAsManyRecordsAsThereMayBe(t *testing.T) {
	var all []*Record
	for i := range informMax + 1 {
		all = append(all, newSigner(t, byte(i)).record(t, nil))
	}
	slices.SortFunc(all, func(a, b *Record) int { return strings.Compare(string(a.Site), string(b.Site)) })
	for n, want := range map[int]bool{informMax: true, informMax + 1: false} {
		body, err := proto.Marshal((&Inform{Token: 1, Records: all[:n]}).Proto())
		if err != nil {
			t.Fatal(err)
		}
		m, err := Protocol.Decoders[wire.DirectoryInform]("", body)
		if (err == nil) != want || want && len(m.(*Inform).Records) != n || !want && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%d records: %v, %v", n, m, err)
		}
	}
}

// FuzzDecode: whatever a peer sends, a decoder neither panics nor lets anything through
// that is out of bounds, and what it lets through encodes to something that decodes alike.
func FuzzDecode(f *testing.F) {
	s := newSigner(f, 0)
	kinds := []grid.Kind{wire.DirectoryEnter, wire.DirectoryEntered, wire.DirectoryInquire, wire.DirectoryInform}
	for i, m := range []wire.Message{&Enter{s.record(f, nil)}, &Entered{7, Full, []grid.SiteID{"x"}}, &Inquire{1, "delft"}, &Inform{2, []*Record{s.record(f, nil)}}} {
		body, err := proto.Marshal(m.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{byte(i)}, body...))
	}
	corpus.Fuzz(f, func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		decode := Protocol.Decoders[kinds[int(input[0])%len(kinds)]]
		m, err := decode(s.id, input[1:])
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := proto.Marshal(m.(wire.Message).Proto())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decode(s.id, again); err != nil || fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", m) && m.MessageKind() != wire.DirectoryEnter && m.MessageKind() != wire.DirectoryInform {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
	})
}
