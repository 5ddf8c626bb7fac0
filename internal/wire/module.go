package wire

import (
	"encoding/hex"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// digestSize is the length of a module's digest in bytes.
const digestSize = 32

func moduleProto(m *grid.Module) *wirepb.Module {
	if m == nil {
		return nil
	}
	digest, err := hex.DecodeString(m.Digest)
	if err != nil {
		panic("wire: module of digest " + m.Digest) // CheckJob has seen it
	}
	return &wirepb.Module{Digest: digest, Size: m.Size}
}

func moduleFromProto(p *wirepb.Module) *grid.Module {
	if p == nil {
		return nil
	}
	return &grid.Module{Digest: hex.EncodeToString(p.Digest), Size: p.Size}
}

// checkModule checks the module of a job, if it is one.
func checkModule(j *grid.Job) error {
	if !j.IsModule() {
		return nil
	}
	m := j.Command.Module
	if digest, err := hex.DecodeString(m.Digest); err != nil || len(digest) != digestSize || hex.EncodeToString(digest) != m.Digest {
		return Malformed("module's digest %.80q, want %d bytes as hexadecimal digits", m.Digest, digestSize)
	}
	switch {
	case m.Size < 1 || m.Size > grid.ModuleMax:
		return Malformed("module of %d bytes, want 1 to %d", m.Size, int64(grid.ModuleMax))
	case j.Coallocate != nil || j.Spread:
		return Malformed("a module whose tasks run at several sites: it runs at one")
	case j.Tasks != 1:
		return Malformed("a module of %d tasks: it is one; have an array of them (--array)", j.Tasks)
	}
	return nil
}
