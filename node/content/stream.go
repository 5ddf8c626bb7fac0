package content

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of a stream.
const (
	batch   = 256              // chunks asked for in one request
	asked   = 2                // requests under way, so that the next is there when one is answered
	ahead   = 4                // chunks that are read while one leaves
	keeping = 4                // chunks that are verified and kept while others come
	waiting = 4                // that have come and wait for it
	idleMax = 30 * time.Second // for the next request, and for anything to come or to leave

	listMax = time.Hour // for the tree of results or of a data set, of which each byte is read
)

// Stream is a connection to another site.
type Stream interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// Giver is what Serve gives from. ErrAbsent says that something is not here.
type Giver interface {
	// Read returns what has a digest, in buf if that is large enough. It is called by several
	// goroutines at the same time.
	Read(d Digest, buf []byte) ([]byte, error)
	// Results returns the encoded tree of what an execution has left and is wanted; ErrAbsent
	// if there is none. Read knows its chunks from then on.
	Results(job []byte, epoch uint32, what *grid.Files) ([]byte, error)
	// DataSet returns the encoded tree of a data set: one file, or nothing and Why. Read knows
	// its chunks from then on.
	DataSet(name string) ([]byte, error)
}

// Serve answers the requests of a stream until the other side is done. Each answer is, for
// each thing that was asked for, its size and itself; size 0 stands for what is not here.
func Serve(s Stream, from Giver) error {
	r := bufio.NewReader(s)
	w := &writer{s: s, w: bufio.NewWriterSize(s, 64<<10)}
	for {
		s.SetDeadline(time.Now().Add(idleMax))
		if _, err := r.Peek(1); err != nil {
			return nil // the other side is done
		}
		var request wirepb.ContentRequest
		if err := wire.ReadProto(r, &request); err != nil {
			return err
		}
		if err := w.answer(&request, from); err != nil {
			return err
		}
		if err := w.w.Flush(); err != nil {
			return err
		}
	}
}

// writer is the answering side of a stream.
type writer struct {
	s       Stream
	w       *bufio.Writer
	buffers [ahead][]byte
}

func (w *writer) answer(request *wirepb.ContentRequest, from Giver) error {
	if len(request.Chunks) > batch {
		return wire.Malformed("%d chunks at once, at most %d", len(request.Chunks), batch)
	}
	wanted := request.Chunks
	if len(request.Tree) > 0 {
		wanted = append(wanted, request.Tree)
	}
	for _, d := range wanted {
		if len(d) != len(Digest{}) {
			return wire.Malformed("digest of %d bytes", len(d))
		}
	}
	if err := w.chunks(wanted, from); err != nil {
		return err
	}
	var b []byte
	var err error
	w.s.SetDeadline(time.Now().Add(listMax)) // all of what is listed is read
	switch {
	case len(request.Job) == 16:
		var what *grid.Files
		if what, err = wire.FilesFromProto(request.Files); err == nil {
			b, err = from.Results(request.Job, request.Epoch, what)
		}
	case len(request.Job) > 0:
		return wire.Malformed("job of %d bytes", len(request.Job))
	case request.DataSet == "":
		return nil
	default:
		if err = grid.CheckDataName(request.DataSet); err != nil {
			return wire.Malformed("%v", err)
		}
		b, err = from.DataSet(request.DataSet)
	}
	if err != nil && !errors.Is(err, ErrAbsent) {
		return err
	}
	return w.give(b)
}

// chunks gives chunks, in order, and reads some ahead.
func (w *writer) chunks(wanted [][]byte, from Giver) error {
	type read struct {
		b   []byte
		err error
	}
	var slots [ahead]chan read
	var under sync.WaitGroup
	defer under.Wait()
	begin := func(i int) {
		at := i % ahead
		under.Go(func() {
			b, err := from.Read(Digest(wanted[i]), w.buffers[at])
			slots[at] <- read{b, err}
		})
	}
	for i := range min(ahead, len(wanted)) {
		slots[i] = make(chan read, 1)
		begin(i)
	}
	for i := range wanted {
		r := <-slots[i%ahead]
		if r.err != nil && !errors.Is(r.err, ErrAbsent) && !errors.Is(r.err, ErrChanged) {
			return r.err
		}
		if err := w.give(r.b); err != nil {
			return err
		}
		if r.b != nil && cap(r.b) <= ChunkMax { // else it is a tree's
			w.buffers[i%ahead] = r.b
		}
		if i+ahead < len(wanted) {
			begin(i + ahead)
		}
	}
	return nil
}

func (w *writer) give(b []byte) error {
	w.s.SetDeadline(time.Now().Add(idleMax))
	if _, err := w.w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.w.Write(b)
	return err
}

// Peer gets chunks and trees from another site. Not safe for concurrent use.
type Peer struct {
	s Stream
	r *bufio.Reader
}

// NewPeer returns what asks at the other end of a stream.
func NewPeer(s Stream) *Peer { return &Peer{s, bufio.NewReaderSize(s, 64<<10)} }

// Tree gets the encoding of a tree; ErrAbsent if the other does not have it.
func (p *Peer) Tree(d Digest) ([]byte, error) {
	if err := p.ask(&wirepb.ContentRequest{Tree: d[:]}); err != nil {
		return nil, err
	}
	b, err := p.one(TreeMax)
	if err == nil && sha256.Sum256(b) != d {
		err = wire.Malformed("a tree that has another digest than was asked for")
	}
	return b, err
}

