package wasm

import (
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is the linear memory of a module. All addresses that it may ever have are set
// aside at once, so that it grows without being copied.
type memory struct {
	most    uint64 // bytes
	refused bool   // it wanted more
	all     []byte
	have    uint64 // bytes that may be used
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	all, err := unix.Mmap(-1, 0, max(int(min(most, m.most)), 1), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err == nil {
		m.all = all
	}
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) || size > m.most {
		m.refused = true
		return nil
	}
	if size > m.have {
		if unix.Mprotect(m.all[m.have:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
			m.refused = true
			return nil
		}
		m.have = size
	}
	return m.all[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all)
		m.all, m.have = nil, 0
	}
}
