package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// garden is where bugs are planted: the tree, and a folder for what is made of it.
type garden struct {
	root     string // of the module
	dir      string // of overlays and programs; removed at the end
	commit   string // of the tree
	chaos    []string
	seeds    int
	patience time.Duration // of one command
	ways     []way

	bed    *bed                 // of bugs that are planted together; nil: each is by itself
	made   sync.Mutex           // of programs that several bugs share, and of rapid
	rapid  map[string]bool      // folders of packages, and whether their tests draw inputs by rapid
	share  sync.Mutex           // of what follows
	covers map[string]*coverage // by folder of a package
	clean  map[string]bool      // what passes, and what does not, without a bug; by command line
	needs  map[string]string    // packages that a package is built of, with a space around each
}

func (g *garden) chaosFlags() string { return strings.Join(g.chaos, " ") }

// plot is one bug, planted.
type plot struct {
	*mutant
	overlay string // file for go build -overlay; what is built with it is beside it
	number  int    // in the bed, if it is there
	first   []int  // seeds that have seen most other bugs

	processor time.Duration // that tests may take; 0: as much as they want
}

// remove removes what was built with the bug only.
func (p *plot) remove() {
	if p.number == 0 {
		os.RemoveAll(filepath.Dir(p.overlay)) // the programs are large
	}
}

// plant has the ways look for one bug and adds to found what they say. What found knows already
// is not tried again.
func (g *garden) plant(ctx context.Context, m *mutant, found *results, thorough bool) error {
	p := &plot{mutant: m}
	if g.bed != nil && g.bed.numbers[m.Name] > 0 {
		p.overlay, p.number = g.bed.overlay, g.bed.numbers[m.Name]
	} else {
		var err error
		if p, err = g.alone(m); err != nil {
			return err
		}
	}
	defer p.remove()
	seen, compiled := false, p.number > 0
	for _, w := range g.ways {
		if seen && !thorough && (w.name == endToEnd || m.drawn != nil) {
			continue
		}
		old, known := found.of(m, w.name)
		if known && old.enough(g.seeds, g.chaosFlags()) {
			seen = seen || old.Seen
			continue
		}
		reaches, err := w.reaches(ctx, g, m)
		if err != nil {
			return err
		}
		if !reaches {
			continue
		}
		if !compiled {
			if err := g.compile(ctx, p); err != nil {
				return err
			}
			compiled = true
		}
		from := 1
		if known && old.Flags == g.chaosFlags() {
			from = old.Seeds + 1
		}
		start := time.Now()
		p.first = found.favourites(g.chaosFlags())
		r, err := w.look(ctx, g, p, from)
		if err == nil && !r.Seen && p.number > 0 && (w.name == "unit" || w.name == endToEnd) { // what a test runs may not have its environment
			r, err = g.lookAlone(ctx, w, m)
		}
		if err != nil && (ctx.Err() == nil || r.Seeds < from) {
			return cmp.Or(ctx.Err(), fmt.Errorf("%s: %w", w.name, err))
		}
		r.Mutant, r.Patch, r.Way, r.Commit = m.Name, m.digest, w.name, g.commit
		r.Seconds = time.Since(start).Seconds()
		if from > 1 {
			r.Seconds += old.Seconds
		}
		seen = seen || r.Seen
		fmt.Fprintf(os.Stderr, "  %s, %s: %s\n", m.Name, w.name, r)
		if err := cmp.Or(found.add(r), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// lookAlone has a way look for a bug that is planted by itself.
func (g *garden) lookAlone(ctx context.Context, w way, m *mutant) (result, error) {
	p, err := g.alone(m)
	if err != nil {
		return result{}, err
	}
	defer p.remove()
	return w.look(ctx, g, p, 1)
}

// alone plants one bug by itself.
func (g *garden) alone(m *mutant) (*plot, error) {
	changed, err := m.apply(g.root)
	if err != nil {
		return nil, err
	}
	p := &plot{mutant: m}
	p.overlay, err = writeOverlay(g.root, filepath.Join(g.dir, m.digest), changed)
	return p, err
}

// compile says whether the bug is one that the compiler lets through.
func (g *garden) compile(ctx context.Context, p *plot) error {
	out, err := g.command(ctx, p, "go", "build", "./"+p.Room).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the compiler sees it, so it is no bug to plant: %w\n%s", err, out)
	}
	return nil
}

// tidy returns a command in the tree without any bug, not even a bed of them.
func (g *garden) tidy(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = g.root, 10*time.Second
	return cmd
}

// command returns a command in the tree; p is the bug that it and what it builds have, nil none.
func (g *garden) command(ctx context.Context, p *plot, name string, args ...string) *exec.Cmd {
	cmd := g.tidy(ctx, name, args...)
	if p == nil && g.bed != nil {
		p = &g.bed.plot
	}
	cmd.Env = os.Environ()
	if p != nil { // what the command builds in turn has the bug, too
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+p.overlay), planted+"="+strconv.Itoa(p.number))
	}
	return cmd
}

// test runs those tests of a package that which names, but not those in skip, and returns the
// first that failed, "" if none did. What fails now and then, on a busy machine, has seen
// nothing: a test that passes when it is repeated does not count, and one that fails without
// the bug, too, is an error.
func (g *garden) test(ctx context.Context, p *plot, folder, which, skip string) (failed string, err error) {
	for {
		out, err := g.goTest(ctx, p, folder, "-test.run", which, "-test.skip", skip)
		if err == nil || ctx.Err() != nil {
			return "", ctx.Err()
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return "", err // they could not be run
		}
		words, name := failure(out)
		if name == "" { // of the package as a whole
			return words, g.passes(ctx, folder, which, skip)
		}
		only := "^" + name + "$"
		if _, err := g.goTest(ctx, p, folder, "-test.count", strconv.Itoa(repeats), "-test.run", only); err != nil {
			return words, g.passes(ctx, folder, only, skip)
		}
		fmt.Fprintf(os.Stderr, "  left out, as it failed once and then %d times it did not: %s\n", repeats, name)
		skip += "|" + only
	}
}

