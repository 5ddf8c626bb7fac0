package content

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	chunker "github.com/ipfs/boxo/chunker"
)

// ChunkMax is the size of the largest chunk; most have a quarter to half of it.
const ChunkMax = 512 << 10

// alone is the size from which on a file shares no chunk with others: it has the same chunks
// whatever lies beside it.
const alone = 1 << 20

// ErrChanged is wrapped when a file changes while it is read.
var ErrChanged = errors.New("it changed while it was read")

// Source is an entry of a tree that is made, and where its content is.
type Source struct {
	Entry
	Open func() (*os.File, error) // of a file
}

// Build cuts the content of sources into chunks and returns their tree. It sorts the sources
// by name: they have the order of the tree afterwards. It reads every byte once and holds one
// chunk at a time.
func Build(ctx context.Context, sources []Source) (*Tree, error) { return Cut(ctx, sources, nil) }

// Cut is Build that has each chunk taken as it is cut, if take is not nil: what is sent away
// need not be read again. take may keep what it is given. That a file has changed meanwhile is
// seen at its end.
func Cut(ctx context.Context, sources []Source, take func(Chunk, []byte) error) (*Tree, error) {
	slices.SortFunc(sources, func(x, y Source) int { return cmp.Compare(x.Name, y.Name) })
	t := &Tree{Entries: make([]Entry, len(sources))}
	var together []*Source
	cut := func() error {
		if len(together) == 0 {
			return nil
		}
		r := &sequence{ctx: ctx, sources: together}
		defer r.close()
		together = nil
		return t.cut(r, take)
	}
	for i := range sources {
		s := &sources[i]
		t.Entries[i] = s.Entry
		if s.Kind != File || s.Size == 0 {
			continue
		}
		if s.Size >= alone {
			if err := cut(); err != nil {
				return nil, err
			}
		}
		together = append(together, s)
		if s.Size >= alone {
			if err := cut(); err != nil {
				return nil, err
			}
		}
	}
	if err := cut(); err != nil {
		return nil, err
	}
	return t, t.check()
}

// cut appends the chunks of what is read.
func (t *Tree) cut(r io.Reader, take func(Chunk, []byte) error) error {
	cutter := chunker.NewBuzhash(bufio.NewReaderSize(r, ChunkMax))
	for {
		b, err := cutter.NextBytes()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c := Chunk{sha256.Sum256(b), int64(len(b))}
		t.Chunks = append(t.Chunks, c)
		if take == nil {
			continue
		}
		if err := take(c, b); err != nil {
			return err
		}
	}
}

// sequence reads files one after the other.
type sequence struct {
	ctx     context.Context
	sources []*Source
	file    *os.File
	left    int64 // of the file
}

func (r *sequence) Read(b []byte) (int, error) {
	for r.file == nil || r.left == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.file.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	if n > 0 || err == nil {
		return n, nil
	}
	if err == io.EOF {
		err = fmt.Errorf("%s: %w: it was cut short", r.sources[0].Name, ErrChanged)
	}
	return 0, err
}

// next opens the next file and sees that it is as it was when it was found.
func (r *sequence) next() error {
	if r.file != nil {
		if err := r.same(); err != nil {
			return err
		}
		r.close()
		r.sources = r.sources[1:]
	}
	if len(r.sources) == 0 {
		return io.EOF
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	s := r.sources[0]
	file, err := s.Open()
	if err != nil {
		return err
	}
	r.file, r.left = file, s.Size
	return r.same()
}

// same returns an error if the file has changed since it was found.
func (r *sequence) same() error {
	return same(r.file, &r.sources[0].Entry)
}

func same(file *os.File, e *Entry) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != e.Size || info.ModTime().UnixNano() != e.Modified {
		return fmt.Errorf("%s: %w", e.Name, ErrChanged)
	}
	return nil
}

func (r *sequence) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// place is where a chunk lies in the files of a tree.
type place struct {
	source int   // in the order of the tree
	offset int64 // in that file
	size   int64
}

// Index finds chunks in the files that a tree was built of.
type Index struct {
	sources []Source
	chunks  map[Digest]place
}

// NewIndex returns that of the sources that Build has sorted.
func NewIndex(t *Tree, sources []Source) *Index {
	x := &Index{sources, make(map[Digest]place, len(t.Chunks))}
	at, offset := 0, int64(0)
	for _, c := range t.Chunks {
		for at < len(sources) && (sources[at].Kind != File || offset == sources[at].Size) {
			at, offset = at+1, 0
		}
		x.chunks[c.Digest] = place{at, offset, c.Size}
		for left := c.Size; left > 0 && at < len(sources); {
			some := min(left, sources[at].Size-offset)
			left, offset = left-some, offset+some
			if left > 0 {
				at, offset = at+1, 0
			}
		}
	}
	return x
}

// Chunk reads a chunk, into buf if that is large enough; ErrAbsent if it is in none of the
// files. An error that wraps ErrChanged says that they are not any more what they were.
func (x *Index) Chunk(d Digest, buf []byte) ([]byte, error) {
	p, ok := x.chunks[d]
	if !ok {
		return nil, ErrAbsent
	}
	b := slices.Grow(buf[:0], int(p.size))[:p.size]
	at, offset := p.source, p.offset
	for read := int64(0); read < p.size; at, offset = at+1, 0 {
		if at >= len(x.sources) {
			return nil, ErrAbsent
		}
		s := &x.sources[at]
		some := min(p.size-read, s.Size-offset)
		if s.Kind != File || some <= 0 {
			continue
		}
		if err := readAt(s, b[read:read+some], offset); err != nil {
			return nil, err
		}
		read += some
	}
	if sha256.Sum256(b) != d {
		return nil, fmt.Errorf("%s: %w", x.sources[p.source].Name, ErrChanged)
	}
	return b, nil
}

func readAt(s *Source, b []byte, offset int64) error {
	file, err := s.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.ReadAt(b, offset); err != nil {
		if err == io.EOF {
			err = fmt.Errorf("%s: %w: it was cut short", s.Name, ErrChanged)
		}
		return err
	}
	return nil
}
