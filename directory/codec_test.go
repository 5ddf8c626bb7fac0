package directory

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// signer is a site with a key.
type signer struct {
	id  grid.SiteID
	key crypto.PrivKey
}

func newSigner(t testing.TB, seed int64) signer {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.New(rand.NewSource(seed)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer{grid.SiteID(id.String()), key}
}

func (s signer) seal(payload []byte) ([]byte, error) { return wire.Seal(s.key, Domain, payload) }

func (s signer) quote(t testing.TB, change func(q *Quote)) *Quote {
	t.Helper()
	q := goodQuote()
	q.Site = s.id
	q.spread = spreadOf(q.Site)
	if change != nil {
		change(&q)
	}
	if err := q.seal(s.seal); err != nil {
		t.Fatal(err)
	}
	return &q
}

// samples returns a message of each kind.
func samples(t testing.TB) (signer, []wire.Message) {
	s := newSigner(t, 1)
	q := s.quote(t, nil)
	x := trie.PrefixOf(trie.Last(), 5)
	c := cell{Speed, x}
	fences := []trie.Prefix{trie.PrefixOf(trie.Last(), 6), trie.PrefixOf(trie.Last(), 9)}
	return s, []wire.Message{
		&Publish{Quote: q, Copies: []Copy{{Cell: c, Quiet: true}}},
		&Publish{Quote: q, Copies: []Copy{{Cell: c, Spare: true, Skip: fences[0], Safe: true}}},
		&Published{Sequence: 9, Receipts: []Receipt{{Cell: c, Closing: true, Ring: 5}}},
		&Published{Sequence: 9, Receipts: []Receipt{{Cell: c, Moved: true, Absent: true, To: fences[0], Fences: fences}}},
		&Published{Sequence: 9, Receipts: []Receipt{{Cell: c, Gone: true, Refused: true, Closed: true}}},
		&Publish{Quote: q, Copies: []Copy{{Cell: c}, {Cell: root(Price), Quiet: true}}},
		&Published{Sequence: 8, Receipts: []Receipt{{Cell: c}, {Cell: root(Price), Refused: true}}},
		&Withdraw{Cell: c, Quote: q, Moved: true, To: fences[1]},
		&Withdraw{Cell: c, Quote: q},
		&Scan{Token: 4, Cell: c, At: trie.Last(), Limit: 1, Via: "holder"},
		&Scan{Token: 5, Cell: c, Limit: 1, Image: true, Answered: mirroredScansMax},
		&Page{Token: 3, Cell: c, Fences: fences, HasFences: true, Summaries: []*trie.Summary{nil, {Processors: 1, Free: 2, Speed: 3, Price: 4}}, Mirrors: []grid.SiteID{"a", "b"}},
		&Scan{Token: 3, Cell: c, At: trie.Last(), Descending: true, Limit: PageMax, Filter: Filter{1, 2, 3, 4, true, grid.GPUs{Type: "a100", Count: 2}}, Fences: 77, Ring: 9},
		&Page{Token: 3, Cell: c, Quotes: []*Quote{q, q}, More: true, Held: true, Mature: true, Count: 2, Sum: 8, Fences: fences, HasFences: true},
		&Page{Token: 3, Cell: c, Fences: fences, HasFences: true, Hints: []Hint{{fences[0], []grid.SiteID{"a", "b"}}, {fences[1], []grid.SiteID{"c"}}}},
		&Page{Token: 3, Cell: root(Price), Ring: 4, Barren: fences},
		&Page{Token: 3, Cell: root(Price), Ring: 4, Holders: []grid.SiteID{"a", "b"}},
		&Report{Token: 4, Cell: c, Child: fences[1], Holders: []grid.SiteID{"a", "b"}},
		&Report{Token: 4, Cell: c, Child: fences[1], Summary: &trie.Summary{Processors: 1, Free: 2, Speed: 3, Price: 4}},
		&Reported{Token: 4, Moved: true, To: fences[0], Holders: []grid.SiteID{"a"}},
		&Published{Sequence: 9, Receipts: []Receipt{{Cell: c, Moved: true, To: fences[0], Fences: fences, Holders: []grid.SiteID{"a"}}}},
		&Report{Token: 4, Cell: c, Child: fences[1]},
		&Reported{Token: 4, Strays: 3, Fences: fences, Ring: 6},
		&Reported{Token: 4, Moved: true, To: fences[0]},
	}
}

func decodeFrame(p *wire.Protocol, from grid.SiteID, frame []byte) (grid.Message, error) {
	body, err := wire.ReadFrame(bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	return p.Decode(from, body)
}

func TestMessagesSurviveTheWire(t *testing.T) {
	s, messages := samples(t)
	kinds := map[grid.Kind]bool{}
	for _, m := range messages {
		kinds[m.MessageKind()] = true
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeFrame(&Protocol, s.id, frame)
		if err != nil || !reflect.DeepEqual(got, grid.Message(m)) {
			t.Errorf("%T came back as %+v, %v\nwant %+v", m, got, err, m)
		}
	}
	for kind := range Protocol.Decoders {
		if !kinds[kind] {
			t.Errorf("no sample of %s", wire.KindName(kind))
		}
	}
}

func TestFullPageFitsAFrame(t *testing.T) {
	s := newSigner(t, 2)
	largest := s.quote(t, func(q *Quote) {
		q.Name = strings.Repeat("x", nameMax)
		q.Resources = grid.Resources{Processors: processorsMax, Memory: memoryMax}
		q.Rating = grid.Rating{Speed: grid.RatingMax, Bandwidth: grid.RatingMax}
		q.Price, q.Wait, q.Sequence, q.Issued = grid.CreditsMax, grid.SpanMax, 1<<63, grid.SpanMax
	})
	t.Logf("the largest quote takes %d bytes signed", len(largest.Sealed))
	d := New(Config{Self: "me"}, newNetwork(t, 1, Config{}).rng)
	h := d.holder.hold(0, root(Price))
	for i := range 200 { // as large as quotes may ever become
		q := *largest
		q.Sealed = bytes.Repeat([]byte{1}, quoteBytesMax)
		h.put(record{at: trie.Position{Hi: uint64(i)}, quote: &q, expires: grid.Never})
	}
	h.upkeep.standing = mature
	for i := range trie.FencesMax {
		x := trie.PrefixOf(trie.Position{Hi: 1<<63 | uint64(i)<<32, Lo: ^uint64(0)}, 128)
		h.fences.Add(x, grid.Never)
		f := h.fences.Get(x)
		for j := range 4 {
			f.Holders = append(f.Holders, grid.SiteID(fmt.Sprintf("%052d", 4*i+j)))
		}
		for _, holder := range f.Holders[:3*(i%2)] { // every other one is known to be barren
			f.Testify(holder, &trie.Summary{Price: grid.CreditsMax}, grid.Never)
		}
	}
	for _, m := range []Scan{
		{Cell: root(Price), Limit: PageMax},
		{Cell: root(Price), Limit: PageMax, Filter: Filter{ProcessorsMin: 1}, Descending: true, At: trie.Last()},
	} {
		p := d.holder.onScan(0, "asker", &m)
		if m.Descending { // from the last quotes on; those are behind the fences
			p.Barren = h.barren(0, &m, &Page{})
		}
		frame, err := wire.Encode(p)
		if err != nil || !p.More || len(p.Quotes) < 25 || len(p.Fences) != trie.FencesMax || len(p.Hints) != HintsMax || m.Descending && len(p.Barren) != barrenMax {
			t.Fatalf("%d quotes, %d fences, %d hints, %d barren and more %v in %d bytes: %v", len(p.Quotes), len(p.Fences), len(p.Hints), len(p.Barren), p.More, len(frame), err)
		}
	}
}

// Whatever somebody else did to a quote, it is not taken.
func TestForgedQuotesAreRejected(t *testing.T) {
	alice, mallory := newSigner(t, 3), newSigner(t, 4)
	q := alice.quote(t, nil)
	foreign := alice.quote(t, nil)
	if err := foreign.seal(mallory.seal); err != nil {
		t.Fatal(err)
	}
	changed := *q
	changed.Sealed = bytes.Replace(q.Sealed, []byte("Zürich 1"), []byte("Zürich 2"), 1)
	otherDomain := *q
	otherDomain.Sealed, _ = wire.Seal(alice.key, "cheque", []byte("pay"))
	unsigned := *q
	unsigned.Sealed = nil
	large := *q
	large.Sealed = append(bytes.Clone(q.Sealed), make([]byte, quoteBytesMax)...)
	one := []Copy{{Cell: root(Price)}}
	for _, tt := range []struct {
		name string
		from grid.SiteID
		m    wire.Message
	}{
		{"signed by somebody else", alice.id, &Publish{Quote: foreign, Copies: one}},
		{"changed after it was signed", alice.id, &Publish{Quote: &changed, Copies: one}},
		{"signed as something else", alice.id, &Publish{Quote: &otherDomain, Copies: one}},
		{"not signed", alice.id, &Publish{Quote: &unsigned, Copies: one}},
		{"too large", alice.id, &Publish{Quote: &large, Copies: one}},
		{"published by somebody else", mallory.id, &Publish{Quote: q, Copies: one}},
		{"withdrawn by somebody else", mallory.id, &Withdraw{Quote: q}},
		{"in a page", mallory.id, &Page{Quotes: []*Quote{q, foreign}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frame, err := wire.Encode(tt.m)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := decodeFrame(&Protocol, tt.from, frame); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("decoded to %+v, %v", m, err)
			}
		})
	}
}

func TestMalformedMessagesAreRejected(t *testing.T) {
	s := newSigner(t, 5)
	x := trie.PrefixOf(trie.Last(), 5)
	many := make([]trie.Prefix, trie.FencesMax+1)
	for i := range many {
		many[i] = trie.PrefixOf(trie.Position{Hi: 0, Lo: uint64(i) << 8}, 128)
	}
	for i, m := range []wire.Message{
		&Published{Receipts: []Receipt{{Cell: cell{attributes, trie.Prefix{}}}}},
		&Published{Receipts: []Receipt{{Cell: cell{Price, trie.Prefix{Bits: trie.Last(), Length: 129}}}}},
		&Published{Receipts: []Receipt{{Cell: cell{Price, trie.Prefix{Bits: trie.Last(), Length: 5}}}}}, // bits behind the fifth
		&Published{Receipts: []Receipt{{Fences: many}}},
		&Published{Receipts: []Receipt{{Fences: []trie.Prefix{trie.PrefixOf(trie.Last(), 9), trie.PrefixOf(trie.Last(), 6)}}}},
		&Published{Receipts: []Receipt{{Fences: []trie.Prefix{trie.PrefixOf(trie.Last(), 9), trie.PrefixOf(trie.Last(), 9)}}}},
		&Published{Receipts: []Receipt{{Cell: cell{Price, x}, Fences: []trie.Prefix{trie.PrefixOf(trie.First(), 9)}}}},
		&Published{},
		&Published{Receipts: make([]Receipt, CopiesMax+1)},
		&Publish{Quote: s.quote(t, nil)},
		&Publish{Quote: s.quote(t, nil), Copies: make([]Copy, CopiesMax+1)},
		&Publish{Quote: s.quote(t, nil), Copies: []Copy{{Cell: cell{attributes, trie.Prefix{}}}}},
		&Scan{Limit: PageMax + 1},
		&Scan{Limit: -1},
		&Scan{Image: true, Answered: mirroredScansMax + 1},
		&Scan{Image: true, Answered: -1},
		&Scan{Answered: 1}, // not by a mirror
		&Scan{Filter: Filter{PriceMax: -1}},
		&Scan{Filter: Filter{SpeedMin: grid.RatingMax + 1}},
		&Page{Count: recordsMax + 1},
		&Page{HasFences: true, Hints: make([]Hint, HintsMax+1)},
		&Page{HasFences: true, Hints: []Hint{{Cell: x}}}, // of nobody
		&Page{Hints: []Hint{{x, []grid.SiteID{"a"}}}},    // without fences
		&Page{HasFences: true, Cell: cell{Price, x}, Hints: []Hint{{trie.PrefixOf(trie.First(), 9), []grid.SiteID{"a"}}}}, // of a cell elsewhere
		&Page{HasFences: true, Hints: []Hint{{x, []grid.SiteID{"a", "a"}}}},
		&Page{HasFences: true, Hints: []Hint{{x, []grid.SiteID{""}}}},
		&Report{Cell: cell{Price, x}, Child: trie.PrefixOf(trie.Last(), 9), Holders: make([]grid.SiteID, replicasMax+1)},
		&Reported{Holders: []grid.SiteID{grid.SiteID(strings.Repeat("x", siteMax+1))}},
		&Published{Receipts: []Receipt{{Holders: []grid.SiteID{"a", "b", "a"}}}},
		&Page{Quotes: slicesOf(s.quote(t, nil), imagePageMax+1)},
		&Report{Cell: cell{Price, x}, Child: x},
		&Report{Cell: cell{Price, x}, Child: trie.PrefixOf(trie.First(), 9)},
		&Reported{Strays: recordsMax + 1},
		&Reported{Moved: true, To: trie.Prefix{Bits: trie.Last(), Length: 7}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			frame, err := wire.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decodeFrame(&Protocol, s.id, frame); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%+v was decoded to %+v, %v", m, got, err)
			}
		})
	}
}

