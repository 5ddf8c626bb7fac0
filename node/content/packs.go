package content

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sizes of packs.
const (
	packedMin = 64 << 10  // bytes of what is packed: what is smaller is a file of its own
	packMax   = 256 << 20 // bytes, after which another pack is begun
	page      = 4096      // what is packed begins at a multiple, so that it can be punched out
	entrySize = 32 + 8 + 4 + 4
)

const (
	packsDir    = "packs"
	packSuffix  = ".pack"
	indexSuffix = ".index"
)

// packs keeps much in few files, to which it only appends:
//
//	DIR/NAME.pack     the content
//	DIR/NAME.index    for each thing its digest, offset, size and a checksum of these
//
// The content is written before its entry, so an entry that was cut short, or whose content was,
// stands for nothing: the one shows by its checksum, the other when it is read. What is given up
// has its entry struck out, with zeros, and its place punched out of the file. A pack that was
// closed, by a crash or an end, is not written to any more.
type packs struct {
	dir  string
	off  bool  // the file system punches no holes: nothing more is packed
	most int64 // bytes of a pack

	mu  sync.Mutex
	at  map[Digest]*packed
	now *packing // nil: none is open
}

// packed is where something is.
type packed struct {
	pack   *pack
	offset int64
	size   int64
	entry  int64     // its number in the index
	used   time.Time // guarded by packs.mu
	whole  time.Time // when its digest was seen to be right; guarded by packs.mu
}

// pack is a file of many. It is guarded by packs.mu.
type pack struct {
	name    string // path without its end
	live    int    // things in it
	open    bool   // it is written to
	stamped time.Time
}

// packing is the pack to which things are appended.
type packing struct {
	*pack
	data, index *os.File
	end         int64 // of what was given out of it
	entries     int64
	users       int // who write to it
	full        bool
}

// openPacks returns those of a directory, which is made if it is not there, and the bytes in them.
// In probe it tries what the file system can do.
func openPacks(dir, probe string) (p *packs, sum int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	p = &packs{dir: dir, at: make(map[Digest]*packed), off: !punches(probe), most: packMax}
	names, err := filepath.Glob(filepath.Join(dir, "*"+packSuffix))
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		n, err := p.load(&pack{name: strings.TrimSuffix(name, packSuffix)})
		if err != nil {
			return nil, 0, err
		}
		sum += n
	}
	alone, err := filepath.Glob(filepath.Join(dir, "*"+indexSuffix))
	for _, name := range alone {
		if !slices.Contains(names, strings.TrimSuffix(name, indexSuffix)+packSuffix) {
			_ = os.Remove(name) // of a pack that was removed
		}
	}
	return p, sum, err
}

// punches reports whether the file system of a directory can punch holes.
func punches(dir string) bool {
	file, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return false
	}
	defer os.Remove(file.Name())
	defer file.Close()
	_, err = file.Write(make([]byte, 2*page))
	return err == nil && punch(file, 0, page) == nil
}

// punch gives the room of a part of a file back.
func punch(file *os.File, offset, size int64) error {
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, pages(size))
}

// pages returns a size in whole pages.
func pages(size int64) int64 { return (size + page - 1) / page * page }

