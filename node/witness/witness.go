package witness

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Protocols of streams.
const (
	AskProtocol  = "/gridnode/witness/ask/1"
	TellProtocol = "/gridnode/witness/tell/1"
)

// TellEvery is how often a site whose store goes on tells its witnesses. It tells first
// when it has met somebody, and last when it stops.
const TellEvery = 30 * time.Second

const (
	witnessesMax = 5 // that a site tells
	triedMax     = 10
	tellFirst    = time.Second     // after the start, and later and later until one is told
	talkMax      = 5 * time.Second // for one exchange
	askMax       = time.Second     // for the witnesses to answer a site that starts
	askedMax     = 3               // witnesses that it asks
)

// Stream is a stream between two sites.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	Reset() error
	SetDeadline(time.Time) error
}

// Config is what a site tells and whom.
type Config struct {
	Key        crypto.PrivKey
	Self       grid.SiteID
	Federation string
	Book       *Book

	Batch func() uint64        // that the store has, durably
	Peers func() []grid.SiteID // connected members

	// Open opens a stream of TellProtocol.
	Open func(ctx context.Context, to grid.SiteID) (Stream, error)
	// Call has talk use a stream of AskProtocol to a site, before there is a network. It
	// returns an error if there is no way to it.
	Call func(ctx context.Context, to grid.SiteID, talk func(Stream) error) error

	Log *slog.Logger
}

// Teller tells others how far a site's store is, and hears what they know of it.
type Teller struct {
	cfg  Config
	told atomic.Uint64 // batch of the last word, or never
}

// New returns the teller of a site.
func New(cfg Config) *Teller {
	t := &Teller{cfg: cfg}
	t.told.Store(never)
	return t
}

// never is no batch.
const never = math.MaxUint64

// Ask asks those who should know whether the store, of which nothing was changed since it
// was opened, is an older copy. It takes no longer than askMax. Without an answer it returns
// nil: a site must be able to start alone.
func (t *Teller) Ask(ctx context.Context) error {
	witnesses := t.cfg.Book.witnesses()
	slices.Reverse(witnesses)
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	answers := make(chan error, len(witnesses))
	asked := 0
	for _, w := range witnesses[:min(len(witnesses), askedMax)] {
		asked++
		go func() {
			var heard error
			err := t.cfg.Call(ctx, w, func(s Stream) error {
				sealed, err := receive(s)
				if err == nil {
					heard = t.judge(w, sealed)
				}
				return err
			})
			if err == nil || heard != nil {
				answers <- heard
			} else {
				answers <- errNoAnswer
			}
		}()
	}
	for ; asked > 0; asked-- {
		select {
		case err := <-answers:
			if !errors.Is(err, errNoAnswer) {
				return err
			}
		case <-ctx.Done():
			asked = 1
		}
	}
	if len(witnesses) > 0 {
		t.cfg.Log.Info("nobody of those who know how far this site was can be asked now whether this home is its newest copy")
	}
	return nil
}

var errNoAnswer = errors.New("no answer")

// Run tells, and writes the book, until ctx ends. It returns an error if somebody shows that
// the store is an older copy.
func (t *Teller) Run(ctx context.Context) error {
	for pause := tellFirst; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		if err := t.Tell(ctx); err != nil {
			return err
		}
		t.save()
		if pause = min(2*pause, TellEvery); t.told.Load() != never {
			pause = TellEvery
		}
	}
}

func (t *Teller) save() {
	if err := t.cfg.Book.save(); err != nil {
		t.cfg.Log.Warn(err.Error())
	}
}

// Close tells for the last time, and writes the book. ctx bounds the telling.
func (t *Teller) Close(ctx context.Context) {
	_ = t.Tell(ctx) // who is told of an older copy says so at the next start as well
	t.save()
}

// Tell tells some connected members how far the store is, if that is further than before.
func (t *Teller) Tell(ctx context.Context) error {
	batch := t.cfg.Batch()
	if batch == t.told.Load() {
		return nil
	}
	peers := t.cfg.Peers()
	known := t.cfg.Book.witnesses()
	slices.SortFunc(peers, func(a, b grid.SiteID) int { // those who know something first
		return slices.Index(known, b) - slices.Index(known, a)
	})
	told := 0
	for _, p := range peers[:min(len(peers), triedMax)] {
		if told == witnessesMax {
			break
		}
		err := t.tell(ctx, p, batch)
		if errors.Is(err, ErrOlder) {
			return err
		}
		if err == nil {
			told++
			t.cfg.Book.witnessed(p)
		}
	}
	if told > 0 {
		t.told.Store(batch)
	}
	return nil
}

// tell tells one.
func (t *Teller) tell(ctx context.Context, to grid.SiteID, batch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, talkMax)
	defer cancel()
	sealed, err := Word{t.cfg.Federation, batch, time.Now()}.seal(t.cfg.Key)
	if err != nil {
		return err
	}
	s, err := t.cfg.Open(ctx, to)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = s.SetDeadline(deadline)
	}
	err = wire.WriteFrame(s, sealed)
	if err == nil {
		sealed, err = receive(s)
	}
	if err != nil {
		_ = s.Reset()
		return err
	}
	_ = s.Close()
	return t.judge(to, sealed)
}

// judge compares the newest word of this site that another has with the store.
func (t *Teller) judge(by grid.SiteID, sealed []byte) error {
	if len(sealed) == 0 {
		return nil
	}
	w, err := open(sealed, t.cfg.Self)
	if err != nil || w.Federation != t.cfg.Federation {
		return nil // proves nothing
	}
	if has := t.cfg.Batch(); w.Batch > has {
		return fmt.Errorf("%w: site %s has this site's own word of %s that its store had a batch %d, and it ends with batch %d: bring the newest copy back; or, if what came since may be forgotten (jobs, leases, credits of a bank), and nothing of it runs any more, 'gridnode restore --this-copy' and start again",
			ErrOlder, by, w.At.UTC().Format(time.RFC3339), w.Batch, has)
	}
	return nil
}

// ServeAsk answers who asks for the newest word of its own.
func (t *Teller) ServeAsk(from grid.SiteID, s Stream) error {
	_ = s.SetDeadline(time.Now().Add(talkMax))
	return wire.WriteFrame(s, t.cfg.Book.of(from))
}

// ServeTell takes the word of a member.
func (t *Teller) ServeTell(from grid.SiteID, s Stream) error {
	_ = s.SetDeadline(time.Now().Add(talkMax))
	sealed, err := receive(s)
	if err != nil {
		return err
	}
	w, err := open(sealed, from)
	if err != nil {
		return err
	}
	if w.Federation != t.cfg.Federation {
		return wire.Malformed("word of federation %.80q", w.Federation)
	}
	t.cfg.Book.keep(from, sealed, w, time.Now())
	return wire.WriteFrame(s, t.cfg.Book.of(from))
}

// receive reads a frame.
func receive(s Stream) ([]byte, error) {
	r := bufio.NewReaderSize(s, 512)
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > wordMax {
		return nil, wire.Malformed("word of %d bytes", n)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