// Results gets the encoded tree of what an execution has left; ErrAbsent if that is nothing.
func (p *Peer) Results(job []byte, epoch uint32, what *grid.Files) ([]byte, error) {
	return p.list(&wirepb.ContentRequest{Job: job, Epoch: epoch, Files: wire.FilesProto(what)})
}

// DataSet gets the encoded tree of a data set that the other shares: one file. Why of one
// without files says why it does not give it.
func (p *Peer) DataSet(name string) ([]byte, error) {
	return p.list(&wirepb.ContentRequest{DataSet: name})
}

// list gets a tree that may have to be made first.
func (p *Peer) list(request *wirepb.ContentRequest) ([]byte, error) {
	if err := p.ask(request); err != nil {
		return nil, err
	}
	p.s.SetDeadline(time.Now().Add(listMax))
	if _, err := p.r.Peek(1); err != nil {
		return nil, fmt.Errorf("the connection broke: %w", err)
	}
	return p.one(TreeMax)
}

// Chunks gets chunks and gives each to take, verified. take is called by several goroutines at
// the same time and does not keep what it is given. Chunks returns how many are not there; with
// an error, too, what has come before was given. After an error the Peer is of no use.
func (p *Peer) Chunks(chunks []Chunk, take func(Digest, []byte) error) (absent int, err error) {
	k := newKeepers(take)
	defer func() {
		if failed := k.end(); failed != nil {
			err = failed
		}
	}()
	stop, under := make(chan struct{}), make(chan struct{}, asked)
	defer close(stop)
	go p.askAll(chunks, under, stop)
	for i := range chunks {
		b := <-k.free
		if k.failed.Load() {
			return absent, nil
		}
		b, err := p.chunk(chunks[i].Size, b)
		if errors.Is(err, ErrAbsent) {
			absent++
			k.free <- b
		} else if err != nil {
			return absent, err
		} else {
			k.come <- arrival{chunks[i].Digest, b}
		}
		if (i+1)%batch == 0 {
			<-under
		}
	}
	return absent, nil
}

// askAll asks for chunks, some requests ahead of the answers, which take from under.
func (p *Peer) askAll(chunks []Chunk, under chan<- struct{}, stop <-chan struct{}) {
	for some := range slices.Chunk(chunks, batch) {
		select {
		case under <- struct{}{}:
		case <-stop:
			return
		}
		request := &wirepb.ContentRequest{}
		for i := range some {
			request.Chunks = append(request.Chunks, some[i].Digest[:])
		}
		if p.ask(request) != nil {
			return // reading fails, too
		}
	}
}

// keepers verify chunks and have them taken, several at the same time.
type keepers struct {
	take   func(Digest, []byte) error
	free   chan []byte // buffers, at first none of any size
	come   chan arrival
	failed atomic.Bool
	under  sync.WaitGroup
	once   sync.Once
	err    error // the first; read when under is done
}

// arrival is a chunk that should have a digest.
type arrival struct {
	digest Digest
	b      []byte
}

func newKeepers(take func(Digest, []byte) error) *keepers {
	const buffers = 1 + keeping + waiting
	k := &keepers{take: take, free: make(chan []byte, buffers), come: make(chan arrival, waiting)}
	for range buffers {
		k.free <- nil
	}
	for range keeping {
		k.under.Go(k.keep)
	}
	return k
}

func (k *keepers) keep() {
	for c := range k.come {
		if k.failed.Load() {
			continue
		}
		err := wire.Malformed("a chunk that has another digest than was asked for")
		if sha256.Sum256(c.b) == c.digest {
			err = k.take(c.digest, c.b)
		}
		if err != nil {
			k.once.Do(func() { k.err = err })
			k.failed.Store(true)
		}
		k.free <- c.b
	}
}

// end waits until what has come is kept.
func (k *keepers) end() error {
	close(k.come)
	k.under.Wait()
	return k.err
}
func (p *Peer) ask(request *wirepb.ContentRequest) error {
	p.s.SetDeadline(time.Now().Add(idleMax))
	return wire.WriteProto(p.s, request)
}

// size reads how many bytes the next thing has, at most so many.
func (p *Peer) size(most int64) (uint64, error) {
	p.s.SetDeadline(time.Now().Add(idleMax))
	size, err := binary.ReadUvarint(p.r)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the connection broke: %w", err)
	case size == 0:
		return 0, ErrAbsent
	case size > uint64(most):
		return 0, wire.Malformed("%d bytes, at most %d were to come", size, most)
	}
	return size, nil
}

// chunk reads a chunk of at most so many bytes, into b if that is large enough.
func (p *Peer) chunk(most int64, b []byte) ([]byte, error) {
	size, err := p.size(min(most, ChunkMax))
	if err != nil {
		return b, err
	}
	if uint64(cap(b)) < size {
		b = make([]byte, size)
	}
	b = b[:size]
	if _, err := io.ReadFull(p.r, b); err != nil {
		return b, fmt.Errorf("the connection broke: %w", err)
	}
	return b, nil
}

// one reads one thing of at most so many bytes.
func (p *Peer) one(most int64) ([]byte, error) {
	size, err := p.size(most)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, min(size, ChunkMax))
	for uint64(len(b)) < size { // a size alone takes no memory
		p.s.SetDeadline(time.Now().Add(idleMax))
		n := min(size-uint64(len(b)), ChunkMax)
		at := len(b)
		b = append(b, make([]byte, n)...)
		if _, err := io.ReadFull(p.r, b[at:]); err != nil {
			return nil, fmt.Errorf("the connection broke: %w", err)
		}
	}
	return b, nil
}