// load finds what is in a pack and returns its bytes.
func (p *packs) load(x *pack) (sum int64, err error) {
	text, err := os.ReadFile(x.name + indexSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	data, err := os.OpenFile(x.name+packSuffix, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer data.Close()
	info, err := data.Stat()
	if err != nil {
		return 0, err
	}
	x.stamped = info.ModTime()
	if index, err := os.Stat(x.name + indexSuffix); err == nil {
		x.stamped = index.ModTime()
	}
	var list []*packed
	for i := int64(0); (i+1)*entrySize <= int64(len(text)); i++ {
		d, offset, size, ok := decodeEntry(text[i*entrySize:][:entrySize])
		if !ok || offset < 0 || size < 1 || offset%page != 0 || offset+size > info.Size() || p.at[d] != nil {
			continue
		}
		one := &packed{pack: x, offset: offset, size: size, entry: i, used: x.stamped}
		p.at[d] = one
		list, sum = append(list, one), sum+size
	}
	if x.live = len(list); x.live == 0 {
		return 0, x.remove()
	}
	return sum, trim(data, info, list)
}

// trim gives back the room of a pack in which nothing is: what a crash has cut short.
func trim(data *os.File, info fs.FileInfo, list []*packed) error {
	slices.SortFunc(list, func(x, y *packed) int { return cmp.Compare(x.offset, y.offset) })
	last := list[len(list)-1]
	if end := last.offset + last.size; end < info.Size() {
		if err := data.Truncate(end); err != nil {
			return err
		}
	}
	var live int64
	for _, one := range list {
		live += pages(one.size)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Blocks*512 <= live {
		return nil
	}
	at := int64(0)
	for _, one := range list {
		if one.offset > at {
			_ = punch(data, at, one.offset-at) // what cannot be given back is lost until the pack goes
		}
		at = max(at, one.offset+pages(one.size))
	}
	return nil
}

// remove removes a pack in which nothing is: what has no pack is no index.
func (x *pack) remove() error {
	err := os.Remove(x.name + packSuffix)
	if removed := os.Remove(x.name + indexSuffix); err == nil && !errors.Is(removed, fs.ErrNotExist) {
		err = removed
	}
	return err
}

func encodeEntry(d Digest, offset, size int64) []byte {
	b := append(make([]byte, 0, entrySize), d[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// decodeEntry is the inverse of encodeEntry. It is not ok if the entry was struck out, cut short
// or damaged.
func decodeEntry(b []byte) (d Digest, offset, size int64, ok bool) {
	const sum = entrySize - 4
	if crc32.ChecksumIEEE(b[:sum]) != binary.BigEndian.Uint32(b[sum:]) {
		return d, 0, 0, false
	}
	return Digest(b[:32]), int64(binary.BigEndian.Uint64(b[32:])), int64(binary.BigEndian.Uint32(b[40:])), true
}

// takes reports whether something of a size is packed.
func (p *packs) takes(size int) bool { return !p.off && size >= packedMin }

// find returns where something is, nil if it is not here.
func (p *packs) find(d Digest) *packed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[d]
}

// touch has something counted as used now, and reports whether it is here.
func (p *packs) touch(d Digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.at[d]
	if one == nil {
		return false
	}
	one.used = time.Now()
	if x := one.pack; one.used.Sub(x.stamped) > lately/2 { // for the next start
		x.stamped = one.used
		_ = os.Chtimes(x.name+indexSuffix, x.stamped, x.stamped)
	}
	return true
}

// read reads something into buf if that is large enough. It is not verified; ErrAbsent if there is
// nothing.
func (one *packed) read(buf []byte) ([]byte, error) {
	file, err := os.Open(one.pack.name + packSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := slices.Grow(buf[:0], int(one.size))[:one.size]
	n, err := file.ReadAt(b, one.offset)
	if errors.Is(err, io.EOF) {
		err = nil // it is torn: its digest shows it
	}
	return b[:n], err
}

// verified notes that what was read has the right digest.
func (p *packs) verified(one *packed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.whole = time.Now()
}

// trusts reports whether something is still where it was found, and was seen to be whole lately.
func (p *packs) trusts(d Digest, one *packed) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[d] == one && time.Since(one.whole) < lately
}

// keep appends something. fs.ErrExist says that another one has kept it meanwhile.
func (p *packs) keep(d Digest, b []byte) error {
	w, at, err := p.take(int64(len(b)))
	if err != nil {
		return err
	}
	defer p.done(w)
	if _, err = w.data.WriteAt(b, at); err == nil {
		err = p.enter(w, d, at, int64(len(b)))
	}
	if err != nil {
		_ = punch(w.data, at, int64(len(b)))
	}
	return err
}

// take returns a place for so many bytes in the pack that is written to.
func (p *packs) take(size int64) (*packing, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && p.now.end+size > p.most {
		p.leave()
	}
	if p.now == nil {
		w, err := p.begin()
		if err != nil {
			return nil, 0, err
		}
		p.now = w
	}
	w, at := p.now, p.now.end
	w.end += pages(size)
	w.users++
	return w, at, nil
}

// begin begins a pack.
func (p *packs) begin() (*packing, error) {
	name := filepath.Join(p.dir, rand.Text())
	data, err := os.OpenFile(name+packSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	index, err := os.OpenFile(name+indexSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		data.Close()
		_ = os.Remove(name + packSuffix)
		return nil, err
	}
	return &packing{pack: &pack{name: name, open: true, stamped: time.Now()}, data: data, index: index}, nil
}

// enter notes that something is in a pack.
func (p *packs) enter(w *packing, d Digest, at, size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at[d] != nil {
		return fs.ErrExist
	}
	if _, err := w.index.WriteAt(encodeEntry(d, at, size), w.entries*entrySize); err != nil {
		return err
	}
	now := time.Now()
	p.at[d] = &packed{pack: w.pack, offset: at, size: size, entry: w.entries, used: now, whole: now}
	w.entries++
	w.live++
	w.stamped = now // so is the file
	return nil
}

// leave has the pack that is written to closed once nobody writes to it. The caller holds p.mu.
func (p *packs) leave() {
	w := p.now
	p.now, w.full = nil, true
	w.users++
	p.doneLocked(w)
}

func (p *packs) done(w *packing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doneLocked(w)
}

func (p *packs) doneLocked(w *packing) {
	if w.users--; w.users > 0 || !w.full {
		return
	}
	w.data.Close()
	w.index.Close()
	if w.open = false; w.live == 0 {
		_ = w.remove() // else at the next start
	}
}

// remove gives something up, if it is where it was and, unless that is zero, was not used since
// used. It reports whether it did.
func (p *packs) remove(d Digest, one *packed, used time.Time) bool {
	x := one.pack
	p.mu.Lock()
	if p.at[d] != one || !used.IsZero() && !one.used.Equal(used) {
		p.mu.Unlock()
		return false
	}
	delete(p.at, d)
	x.live--
	if x.live == 0 && !x.open {
		_ = x.remove() // else at the next start
		p.mu.Unlock()
		return true
	}
	stamped := x.stamped
	p.mu.Unlock()
	if index, err := os.OpenFile(x.name+indexSuffix, os.O_WRONLY, 0); err == nil { // else its content shows it
		_, _ = index.WriteAt(make([]byte, entrySize), one.entry*entrySize)
		index.Close()
		_ = os.Chtimes(x.name+indexSuffix, stamped, stamped) // it was not used
	}
	if data, err := os.OpenFile(x.name+packSuffix, os.O_WRONLY, 0); err == nil {
		_ = punch(data, one.offset, one.size)
		data.Close()
	}
	return true
}

// list appends what is here to a list.
func (p *packs) list(list []held) []held {
	p.mu.Lock()
	defer p.mu.Unlock()
	for d, one := range p.at {
		list = append(list, held{digest: d, one: one, size: one.size, used: one.used})
	}
	return list
}
