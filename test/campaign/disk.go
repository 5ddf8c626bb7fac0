package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

// sector is what a disk writes as a whole or not at all.
const sector = 512

// volatile is a disk with a cache that a power cut empties: what was written since the last flush
// is lost, there in part, or there in another order.
type volatile struct {
	mu      sync.Mutex
	front   *os.File // what whoever reads sees
	kept    *os.File // what is certain
	pending []write  // in the order in which they came
	gate    chan struct{}
	aim     chan struct{} // closed when it is stopped as somebody flushes; nil: it is not to be
	dead    bool          // nothing is written any more
}

type write struct {
	at   int64
	text []byte
}

// newVolatile makes one of so many bytes, whose content is at two paths.
func newVolatile(front, kept string, size int64) (*volatile, error) {
	d := &volatile{}
	for path, file := range map[string]**os.File{front: &d.front, kept: &d.kept} {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(size); err != nil {
			return nil, err
		}
		*file = f
	}
	return d, nil
}

func (d *volatile) close() {
	_ = d.front.Close()
	_ = d.kept.Close()
}

// read reads what was written last.
func (d *volatile) read(b []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.front.ReadAt(b, at)
}

// write writes into the cache. While the power is being cut nothing comes through, and nobody hears that
// it did.
func (d *volatile) write(text []byte, at int64) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if _, err := d.front.WriteAt(text, at); err != nil {
		return err
	}
	d.pending = append(d.pending, write{at, slices.Clone(text)})
	return nil
}

// flush makes certain what was written until now.
func (d *volatile) flush() error {
	if err := d.enter(); err != nil {
		return err
	}
	if d.aim != nil && len(d.pending) > 0 {
		close(d.aim)
		d.aim, d.gate = nil, make(chan struct{})
		d.mu.Unlock()
		if err := d.enter(); err != nil {
			return err
		}
	}
	defer d.mu.Unlock()
	for _, w := range d.pending {
		if _, err := d.kept.WriteAt(w.text, w.at); err != nil {
			return err
		}
	}
	d.pending = nil
	return nil
}

// enter takes the lock once the disk has power, or says that it never will have.
func (d *volatile) enter() error {
	d.mu.Lock()
	for gate := d.gate; gate != nil && !d.dead; gate = d.gate {
		d.mu.Unlock()
		<-gate
		d.mu.Lock()
	}
	if d.dead {
		d.mu.Unlock()
		return fmt.Errorf("no power")
	}
	return nil
}

// stop holds up everybody who writes or flushes.
func (d *volatile) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gate == nil {
		d.gate = make(chan struct{})
	}
}

// stopAtFlush has the next flush of something stop it before anything of that is certain: then what it
// returns is closed.
func (d *volatile) stopAtFlush() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aim = make(chan struct{})
	return d.aim
}

// off fails everybody who is held up, and leaves in kept what the disk has after the cut. It says what became of
// the writes that were not flushed.
func (d *volatile) off(random *rand.Rand) (lost, torn, left int, err error) {
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	close(d.gate)
	after, lost, torn := aftermath(random, d.pending)
	for _, w := range after {
		if _, err := d.kept.WriteAt(w.text, w.at); err != nil {
			return 0, 0, 0, err
		}
	}
	return lost, torn, len(d.pending) - lost - torn, nil
}

// aftermath returns which of the writes that were not flushed are on the disk after a power cut, and
// in which order they came there: as many as the draw says, some in part.
func aftermath(random *rand.Rand, pending []write) (after []write, lost, torn int) {
	keep := []float64{0, 0.5, 0.9, 1, random.Float64()}[random.IntN(5)]
	for _, w := range pending {
		switch n := len(w.text) / sector; {
		case random.Float64() >= keep:
			lost++
		case n > 1 && random.IntN(8) == 0:
			torn++
			from := random.IntN(n)
			to := from + random.IntN(n-from)
			after = append(after, write{w.at + int64(from)*sector, w.text[from*sector : to*sector]})
		default:
			after = append(after, w)
		}
	}
	if random.IntN(2) == 0 {
		random.Shuffle(len(after), func(i, j int) { after[i], after[j] = after[j], after[i] })
	}
	return after, lost, torn
}
