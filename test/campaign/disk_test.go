package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// What was flushed is there after a power cut. What was not may be, but never as anything that nobody wrote,
// and whoever was held up hears that it failed.
func TestVolatileDisk(t *testing.T) {
	const size = 64 * sector
	lostOnce, leftOnce, tornOnce := false, false, false
	for seed := range uint64(200) {
		dir := t.TempDir()
		d, err := newVolatile(filepath.Join(dir, "front"), filepath.Join(dir, "kept"), size)
		if err != nil {
			t.Fatal(err)
		}
		put := func(letter string, at, sectors int) error {
			return d.write(bytes.Repeat([]byte(letter), sectors*sector), int64(at*sector))
		}
		for at := range 8 {
			if err := put("f", 4*at, 4); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.flush(); err != nil {
			t.Fatal(err)
		}
		if err := put("v", 32, 8); err != nil {
			t.Fatal(err)
		}
		seen := make([]byte, sector)
		if _, err := d.read(seen, 32*sector); err != nil || seen[0] != 'v' {
			t.Fatalf("what was written is read as %q, %v", seen[0], err)
		}
		held := make(chan error)
		if seed%2 == 0 {
			d.stop()
			go func() { held <- put("h", 0, 4) }()
		} else {
			at := d.stopAtFlush()
			go func() { held <- d.flush() }()
			<-at
		}
		lost, torn, left, err := d.off(rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-held; err == nil {
			t.Fatal("who wrote during the cut was told that it is written")
		}
		if d.flush() == nil {
			t.Fatal("a disk without power was flushed")
		}
		if lost+torn+left != 1 {
			t.Fatalf("%d writes lost, %d torn, %d left of 1", lost, torn, left)
		}
		text, err := os.ReadFile(filepath.Join(dir, "kept"))
		if err != nil || !bytes.Equal(text[:32*sector], bytes.Repeat([]byte("f"), 32*sector)) {
			t.Fatalf("seed %d: what was flushed is not there: %v", seed, err)
		}
		written := bytes.Count(text, []byte("v"))
		if len(text) != size || written%sector != 0 || bytes.Count(text, []byte{0}) != 32*sector-written {
			t.Fatalf("seed %d: there is what nobody wrote", seed)
		}
		switch {
		case lost > 0 && written == 0:
			lostOnce = true
		case left > 0 && written == 8*sector:
			leftOnce = true
		case torn > 0 && written < 8*sector:
			tornOnce = true
		default:
			t.Fatalf("seed %d: %d bytes are left, of a write that was lost %d, torn %d, left %d", seed, written, lost, torn, left)
		}
		d.close()
	}
	if !lostOnce || !leftOnce || !tornOnce {
		t.Errorf("of 200 cuts some lost the write: %v, left it: %v, tore it: %v", lostOnce, leftOnce, tornOnce)
	}
}

func TestSpoil(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		home := t.TempDir()
		files := map[string][]byte{"key": bytes.Repeat([]byte{7}, 100), "store/log": bytes.Repeat([]byte{9}, 9000), "config.yaml": {1}}
		for name, text := range files {
			path := filepath.Join(home, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		what, err := spoil(random, home)
		if err != nil {
			t.Fatal(err)
		}
		changed := 0
		for name, text := range files {
			if got, err := os.ReadFile(filepath.Join(home, name)); err != nil || !bytes.Equal(got, text) {
				changed++
				if name == "config.yaml" {
					t.Errorf("%s: what its owner wrote was damaged", what)
				}
			}
		}
		if changed != 1 {
			t.Errorf("%s: %d files were damaged, want 1", what, changed)
		}
	}
}
