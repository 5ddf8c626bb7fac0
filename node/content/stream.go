package content

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of a stream.
const (
	batch   = 256              // chunks asked for at once
	idleMax = 30 * time.Second // for the next request, and for anything to come or to leave

	resultsMax = time.Hour // for the tree of results, of which each byte is read
)

// Stream is a connection to another site.
type Stream interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// Giver is what Serve gives from. ErrAbsent says that something is not here.
type Giver interface {
	Get(Digest) ([]byte, error)
	// Results returns the encoded tree of what an execution has left and is wanted; ErrAbsent
	// if there is none. Get knows its chunks from then on.
	Results(job []byte, epoch uint32, what *grid.Files) ([]byte, error)
}

// Serve answers the requests of a stream until the other side is done. Each answer is, for
// each thing that was asked for, its size and itself; size 0 stands for what is not here.
func Serve(s Stream, from Giver) error {
	r := bufio.NewReader(s)
	w := bufio.NewWriterSize(s, 64<<10)
	for {
		s.SetDeadline(time.Now().Add(idleMax))
		if _, err := r.Peek(1); err != nil {
			return nil // the other side is done
		}
		var request wirepb.ContentRequest
		if err := wire.ReadProto(r, &request); err != nil {
			return err
		}
		if err := answer(s, w, &request, from); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func answer(s Stream, w *bufio.Writer, request *wirepb.ContentRequest, from Giver) error {
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
		b, err := from.Get(Digest(d))
		if err != nil && !errors.Is(err, ErrAbsent) && !errors.Is(err, ErrChanged) {
			return err
		}
		if err := give(s, w, b); err != nil {
			return err
		}
	}
	if len(request.Job) == 0 {
		return nil
	}
	if len(request.Job) != 16 {
		return wire.Malformed("job of %d bytes", len(request.Job))
	}
	what, err := wire.FilesFromProto(request.Files)
	if err != nil {
		return err
	}
	s.SetDeadline(time.Now().Add(resultsMax)) // they are read, each byte
	b, err := from.Results(request.Job, request.Epoch, what)
	if err != nil && !errors.Is(err, ErrAbsent) {
		return err
	}
	return give(s, w, b)
}

func give(s Stream, w *bufio.Writer, b []byte) error {
	s.SetDeadline(time.Now().Add(idleMax))
	if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.Write(b)
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
	if err := p.ask(&wirepb.ContentRequest{Job: job, Epoch: epoch, Files: wire.FilesProto(what)}); err != nil {
		return nil, err
	}
	p.s.SetDeadline(time.Now().Add(resultsMax))
	if _, err := p.r.Peek(1); err != nil {
		return nil, fmt.Errorf("the connection broke: %w", err)
	}
	return p.one(TreeMax)
}

// Chunks gets chunks and gives each to take, verified. It returns how many are not there.
func (p *Peer) Chunks(chunks []Chunk, take func([]byte) error) (absent int, err error) {
	for len(chunks) > 0 {
		some := chunks[:min(len(chunks), batch)]
		chunks = chunks[len(some):]
		request := &wirepb.ContentRequest{}
		for i := range some {
			request.Chunks = append(request.Chunks, some[i].Digest[:])
		}
		if err := p.ask(request); err != nil {
			return absent, err
		}
		for i := range some {
			b, err := p.one(some[i].Size)
			if errors.Is(err, ErrAbsent) {
				absent++
				continue
			}
			if err != nil {
				return absent, err
			}
			if sha256.Sum256(b) != some[i].Digest {
				return absent, wire.Malformed("a chunk that has another digest than was asked for")
			}
			if err := take(b); err != nil {
				return absent, err
			}
		}
	}
	return absent, nil
}

func (p *Peer) ask(request *wirepb.ContentRequest) error {
	p.s.SetDeadline(time.Now().Add(idleMax))
	return wire.WriteProto(p.s, request)
}

// one reads one thing of at most so many bytes.
func (p *Peer) one(most int64) ([]byte, error) {
	p.s.SetDeadline(time.Now().Add(idleMax))
	size, err := binary.ReadUvarint(p.r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the connection broke: %w", err)
	case size == 0:
		return nil, ErrAbsent
	case size > uint64(most):
		return nil, wire.Malformed("%d bytes, at most %d were to come", size, most)
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
