package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of a tree.
const (
	EntriesMax = 1 << 16 // files, folders and links
	TreeMax    = 8 << 20 // bytes of its encoding
	SizeMax    = 1 << 40 // bytes of all files
	nameMax    = 4096    // bytes of a name
	partMax    = 255     // of each of its parts
	depthMax   = 128     // parts
	whyMax     = 512
)

// Digest is the SHA-256 of a chunk or of a tree's encoding.
type Digest [sha256.Size]byte

// String returns it as 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest is the inverse of String.
func ParseDigest(text string) (d Digest, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) || hex.EncodeToString(b) != text {
		return d, fmt.Errorf("digest %.80q: want %d hexadecimal digits", text, 2*len(d))
	}
	return Digest(b), nil
}

// Kind is what an entry of a tree is.
type Kind uint8

// The kinds of entries.
const (
	File Kind = iota + 1
	Folder
	Link // symbolic; to a place in the tree
)

// Entry is a file, a folder or a link of a tree.
type Entry struct {
	Name     string // relative, with slashes; any bytes but NUL
	Kind     Kind
	Mode     fs.FileMode // permission bits of a file or folder
	Size     int64       // of a file
	Modified int64       // of a file, nanoseconds since 1970
	Target   string      // of a link
}

// Chunk is a piece of the content.
type Chunk struct {
	Digest Digest
	Size   int64 // 1 to ChunkMax
}

// Tree is files and their content, in chunks.
type Tree struct {
	Entries []Entry // by name
	Chunks  []Chunk // of the content of the files in the order of Entries, one after the other
	Left    int64   // how many files were left out when it was made
	Why     string  // the first of these and the reason
}

// Size returns the bytes of all files.
func (t *Tree) Size() (sum int64) {
	for i := range t.Chunks {
		sum += t.Chunks[i].Size
	}
	return sum
}

// Count returns the number of files.
func (t *Tree) Count() (n int64) {
	for i := range t.Entries {
		if t.Entries[i].Kind == File {
			n++
		}
	}
	return n
}

// Find returns the entry of a name.
func (t *Tree) Find(name string) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(t.Entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return nil, false
	}
	return &t.Entries[i], true
}

// Encode returns the encoding of a tree and its digest.
func (t *Tree) Encode() ([]byte, Digest, error) {
	p := &wirepb.Tree{Left: t.Left, Why: []byte(t.Why)}
	for i := range t.Entries {
		e := &t.Entries[i]
		p.Entries = append(p.Entries, &wirepb.TreeEntry{
			Name: []byte(e.Name), Kind: uint32(e.Kind), Mode: uint32(e.Mode), Size: e.Size, Modified: e.Modified, Target: []byte(e.Target),
		})
	}
	for i := range t.Chunks {
		p.Chunks = append(p.Chunks, &wirepb.TreeChunk{Digest: t.Chunks[i].Digest[:], Size: t.Chunks[i].Size})
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, Digest{}, err
	}
	if len(b) > TreeMax {
		return nil, Digest{}, fmt.Errorf("%w: the list of %d files and %d chunks takes %d bytes, at most %d: pack many files into an archive, and split what is larger than some 40 GiB",
			ErrMany, len(t.Entries), len(t.Chunks), len(b), TreeMax)
	}
	return b, sha256.Sum256(b), nil
}

// Errors of what is brought along; the text says more.
var (
	ErrName = errors.New("a name that cannot be brought along")
	ErrMany = errors.New("too many files")
	ErrSize = errors.New("too much to bring along")
)

// DecodeTree is the inverse of Encode. It checks every bound; its errors wrap
// wire.ErrMalformed.
func DecodeTree(b []byte) (*Tree, error) {
	if len(b) > TreeMax {
		return nil, wire.Malformed("tree of %d bytes, at most %d", len(b), TreeMax)
	}
	var p wirepb.Tree
	if err := proto.Unmarshal(b, &p); err != nil {
		return nil, wire.Malformed("tree: %v", err)
	}
	if len(p.Entries) > EntriesMax || len(p.Why) > whyMax || p.Left < 0 {
		return nil, wire.Malformed("tree of %d entries", len(p.Entries))
	}
	t := &Tree{Entries: make([]Entry, len(p.Entries)), Chunks: make([]Chunk, len(p.Chunks)), Left: p.Left, Why: strings.ToValidUTF8(string(p.Why), "?")}
	for i, e := range p.Entries {
		t.Entries[i] = Entry{Name: string(e.Name), Kind: Kind(min(e.Kind, 255)), Mode: fs.FileMode(e.Mode), Size: e.Size, Modified: e.Modified, Target: string(e.Target)}
	}
	for i, c := range p.Chunks {
		if len(c.Digest) != len(Digest{}) {
			return nil, wire.Malformed("digest of %d bytes", len(c.Digest))
		}
		t.Chunks[i] = Chunk{Digest(c.Digest), c.Size}
	}
	if err := t.check(); err != nil {
		return nil, wire.Malformed("tree: %v", err)
	}
	return t, nil
}

