package wasm

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"

	"gridnode/node/sandbox"
)

// Bounds of compiling one module.
const (
	compileMemory = 2 << 30
	codeMax       = 512 << 20 // bytes of what comes out
	compileSpan   = 2 * time.Minute
)

// Compile is the process that compiles the module at a path. It writes to its standard
// output the name that wazero finds the code by, a line, and the code.
func Compile(path string) int {
	binary, err := os.ReadFile(path)
	if err == nil {
		err = CheckModule(binary)
	}
	if err == nil {
		err = compileTo(os.Stdout, binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func compileTo(out io.Writer, binary []byte) error {
	dir, err := os.MkdirTemp(".", "code")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, _, err := compile(ctx, binary, cache)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("the compiler left %d files", len(found))
	}
	name, err := filepath.Rel(dir, found[0])
	if err != nil {
		return err
	}
	code, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer code.Close()
	if _, err := fmt.Fprintln(out, name); err != nil {
		return err
	}
	_, err = io.Copy(out, code)
	return err
}

// codeName is what the name of a file of code looks like.
var codeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^wazero-[A-Za-z0-9._+-]{1,100}/[0-9a-f]{64}$`) })

// Compiler compiles modules of anybody: in a process inside walls, if there are some. One
// module at a time.
type Compiler struct {
	Program string // this one
	Name    string // of the launcher: no other may be open with it
	Means   func() *sandbox.Means
	Walls   sandbox.Kind

	span time.Duration // that one module may take; 0: compileSpan
}

// ErrModule is wrapped by Compile's error for what is no module that can be run anywhere.
var ErrModule = errors.New("not a module that runs here")

// compile has the module at a path compiled into a directory.
func (c *Compiler) compile(ctx context.Context, module, dir string) error {
	work, err := os.MkdirTemp("", "gridnode-wasm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	out, err := os.CreateTemp(filepath.Dir(dir), "code*.part")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	if err := c.launch(ctx, module, work, out); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unpack(bufio.NewReader(out), dir)
}

// unpack puts what Compile has written into a directory.
func unpack(r *bufio.Reader, dir string) error {
	line, err := r.ReadString('\n')
	name := strings.TrimSuffix(line, "\n")
	if err != nil || !codeName().MatchString(name) {
		return fmt.Errorf("the compiler says %q", line[:min(len(line), 200)])
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	code, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(code, r)
	return errors.Join(err, code.Close())
}

// plan returns the walls and limits of compiling.
func (c *Compiler) plan(module string) (*sandbox.Plan, error) {
	rule := sandbox.Rule{
		Walls: true, Read: []string{c.Program, module},
		Limits: sandbox.Limits{Memory: compileMemory, Processors: 1000, Processes: 64, Disk: codeMax, Files: 256},
	}
	means := c.Means()
	kind, err := means.Walls(c.Walls)
	if err != nil || kind == sandbox.None {
		rule.Walls = false
	}
	return means.Plan(c.Walls, &rule)
}

// launch runs Compile.
func (c *Compiler) launch(ctx context.Context, module, work string, out *os.File) error {
	plan, err := c.plan(module)
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	l := sandbox.Open(c.Name)
	defer l.Close()
	r, err := l.Start(plan, &sandbox.Process{
		Path: c.Program, Args: []string{c.Program, CompileVerb, module}, Dir: work,
		Files: [3]int{int(null.Fd()), int(out.Fd()), int(write.Fd())},
	})
	write.Close()
	if err != nil {
		return fmt.Errorf("compile a module: %w", err)
	}
	defer r.Release()
	kill := func() { _ = syscall.Kill(-r.PID, syscall.SIGKILL) }
	defer context.AfterFunc(ctx, kill)()
	span := cmp.Or(c.span, compileSpan)
	late := time.AfterFunc(span, kill)
	words, _ := io.ReadAll(io.LimitReader(read, 512)) // what is missing is not said
	var status syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(r.PID, &status, 0, nil)
	}
	inTime := late.Stop()
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || code == 0:
		return err
	case !inTime:
		return fmt.Errorf("%w: compiling it takes more than %v", ErrModule, span)
	}
	why := strings.TrimSpace(strings.ToValidUTF8(string(words), "?"))
	if reason := r.Reason(code); reason != "" {
		why = reason
	}
	return fmt.Errorf("%w: exit code %d of compiling it: %s", ErrModule, code, why)
}
