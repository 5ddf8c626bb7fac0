package slurm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
)

// Probe asks the cluster what a site would have of it: its processors, and whether this
// user may submit as the configuration says. Errors name the key that is wrong; one that is
// ErrDown says that the cluster does not answer now.
func Probe(ctx context.Context, cfg Config) (processors int64, err error) {
	if err := cfg.Check(); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Work, ordersDir), 0o700); err != nil {
		return 0, fmt.Errorf("slurm.workdir: %w", err)
	}
	if cfg.Listen != "" {
		l, err := net.Listen("tcp", net.JoinHostPort(cfg.Listen, "0"))
		if err != nil {
			return 0, fmt.Errorf("slurm.listen: %q: want an address of this machine that compute nodes reach: %w", cfg.Listen, err)
		}
		l.Close()
	}
	e := &Engine{cfg: cfg, commands: newCommands()}
	for _, name := range []string{"sbatch", "squeue", "scontrol", "scancel", "sinfo"} {
		if _, _, err := e.commands.run(ctx, "", name, "--version"); err != nil {
			return 0, err
		}
	}
	if err := e.clocks(ctx); err != nil {
		return 0, err
	}
	text, _, err := e.commands.run(ctx, "", "sinfo", cfg.sinfo()...)
	if err != nil {
		return 0, err
	}
	c, err := parseCounts(text)
	if errors.Is(err, errNoNodes) {
		return 0, fmt.Errorf("slurm.partition: %q: %w; 'sinfo' lists the partitions", cfg.Partition, err)
	}
	if err != nil {
		return 0, err
	}
	known := Remembered(cfg) > 0
	if err := (orders{filepath.Join(cfg.Work, ordersDir)}).put(totalFile, "", []byte(strconv.FormatInt(c.total, 10))); err != nil {
		return 0, fmt.Errorf("slurm.workdir: %w", err)
	}
	if err := cfg.explain(e.tryIt(ctx, known)); err != nil {
		return c.total, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Partners)) {
		of := cfg.of(name)
		if err := of.explain((&Engine{cfg: *of, commands: e.commands}).tryIt(ctx, known)); err != nil {
			return c.total, err
		}
	}
	if cfg.Pilots == 0 {
		return c.total, nil
	}
	_, err = e.foretell(ctx, cfg.Pilots, cfg.PilotTime, grid.Time(1))
	if r, refused := errors.AsType[*refusal](err); refused {
		err = fmt.Errorf("slurm.pilots: %d processors for %v (slurm.pilot-time) are refused by Slurm: %s: set fewer, or less of slurm.pilot-time", cfg.Pilots, cfg.PilotTime, r.text)
	}
	return c.total, err
}

// clocks returns an error if the controller's clock differs from this machine's. Limits of
// jobs of other sites are counted by both.
func (e *Engine) clocks(ctx context.Context) error {
	asked := e.now()
	text, _, err := e.commands.run(ctx, "", "scontrol", "show", "config")
	if err != nil {
		return err
	}
	theirs, said := parseConfigured(text)
	switch ours := e.now(); {
	case !said, theirs > asked-skewMax && theirs < ours+skewMax:
		return nil
	case theirs > ours:
		return fmt.Errorf("site.engine: slurm: the clock of Slurm's controller is %v ahead of this machine's: have both follow one time server", (theirs - ours).Duration())
	default:
		return fmt.Errorf("site.engine: slurm: the clock of Slurm's controller is %v behind this machine's: have both follow one time server", (asked - theirs).Duration())
	}
}

// A controller that was started a moment ago refuses what its nodes could do, until they have
// registered: where it was well once, it is asked again for so long.
const (
	registerMax   = 20 * time.Second
	registerPause = time.Second
)

// unregistered is part of what it says.
const unregistered = "node configuration is not available"

// tryIt asks whether this user may submit as configured.
func (e *Engine) tryIt(ctx context.Context, known bool) error {
	for begun := time.Now(); ; {
		_, err := e.foretell(ctx, 1, grid.Minute, grid.Time(1))
		r, refused := errors.AsType[*refusal](err)
		if !refused || !known || !strings.Contains(r.text, unregistered) || time.Since(begun) > registerMax {
			return err
		}
		select {
		case <-time.After(registerPause):
		case <-ctx.Done():
			return err
		}
	}
}

// totalFile has how many processors the cluster had when it was last asked.
const totalFile = "processors"

// Remembered returns how many processors the cluster had when Probe last found it well, 0 if
// it never has.
func Remembered(cfg Config) int64 {
	text, err := os.ReadFile(filepath.Join(cfg.Work, ordersDir, totalFile))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// ErrDown means that the cluster does not answer. What was started goes on, and what is
// submitted waits.
var ErrDown = errTrouble

// installed returns what says where compute nodes find this whole program, which it installs when it
// is first asked.
func installed(work string) func() (string, error) {
	var mu sync.Mutex
	var path string
	return func() (_ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if path == "" {
			path, err = installProgram("", work)
		}
		return path, err
	}
}

// installProgram puts a copy of a program, this one if it is empty, into the work directory, where compute nodes
// find it, and returns its path. The name is made of the content, so that jobs of an older
// daemon keep theirs.
func installProgram(program, work string) (path string, err error) {
	self, err := os.Open(cmp.Or(program, "/proc/self/exe"))
	if err != nil {
		return "", err
	}
	defer self.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, self); err != nil {
		return "", err
	}
	dir := filepath.Join(work, "bin")
	path = filepath.Join(dir, "gridnode-"+hex.EncodeToString(hash.Sum(nil))[:12])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if _, err := self.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return path, atomicfile.Fill(path, 0o755, func(file *os.File) error { _, err := io.Copy(file, self); return err })
}