// check returns an error unless the tree is within its bounds.
func (t *Tree) check() error {
	var files, chunks int64
	kinds := make(map[string]Kind, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		if err := e.check(); err != nil {
			return err
		}
		if i > 0 && t.Entries[i-1].Name >= e.Name {
			return fmt.Errorf("%.80q does not come after %.80q", e.Name, t.Entries[i-1].Name)
		}
		kinds[e.Name] = e.Kind
		if dir := path.Dir(e.Name); dir != "." && kinds[dir] != Folder {
			return fmt.Errorf("%.80q lies in what is no folder", e.Name) // a folder comes before what is in it
		}
		if files += e.Size; files > SizeMax {
			return fmt.Errorf("more than %d bytes", int64(SizeMax))
		}
	}
	for i := range t.Chunks {
		if c := &t.Chunks[i]; c.Size < 1 || c.Size > ChunkMax {
			return fmt.Errorf("chunk of %d bytes", c.Size)
		}
		chunks += t.Chunks[i].Size
	}
	if files != chunks {
		return fmt.Errorf("files of %d bytes in chunks of %d", files, chunks)
	}
	return nil
}

func (e *Entry) check() error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	switch {
	case e.Kind < File || e.Kind > Link:
		return fmt.Errorf("%.80q is of kind %d", e.Name, e.Kind)
	case e.Mode&^fs.ModePerm != 0:
		return fmt.Errorf("%.80q has mode %v", e.Name, e.Mode)
	case e.Size < 0 || e.Size > SizeMax || e.Kind != File && e.Size != 0:
		return fmt.Errorf("%.80q has %d bytes", e.Name, e.Size)
	case (e.Kind == Link) != (e.Target != ""):
		return fmt.Errorf("%.80q leads to %.80q", e.Name, e.Target)
	case e.Kind == Link && !Inside(e.Name, e.Target):
		return fmt.Errorf("%w: %.80q is a link that leads out of the folder, to %.80q", ErrName, e.Name, e.Target)
	}
	return nil
}

// CheckName returns an error wrapping ErrName unless a name is one of something below a
// directory.
func CheckName(name string) error {
	parts := strings.Split(name, "/")
	bad := ""
	switch {
	case name == "":
		bad = "it is empty"
	case len(name) > nameMax || len(parts) > depthMax:
		bad = "it is too long"
	case strings.ContainsRune(name, 0):
		bad = "it holds a NUL byte"
	}
	for _, part := range parts {
		switch {
		case bad != "":
		case part == "" || part == "." || part == "..":
			bad = fmt.Sprintf("it has a part %q", part)
		case len(part) > partMax:
			bad = "a part of it is too long"
		}
	}
	if bad == "" {
		return nil
	}
	return fmt.Errorf("%w: %.80q: %s", ErrName, name, bad)
}

// Inside reports whether a link of a name leads to a place in the same tree.
func Inside(name, target string) bool {
	if target == "" || len(target) > nameMax || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
		return false
	}
	depth := strings.Count(name, "/") // of the folder that it is in
	for _, part := range strings.Split(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

// Copy writes the content of one file to w.
func Copy(w io.Writer, t *Tree, name string, chunk func(Chunk) ([]byte, error)) error {
	r := &layer{Laying: &Laying{Chunk: chunk}, ctx: context.Background(), chunks: t.Chunks}
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Name != name {
			r.skip += e.Size
			continue
		}
		for left := e.Size; left > 0; {
			b, err := r.some(left)
			if err != nil {
				return err
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
			left -= int64(len(b))
		}
		return nil
	}
	return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}
