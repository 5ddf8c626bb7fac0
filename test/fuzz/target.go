package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridnode/internal/corpus"
)

// target is a fuzz target.
type target struct {
	room   string // its package, as a path in the tree
	name   string
	folder string
}

func (t target) String() string { return t.room + "." + t.name }

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// find returns the targets of the tree whose names begin with one of those given.
func find(ctx context.Context, only []string) (targets []target, err error) {
	const format = `{{$p := .}}{{range .TestGoFiles}}{{$p.Module.Path}} {{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}` +
		`{{range .XTestGoFiles}}{{$p.Module.Path}} {{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}`
	list, err := output(ctx, "go", "list", "-f", format, "./...")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) != 4 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(words[2], words[3]))
		if err != nil {
			return nil, err
		}
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			t := target{room: strings.TrimPrefix(words[1], words[0]+"/"), name: string(match[1]), folder: words[2]}
			if slices.ContainsFunc(only, func(begin string) bool { return strings.HasPrefix(t.String(), begin) }) {
				targets = append(targets, t)
			}
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("there is no target whose name begins with one of %q", only)
	}
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.String(), b.String()) })
	return targets, nil
}

// executed is how Go's fuzzer tells how many inputs it has executed.
var executed = regexp.MustCompile(`execs: (\d+) `)

// outOfTime is how Go's fuzzer, before Go 1.27, now and then ends when its time is up, as if the target had failed
// (go.dev/issue/75804). What has failed leaves an input.
var outOfTime = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([\d.]+s\)\n    context deadline exceeded\n(FAIL\n)?\z`)

// A turn has two parts. In the first all code is traced, and what reached some that nothing else had reached is kept. That takes
// most of the time of an input; in the second, longer one nothing is traced, and each input is executed together with others that
// lie near it (corpus.Fuzz).
const (
	tracedShare = 4 // of how many parts of a turn the first is one
	tracedLeast = 3 * time.Second
	near        = 127
)

// run gives the target a turn, and keeps what that has found. dir is for programs and inputs.
func (t target) run(ctx context.Context, dir string, turn time.Duration, abreast int) (r result, err error) {
	program := filepath.Join(dir, strings.ReplaceAll(t.room, "/", "_"))
	inputs, traced := program+".inputs", min(max(turn/tracedShare, tracedLeast), turn)
	r = result{Target: t.String(), At: time.Now().UTC()}
	for _, part := range []struct {
		program string
		build   []string
		env     string
		span    time.Duration
	}{
		{program + ".traced", []string{"-fuzz", "."}, corpus.NearVariable + "=0", traced},
		{program, nil, fmt.Sprintf("%s=%d", corpus.NearVariable, near), turn - traced},
	} {
		if part.span <= 0 {
			continue
		}
		if _, err := os.Stat(part.program); errors.Is(err, fs.ErrNotExist) {
			if _, err := output(ctx, "go", append(append([]string{"test", "-c", "-vet=off"}, part.build...), "-o", part.program, "./"+t.room)...); err != nil {
				return r, err
			}
		}
		cmd := exec.CommandContext(ctx, part.program, "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", part.span.String(),
			"-test.fuzzcachedir", inputs, "-test.parallel", strconv.Itoa(abreast), "-test.timeout", "0")
		cmd.Dir, cmd.Env = t.folder, append(os.Environ(), part.env)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends those that it has started
		began := time.Now()
		said, err := cmd.CombinedOutput()
		if err != nil && !outOfTime.Match(said) {
			return r, fmt.Errorf("%w:\n%s\nto see it again: %s go test -run '^%s$' ./%s", err, said, part.env, t.name, t.room)
		}
		r.Seconds += time.Since(began).Seconds()
		n, err := executions(said)
		if err != nil {
			return r, err
		}
		r.Executions += n
	}
	r.had, r.Kept, err = t.keep(filepath.Join(inputs, t.name))
	return r, err
}

// executions returns how many inputs a program has executed, by what it said.
func executions(said []byte) (int64, error) {
	counts := executed.FindAllSubmatch(said, -1)
	if len(counts) == 0 {
		return 0, fmt.Errorf("it does not say how many inputs it has executed:\n%s", said)
	}
	n, err := strconv.ParseInt(string(counts[len(counts)-1][1]), 10, 64)
	return n * (1 + corpus.NearOf(said)), err
}

// keptMost bounds the inputs that are kept of a target, in bytes: every run of its test executes them.
const keptMost = 16 << 10

// keep adds the inputs of a folder to those that are kept: the shortest first, as far as there is room. It
// returns how many there were, and how many there are.
func (t target) keep(inputs string) (had, kept int, err error) {
	path, err := corpus.Path(t.folder, t.name)
	if err != nil {
		return 0, 0, err
	}
	lines, err := corpus.Read(path)
	if err != nil {
		return 0, 0, err
	}
	had = len(lines)
	files, err := os.ReadDir(inputs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	size := len(strings.Join(lines, "\n"))
	var found []string
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(inputs, f.Name()))
		if err != nil {
			return 0, 0, err
		}
		line, err := corpus.Line(text)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if !slices.Contains(lines, line) {
			found = append(found, line)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, line := range found {
		if size += len(line) + 1; size > keptMost {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == had {
		return had, had, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, 0, err
	}
	return had, len(lines), os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// output runs a command and returns what it prints.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errors.Bytes())
	}
	return text, nil
}
