package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is that of the disk whose power is cut: more than a site leaves free. What is not written takes no room.
const diskSize = 2 << 30

// machine is one whose home lies on a volatile disk: a file system of its own on a loop device over a file
// that this process serves, so that it sees every block written and every flush.
type machine struct {
	dir   string
	home  string // where the file system is mounted
	count int    // disks so far
	disk  *volatile
	file  *diskFile
	loop  string
}

// boot gives the machine a disk: an empty one, or with what the last one kept.
func (m *machine) boot(ctx context.Context) (err error) {
	at := func(name string, n int) string { return filepath.Join(m.dir, fmt.Sprintf("%s-%d", name, n)) }
	m.count++
	if m.count > 1 {
		if err := errors.Join(copyFile(ctx, at("kept", m.count-1), at("kept", m.count)), copyFile(ctx, at("kept", m.count-1), at("front", m.count))); err != nil {
			return err
		}
		if err := errors.Join(os.Remove(at("kept", m.count-1)), os.Remove(at("front", m.count-1))); err != nil {
			return err
		}
	}
	if m.disk, err = newVolatile(at("front", m.count), at("kept", m.count), diskSize); err != nil {
		return err
	}
	if m.file, err = mountDisk(filepath.Join(m.dir, fmt.Sprintf("disk-%d", m.count)), m.disk, diskSize); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", m.file.path).Output()
	if err != nil {
		return fmt.Errorf("losetup: %w: %s", err, errorText(err))
	}
	m.loop = strings.TrimSpace(string(out))
	if m.count == 1 {
		if out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-N", "16384", "-E", "nodiscard,lazy_itable_init=0", m.loop).CombinedOutput(); err != nil {
			return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
		}
	}
	if err := os.MkdirAll(m.home, 0o711); err != nil {
		return err
	}
	if err := unix.Mount(m.loop, m.home, "ext4", 0, "errors=remount-ro"); err != nil {
		return fmt.Errorf("mount %s: %w", m.loop, err)
	}
	return nil
}

// down takes the disk away: what hangs on it fails.
func (m *machine) down(ctx context.Context) error {
	_ = unix.Unmount(m.home, unix.MNT_DETACH)
	_ = exec.CommandContext(ctx, "losetup", "-d", m.loop).Run()
	defer m.disk.close()
	return m.file.close()
}

// cut cuts the power of the machine and all that runs there, and gives it back.
func (m *machine) cut(ctx context.Context, w *world, s *site) error {
	if w.random.IntN(2) == 0 { // else it hits what it may, which mostly is nothing
		select {
		case <-m.disk.stopAtFlush():
			w.out.note("cuts at a flush")
		case <-time.After(2 * time.Second):
		}
	}
	m.disk.stop()
	for range 100 {
		left := w.processes(s.name)
		for _, p := range left {
			p.kill()
		}
		if len(left) == 0 || onlyWaits(left) {
			break
		}
		pause(ctx, 10*time.Millisecond)
	}
	if err := w.strike(s); err != nil {
		return err
	}
	lost, torn, left, err := m.disk.off(w.random)
	if err != nil {
		return err
	}
	for what, n := range map[string]int{"writes lost": lost, "writes torn": torn, "writes left": left} {
		if n > 0 {
			w.out.note("cuts with " + what)
		}
	}
	s.kill()
	if err := m.down(ctx); err != nil {
		return err
	}
	if err := m.boot(ctx); err != nil {
		return err
	}
	return s.start()
}

// onlyWaits says whether all of them die as soon as the disk answers.
func onlyWaits(list []process) bool {
	for _, p := range list {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if !strings.Contains(string(text), "State:\tD") && !strings.Contains(string(text), "State:\tZ") {
			return false
		}
	}
	return true
}

func copyFile(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "--sparse=always", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// cuts cuts the power of one of three sites, time and again, while jobs come and run there.
func cuts(ctx context.Context, p *plan) (*outcome, error) {
	m := &machine{dir: filepath.Join(p.dir, "disks")}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, p, func(s *site) error {
		if s.name != "b" {
			return nil
		}
		m.home = s.home
		return m.boot(ctx)
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		w.close()
		_ = m.down(context.WithoutCancel(ctx))
	}()
	s := w.siteOf("b")
	if err := flushAll(s.home); err != nil { // what the campaign wrote itself
		return nil, err
	}
	return w.round(ctx, func(ctx context.Context) error {
		return m.cut(ctx, w, s)
	})
}

// flushAll makes certain what is in the file system of a folder.
func flushAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
