package wire

import (
	"encoding/hex"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

func filesProto(f *grid.Files) *wirepb.Files {
	if f == nil {
		return nil
	}
	tree, err := hex.DecodeString(f.Tree)
	if err != nil {
		panic("wire: tree of digest " + f.Tree) // CheckJob has seen it
	}
	return &wirepb.Files{Tree: tree, Size: f.Size, Count: f.Count, Stdin: []byte(f.Stdin), Out: toBytes(f.Out), Dir: []byte(f.Dir), Drop: f.Drop}
}

// FilesProto returns the wire form of f.
func FilesProto(f *grid.Files) *wirepb.Files { return filesProto(f) }

// FilesFromProto checks p and returns the files, or an error wrapping ErrMalformed; nil for nil.
func FilesFromProto(p *wirepb.Files) (*grid.Files, error) {
	f := filesFromProto(p)
	if err := f.Check(); err != nil {
		return nil, Malformed("%v", err)
	}
	return f, nil
}

func filesFromProto(p *wirepb.Files) *grid.Files {
	if p == nil {
		return nil
	}
	f := &grid.Files{Tree: hex.EncodeToString(p.Tree), Size: p.Size, Count: p.Count, Stdin: string(p.Stdin), Dir: string(p.Dir), Drop: p.Drop}
	if len(p.Out) > 0 {
		f.Out = toStrings(p.Out)
	}
	return f
}
