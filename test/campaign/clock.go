package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The wall clock is the whole machine's. To set that of one daemon the program is built anew over
// a package time whose Now adds what a page of shared memory says; timers and the monotonic
// clock are the machine's, as when a clock is set.

const nowLine = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n\t\treturn Time{uint64(nsec), sec + unixToInternal, Local}"

const clockEnv = "CAMPAIGN_CLOCK"

const steppedFile = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var steppedPage = func() []byte {
	path, ok := syscall.Getenv("` + clockEnv + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return page
}()

func stepped() int64 {
	if len(steppedPage) == 0 {
		return 0
	}
	return atomic.LoadInt64((*int64)(unsafe.Pointer(&steppedPage[0])))
}
`

// buildStepped builds the program so that its clock can be set, unless it is there.
func buildStepped(ctx context.Context, source, commit string) (string, error) {
	dir := filepath.Join(os.TempDir(), "gridnode-campaign-clock-"+commit)
	program := filepath.Join(dir, "gridnode")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), nowLine) != 1 {
		return "", fmt.Errorf("%s: time.Now is another one than this program knows", folder)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, content := range map[string]string{
		"time.go":    strings.Replace(string(text), nowLine, strings.Replace(nowLine, "runtimeNow()", "runtimeNow()\n\tsec += stepped()", 1), 1),
		"stepped.go": steppedFile,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return "", err
		}
		overlay["Replace"][filepath.Join(folder, name)] = path
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/gridnode")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%q: %w: %s", cmd.Args, err, out)
	}
	return program, nil
}

// clockPage is the memory that says by how much a site's clock is set.
type clockPage []byte

func newClockPage(path string) (clockPage, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (p clockPage) set(by time.Duration) {
	binary.NativeEndian.PutUint64(p, uint64(int64(by/time.Second)))
}

// clocks sets the clocks of daemons forward and back by up to an hour while they run, and starts some
// of them anew with it.
func clocks(ctx context.Context, p *plan) (_ *outcome, err error) {
	if p.program, err = buildStepped(ctx, p.source, p.commit); err != nil {
		return nil, err
	}
	pages := map[string]clockPage{}
	w, err := newWorld(ctx, p, func(s *site) error {
		path := filepath.Join(p.dir, s.name+".clock")
		page, err := newClockPage(path)
		pages[s.name] = page
		s.env = append(s.env, clockEnv+"="+path)
		return err
	})
	if err != nil {
		return nil, err
	}
	wrong := map[string]bool{} // daemons that started with a wrong clock: they go by it until they start again
	w.mend = func() {
		for _, s := range w.sites {
			if pages[s.name].set(0); wrong[s.name] {
				s.kill()
			}
		}
	}
	o, err := w.round(ctx, func(ctx context.Context) error {
		s := w.sites[w.random.IntN(len(w.sites))]
		by := time.Duration((2*w.random.Float64() - 1) * float64(time.Hour))
		if w.random.IntN(4) == 0 {
			by = 0 // somebody has noticed
		}
		pages[s.name].set(by)
		switch {
		case by > 0:
			w.out.note("ahead")
		case by < 0:
			w.out.note("behind")
		default:
			w.out.note("right again")
		}
		if w.random.IntN(2) == 0 {
			w.out.note("started anew")
			wrong[s.name] = by != 0
			s.kill()
		}
		return w.again()
	})
	return o, err
}