// repeats is how often a test that has failed is repeated, to find out whether it does so
// because of the bug.
const repeats = 3

// passes returns an error unless tests pass without a bug.
func (g *garden) passes(ctx context.Context, folder, which, skip string) error {
	args := []string{"-test.run", which, "-test.skip", skip}
	key := folder + " " + strings.Join(args, " ")
	g.share.Lock()
	defer g.share.Unlock()
	passes, known := g.clean[key]
	if !known {
		out, err := g.goTest(ctx, nil, folder, args...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		passes = err == nil
		g.clean[key] = passes
		if !passes {
			fmt.Fprintf(os.Stderr, "%s\n", out)
		}
	}
	if !passes {
		return fmt.Errorf("the tests of %s fail without the bug, too", key)
	}
	return nil
}

// goTest runs tests of a package, up to the first that fails, as go test does: but what links
// them does so once for all runs.
func (g *garden) goTest(ctx context.Context, p *plot, folder string, args ...string) (string, error) {
	program, err := g.build(ctx, p, strings.ReplaceAll(folder, "/", "-")+".test", folder, "test", "-c", "-vet=off")
	if err != nil {
		return "", err
	}
	draws, err := g.draws(ctx, folder)
	if err != nil {
		return "", err
	}
	if draws { // how little is enough to fail does not matter, and files of failures would stay in the tree
		args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	args = append(args, "-test.failfast", "-test.paniconexit0", "-test.timeout", g.patience.String())
	cmd := g.command(ctx, p, program, args...)
	if p != nil && p.processor > 0 {
		limited := fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$@"`, int(p.processor.Seconds()), memoryMost>>10)
		cmd = g.command(ctx, p, "sh", append([]string{"-c", limited, "sh", program}, args...)...)
	}
	cmd.Dir = filepath.Join(g.root, filepath.FromSlash(folder))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 && ctx.Err() == nil { // a signal: the limit, as nobody else sends one
		out = append(out, "\n"+endedBySignal...)
	}
	return string(out), err
}

// endedBySignal is what the output of tests says last that had to be ended.
const endedBySignal = "ended by a signal"

// memoryMost is how many bytes of addresses tests have whose processor time is bounded: a loop
// that does not end may fill the machine.
const memoryMost = 8 << 30

// draws says whether tests of a package draw their inputs by rapid.
func (g *garden) draws(ctx context.Context, folder string) (bool, error) {
	g.made.Lock()
	defer g.made.Unlock()
	draws, known := g.rapid[folder]
	if !known {
		out, err := g.command(ctx, nil, "go", "list", "-test", "-deps", "./"+folder).Output()
		if err != nil {
			return false, fmt.Errorf("go list -test -deps ./%s: %w", folder, err)
		}
		draws = slices.Contains(strings.Fields(string(out)), "pgregory.net/rapid")
		g.rapid[folder] = draws
	}
	return draws, nil
}

// build makes a program of a package, with the bug, or without one if p is nil, once.
func (g *garden) build(ctx context.Context, p *plot, name, folder string, verb ...string) (string, error) {
	if p == nil && g.bed != nil {
		p = &g.bed.plot
	}
	path := filepath.Join(g.dir, name)
	if p != nil {
		path = filepath.Join(filepath.Dir(p.overlay), name)
	}
	if p == nil || g.bed != nil && p.overlay == g.bed.overlay { // which several share
		g.made.Lock()
		defer g.made.Unlock()
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	args := append(slices.Clone(verb), "-ldflags=-w", "-o", path, "./"+folder)
	if out, err := g.command(ctx, p, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %v\n%s", verb[0], err, out) // no exit of the program
	}
	return path, nil
}

// noEnd is said of what takes too long.
const noEnd = "no end"

// failure finds in the output of go test what failed: in words, and the test's name if there
// is one.
func failure(out string) (words, name string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			rest, _, _ = strings.Cut(rest, " ")
			if top, _, sub := strings.Cut(rest, "/"); name == "" || sub && top == name {
				words, name = rest, top
			}
		}
		if strings.HasPrefix(line, "panic: test timed out") || line == endedBySignal {
			return noEnd, ""
		}
		if words == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
			words = line
		}
	}
	if words == "" {
		words = "failed"
	}
	return shorten(words), name
}

// shorten keeps the beginning of a line.
func shorten(line string) string {
	const long = 100 // fits a terminal beside the other columns
	line, _, _ = strings.Cut(strings.TrimSpace(line), "\n")
	if r := []rune(line); len(r) > long {
		return string(r[:long]) + "…"
	}
	return line
}

// needed says whether a package is built of another: folders, seen from the root.
func (g *garden) needed(ctx context.Context, by, folder string) (bool, error) {
	g.share.Lock()
	defer g.share.Unlock()
	if g.needs == nil {
		g.needs = map[string]string{}
	}
	if _, known := g.needs[by]; !known {
		out, err := g.command(ctx, nil, "go", "list", "-deps", "-f", "{{if .Module}}{{.Dir}}{{end}}", "./"+by).Output()
		if err != nil {
			return false, fmt.Errorf("go list -deps ./%s: %w", by, err)
		}
		g.needs[by] = " " + strings.Join(strings.Fields(string(out)), " ") + " "
	}
	return strings.Contains(g.needs[by], " "+filepath.Join(g.root, filepath.FromSlash(folder))+" "), nil
}