func slicesOf(q *Quote, n int) (list []*Quote) {
	for range n {
		list = append(list, q)
	}
	return list
}

// fuzz checks that a decoder neither panics nor lets anything through that does not
// come back as it is.
func fuzz(f *testing.F, p *wire.Protocol, kind grid.Kind, from grid.SiteID, messages []wire.Message) {
	for _, m := range messages {
		if m.MessageKind() == kind {
			frame, err := wire.Encode(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(frame)
		}
	}
	corpus.Fuzz(f, func(t *testing.T, frame []byte) {
		m, err := decodeFrame(p, from, frame)
		if err != nil {
			return
		}
		again, err := wire.Encode(m.(wire.Message))
		if err != nil {
			t.Fatalf("%+v does not encode: %v", m, err)
		}
		got, err := decodeFrame(p, from, again)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v came back as %+v, %v", m, got, err)
		}
	})
}

func fuzzDirectory(f *testing.F, kind grid.Kind) {
	s, messages := samples(f)
	fuzz(f, &Protocol, kind, s.id, messages)
}

func FuzzDecodePublish(f *testing.F)   { fuzzDirectory(f, wire.DirectoryPublish) }
func FuzzDecodePublished(f *testing.F) { fuzzDirectory(f, wire.DirectoryPublished) }
func FuzzDecodeWithdraw(f *testing.F)  { fuzzDirectory(f, wire.DirectoryWithdraw) }
func FuzzDecodeScan(f *testing.F)      { fuzzDirectory(f, wire.DirectoryScan) }
func FuzzDecodePage(f *testing.F)      { fuzzDirectory(f, wire.DirectoryPage) }
func FuzzDecodeReport(f *testing.F)    { fuzzDirectory(f, wire.DirectoryReport) }
func FuzzDecodeReported(f *testing.F)  { fuzzDirectory(f, wire.DirectoryReported) }
func FuzzDecodeLoad(f *testing.F) {
	fuzz(f, &Gossip, wire.GossipLoad, "a", []wire.Message{&LoadReport{Load: Load{"a", 1, 2, 8, 3, 4, 5, 6, 7, Headed{}, 0}}})
}

// TestWhatIsOutOfBoundsIsNotSealed: others would take its site for a liar.
func TestWhatIsOutOfBoundsIsNotSealed(t *testing.T) {
	s := newSigner(t, 1)
	q := goodQuote()
	q.Site = s.id
	if err := q.seal(s.seal); err != nil {
		t.Errorf("a good quote: %v", err)
	}
	if q.Wait = -1; q.seal(s.seal) == nil {
		t.Error("a quote with a negative wait is sealed")
	}
	q = goodQuote()
	if err := q.seal(func([]byte) ([]byte, error) { return nil, errors.New("no key") }); err == nil {
		t.Error("sealed without a key")
	}
}
