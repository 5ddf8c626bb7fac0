package wasm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"gridnode/node/kept"
)

// Main runs the module that a command line of [Config.Command] describes, without the program
// and the verb, and returns the exit code.
func Main(line []string) int {
	config, args, env, err := parse(line)
	if err != nil {
		return complain(ExitNoStart, err)
	}
	return config.run(args, env)
}

func complain(code int, err error) int {
	fmt.Fprintf(os.Stderr, "gridnode: %v\n", err)
	return code
}

// collectAt is the heap at which the runtime of Go, which holds no memory of modules, collects more often.
const collectAt = Overhead / 2

func (c *Config) run(args, env []string) int {
	debug.SetMemoryLimit(collectAt)
	debug.SetTraceback("crash") // an error of the runtime is no exit code of the module
	binary, err := c.load()
	if err != nil {
		return complain(ExitNoStart, err)
	}
	files, err := openFolder(c.Folder, c.Disk, c.Files)
	if err != nil {
		return complain(ExitNoStart, err)
	}
	linear := &memory{most: math.MaxInt64}
	if c.Memory > 0 {
		linear.most = uint64(c.Memory)
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), linear)
	runtime, module, err := c.compiled(ctx, binary)
	if err != nil {
		return complain(ExitNoStart, fmt.Errorf("the module cannot be compiled: %w", err))
	}
	setup := c.setup(args, env, files)
	err = start(ctx, runtime, module, setup)
	var exit *sys.ExitError
	code := 0
	if errors.As(err, &exit) {
		code, err = int(exit.ExitCode()&0xff), nil
	}
	switch {
	case (err != nil || code != 0) && linear.refused:
		return complain(ExitMemory, fmt.Errorf("out of memory: the module wanted more than its %d bytes", linear.most))
	case err != nil && strings.Contains(err.Error(), "not instantiated"):
		return complain(ExitNoStart, fmt.Errorf("the module wants what is not part of WASI preview 1: %w", err))
	case err != nil:
		return complain(ExitTrap, err)
	}
	return code
}

// load reads the module and checks that it is the one that was meant.
func (c *Config) load() ([]byte, error) {
	file, err := os.Open(c.Module)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	binary, err := io.ReadAll(io.LimitReader(file, ModuleMax+1))
	if err != nil {
		return nil, err
	}
	if err := CheckModule(binary); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(binary); hex.EncodeToString(sum[:]) != c.Digest {
		return nil, fmt.Errorf("the module has the digest %x, want %s", sum, c.Digest)
	}
	return binary, nil
}

// CheckModule returns an error that says why a file, of which at least 8 bytes are given if
// it has so many, is no module.
func CheckModule(binary []byte) error {
	switch {
	case len(binary) > ModuleMax:
		return fmt.Errorf("a module has at most %d bytes", ModuleMax)
	case len(binary) < 8 || string(binary[:4]) != "\x00asm":
		return errors.New("it is no module of WebAssembly")
	case string(binary[4:8]) == "\x0d\x00\x01\x00":
		return errors.New("it is a component of WebAssembly: build a module for WASI preview 1 (wasip1, wasm32-wasi)")
	case string(binary[4:8]) != "\x01\x00\x00\x00":
		return errors.New("it is a module of WebAssembly of another version than 1")
	}
	return nil
}

// compiled returns the module as code, from what it was compiled to before if that is there.
func (c *Config) compiled(ctx context.Context, binary []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	if info, err := os.Stat(c.Code); c.Code != "" && err == nil && info.IsDir() {
		if cache, err := wazero.NewCompilationCacheWithDir(c.Code); err == nil {
			r, module, err := compile(ctx, binary, cache)
			if err == nil {
				return r, module, nil
			}
		}
	}
	return compile(ctx, binary, nil)
}

// compile compiles a module, and keeps it in a cache unless that is nil.
func compile(ctx context.Context, binary []byte, cache wazero.CompilationCache) (wazero.Runtime, wazero.CompiledModule, error) {
	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	module, err := r.CompileModule(ctx, binary)
	if err != nil {
		_ = r.Close(ctx)
		return nil, nil, err
	}
	return r, module, nil
}

// setup says what the module can reach.
func (c *Config) setup(args, env []string, files *folder) wazero.ModuleConfig {
	most := kept.Bound(c.Log) + 1 // the byte more says that something is missing
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithRandSource(rand.Reader).
		WithStdout(&bounded{to: os.Stdout, left: most}).WithStderr(&bounded{to: os.Stderr, left: most}).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(files, "/")).
		WithNanosleep(func(span int64) { time.Sleep(time.Duration(span)) })
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		config = config.WithEnv(name, value)
	}
	unit := time.Nanosecond
	if c.Coarse {
		unit = time.Millisecond
	}
	began := time.Now()
	return config.WithWalltime(func() (int64, int32) {
		now := time.Now().Truncate(unit)
		return now.Unix(), int32(now.Nanosecond())
	}, sys.ClockResolution(unit)).WithNanotime(func() int64 {
		return int64(time.Since(began).Truncate(unit))
	}, sys.ClockResolution(unit))
}

// start runs the module to its end. What the runtime panics with is an error.
func start(ctx context.Context, r wazero.Runtime, module wazero.CompiledModule, setup wazero.ModuleConfig) (err error) {
	defer func() {
		if bad := recover(); bad != nil {
			err = fmt.Errorf("the module ended the runtime: %v", bad)
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return err
	}
	_, err = r.InstantiateModule(ctx, module, setup)
	return err
}

// bounded passes on as many bytes as are left, and drops the rest.
type bounded struct {
	to   io.Writer
	left int64
}

func (b *bounded) Write(data []byte) (int, error) {
	some := data[:min(int64(len(data)), b.left)]
	if len(some) == 0 {
		return len(data), nil
	}
	n, err := b.to.Write(some)
	b.left -= int64(n)
	if err != nil {
		return n, err
	}
	return len(data), nil
}
