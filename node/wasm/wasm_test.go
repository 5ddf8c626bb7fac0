package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	wsys "github.com/tetratelabs/wazero/experimental/sys"

	"gridnode/node/kept"
	"gridnode/node/sandbox"
)

// The test binary is what runs and compiles modules, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case Verb:
			os.Exit(Main(os.Args[2:]))
		case CompileVerb:
			os.Exit(Compile(os.Args[2]))
		}
	}
	code := m.Run()
	if guestDir != "" {
		os.RemoveAll(guestDir)
	}
	os.Exit(code)
}

var guestDir string

// guest builds the module of testdata/guest once, and compiles it.
var guest = sync.OnceValues(func() (config Config, err error) {
	if guestDir, err = os.MkdirTemp("", "gridnode-wasm-test"); err != nil {
		return config, err
	}
	config.Module, config.Code = filepath.Join(guestDir, "guest.wasm"), filepath.Join(guestDir, "code")
	cmd := exec.Command("go", "build", "-o", config.Module, "testdata/guest/main.go")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return config, fmt.Errorf("%w: %s", err, out)
	}
	binary, err := os.ReadFile(config.Module)
	if err != nil {
		return config, err
	}
	sum := sha256.Sum256(binary)
	config.Digest = hex.EncodeToString(sum[:])
	return config, testCompiler().compile(context.Background(), config.Module, config.Code)
})

func testCompiler() *Compiler {
	self, _ := os.Executable()
	none := &sandbox.Means{NoBubblewrap: errors.New("not here"), NoLandlock: errors.New("not here")}
	return &Compiler{Program: self, Name: "wasm test", Means: func() *sandbox.Means { return none }, Walls: sandbox.Auto, span: 20 * time.Minute}
}

// result is how a module ended.
type ran struct {
	out, errors string
	code        int
	took        time.Duration
	folder      string
}

// run runs the guest in a directory of its own, for a span at most.
func runGuest(t *testing.T, span time.Duration, change func(*Config), args ...string) ran {
	t.Helper()
	config, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	config.Folder, config.Memory, config.Disk, config.Files = filepath.Join(t.TempDir(), "folder"), 64<<20, 4<<20, 100
	if err := os.Mkdir(config.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&config)
	}
	return runModule(t, span, &config, args...)
}

func runModule(t *testing.T, span time.Duration, config *Config, args ...string) ran {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	line := config.Command(self, append([]string{"guest"}, args...), []string{"JOB=yes", "GODEBUG=asyncpreemptoff=1"})
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = []string{"SECRET=of the site"}
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	began := time.Now()
	err = cmd.Run()
	r := ran{out: out.String(), errors: words.String(), took: time.Since(began), folder: config.Folder}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return r
}

func TestModuleSeesItsArgumentsAndVariables(t *testing.T) {
	r := runGuest(t, time.Minute, nil, "say", "a b", "")
	if r.code != 0 || r.out != "guest say a b \nJOB=yes GODEBUG=asyncpreemptoff=1\n" || r.errors != "" {
		t.Errorf("got %+v", r)
	}
}

func TestExitCodeIsTheModules(t *testing.T) {
	for _, code := range []int{0, 1, 7, 255} {
		if r := runGuest(t, time.Minute, nil, "exit", strconv.Itoa(code)); r.code != code {
			t.Errorf("exit %d: %+v", code, r)
		}
	}
}

func TestModuleUsesItsDirectory(t *testing.T) {
	if r := runGuest(t, time.Minute, nil, "work"); r.code != 0 || r.out != "done\n" {
		t.Errorf("got %+v", r)
	}
}

func TestModuleDoesNotLeaveItsDirectory(t *testing.T) {
	config, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	config.Folder = filepath.Join(t.TempDir(), "folder")
	secret := filepath.Join(filepath.Dir(config.Folder), "secret")
	if err := errors.Join(os.Mkdir(config.Folder, 0o700), os.WriteFile(secret, []byte("nobody's business"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r := runModule(t, time.Minute, &config, "escape", secret)
	if r.code != 0 || r.out != "held\n" {
		t.Errorf("got %+v", r)
	}
	beside, err := os.ReadDir(filepath.Dir(config.Folder))
	if err != nil || len(beside) != 2 {
		t.Errorf("beside its directory there are %v, %v", beside, err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "nobody's business" {
		t.Errorf("the secret is %q, %v", text, err)
	}
}

// TestLinkIsNotFollowedUnlessAsked: a module that wants what is there itself is given no other file.
func TestLinkIsNotFollowedUnlessAsked(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600), os.Symlink("file", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(dir, 1<<20, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer f.root.Close()
	for _, tt := range []struct {
		name string
		flag wsys.Oflag
		want wsys.Errno
	}{{"file", wsys.O_NOFOLLOW, 0}, {"link", 0, 0}, {"link", wsys.O_NOFOLLOW, wsys.ELOOP}, {"link", wsys.O_NOFOLLOW | wsys.O_CREAT, wsys.ELOOP}, {"new", wsys.O_NOFOLLOW | wsys.O_CREAT, 0}} {
		file, errno := f.OpenFile(tt.name, wsys.O_RDWR|tt.flag, 0o600)
		if errno != tt.want {
			t.Errorf("%s with flags %x: %v, want %v", tt.name, tt.flag, errno, tt.want)
		}
		if errno == 0 {
			file.Close()
		}
	}
}

// TestLinkMadeByOthersIsNotFollowed: whoever made it.
func TestLinkMadeByOthersIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "in"), 0o700), os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600),
		os.Symlink("../secret", filepath.Join(dir, "in", "link"))); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(filepath.Join(dir, "in"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, errno := f.OpenFile("link", 0, 0); errno == 0 {
		t.Error("it was followed")
	}
}

func TestModuleHasItsMemoryAndNoMore(t *testing.T) {
	r := runGuest(t, time.Minute, nil, "memory")
	if r.code != ExitMemory || !strings.Contains(r.errors, "out of memory: the module wanted more than its 67108864 bytes") {
		t.Errorf("exit code %d, errors end in %q", r.code, r.errors[max(len(r.errors)-300, 0):])
	}
	r = runGuest(t, time.Minute, func(c *Config) { c.Memory = 1 << 20 }, "say") // less than it begins with
	if r.code != ExitMemory {
		t.Errorf("got %+v", r)
	}
}

func TestModuleEndsWhenItIsKilled(t *testing.T) {
	for _, what := range []string{"loop", "sleep"} {
		var r ran
		for span := 3 * time.Second; r.out == "" && span < 2*time.Minute; span *= 3 { // until the machine is fast enough for it to begin
			r = runGuest(t, span, nil, what)
		}
		if r.code != -1 || !strings.HasSuffix(r.out, "ing\n") {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

func TestModuleHasItsDiskAndNoMore(t *testing.T) {
	for _, tt := range []struct {
		what        string
		least, most int
	}{{"fill", 3 << 20, 4 << 20}, {"hide", 3 << 20, 4 << 20}, {"links", 400, 512}, {"files", 90, 100}} {
		r := runGuest(t, time.Minute, nil, tt.what)
		n, err := strconv.Atoi(strings.TrimSpace(r.out))
		if r.code != 0 || err != nil || n < tt.least || n > tt.most {
			t.Errorf("%s: exit code %d, said %q, want %d to %d", tt.what, r.code, r.out, tt.least, tt.most)
		}
		if size := sizeOf(r.folder); size > 4<<20 {
			t.Errorf("%s: %d bytes lie in its directory", tt.what, size)
		}
	}
}

// TestOneHundredThousandFiles: with a bound of the site's, on the disk the number is bounded, too.
func TestOneHundredThousandFiles(t *testing.T) {
	r := runGuest(t, time.Minute, func(c *Config) { c.Files = 4096; c.Disk = 256 << 20 }, "files")
	if strings.TrimSpace(r.out) != "4095" { // and its directory
		t.Errorf("%d: opened %q", r.code, r.out)
	}
}

func TestOutputIsBounded(t *testing.T) {
	for _, log := range []int64{0, 1 << 20} {
		r := runGuest(t, time.Minute, func(c *Config) { c.Log = log }, "output")
		if want := kept.Bound(log) + 1; r.code != 0 || int64(len(r.out)) != want {
			t.Errorf("exit code %d, %d bytes, want %d", r.code, len(r.out), want)
		}
	}
}

func TestModuleHasNoNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if r := runGuest(t, time.Minute, nil, "net", l.Addr().String()); r.code != 0 || !strings.HasPrefix(r.out, "tried") {
		t.Errorf("got %+v", r)
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		t.Errorf("somebody connects from %v", c.RemoteAddr())
	}
}

func TestClocks(t *testing.T) {
	step := func(coarse bool) time.Duration {
		r := runGuest(t, time.Minute, func(c *Config) { c.Coarse = coarse }, "clock")
		n, err := strconv.Atoi(strings.TrimSpace(r.out))
		if err != nil || r.code != 0 {
			t.Fatalf("got %+v", r)
		}
		return time.Duration(n)
	}
	if s := step(true); s != time.Millisecond {
		t.Errorf("the coarse clock goes in steps of %v", s)
	}
	if s := step(false); s >= time.Millisecond {
		t.Errorf("the real clock goes in steps of %v", s)
	}
}

// Modules of a few bytes, by hand.
const (
	header  = "\x00asm\x01\x00\x00\x00"
	noModul = "MZ\x00\x00"
	// (module (func (export "_start") unreachable))
	trap = header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x05\x01\x03\x00\x00\x0b"
	// (module (import "env" "system" (func)))
	foreign = header + "\x01\x04\x01\x60\x00\x00" + "\x02\x0e\x01\x03env\x06system\x00\x00"
	// A function that calls itself for ever.
	deep = header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x06\x01\x04\x00\x10\x00\x0b"
	// (module (table 0 funcref) (func (export "_start") (drop (table.grow 0 (ref.null func) (i32.const -1)))))
	table = header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x04\x04\x01\x70\x00\x00" + "\x07\x0a\x01\x06_start\x00\x00" +
		"\x0a\x0c\x01\x0a\x00\xd0\x70\x41\x7f\xfc\x0f\x00\x1a\x0b"
)

func TestBadModules(t *testing.T) {
	for _, tt := range []struct {
		name, binary, says string
		code               int
	}{
		{"none", noModul, "no module of WebAssembly", ExitNoStart},
		{"component", "\x00asm\x0d\x00\x01\x00", "component", ExitNoStart},
		{"cut", header + "\x01\x7f", "cannot be compiled", ExitNoStart},
		{"trap", trap, "unreachable", ExitTrap},
		{"foreign import", foreign, "not part of WASI", ExitNoStart},
		{"recursion", deep, "stack overflow", ExitTrap},
		{"table", table, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "module")
			if err := os.WriteFile(path, []byte(tt.binary), 0o600); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(tt.binary))
			r := runModule(t, time.Minute, &Config{Module: path, Digest: hex.EncodeToString(sum[:]), Folder: t.TempDir(), Memory: 1 << 20})
			if r.code != tt.code || !strings.Contains(r.errors, tt.says) {
				t.Errorf("exit code %d, want %d; it says %q, want %q", r.code, tt.code, r.errors, tt.says)
			}
		})
	}
}

func TestModuleOfAnotherDigestIsNotRun(t *testing.T) {
	r := runGuest(t, time.Minute, func(c *Config) { c.Digest = strings.Repeat("0", 64) }, "say")
	if r.code != ExitNoStart || !strings.Contains(r.errors, "digest") {
		t.Errorf("got %+v", r)
	}
}

// TestCodeIsKept: of the second run nothing is compiled, and bad code is not run.
func TestCodeIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module in processes of its own")
	}
	config, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	if !Ready(config.Code) {
		t.Fatalf("no code in %s", config.Code)
	}
	with := runGuest(t, time.Minute, nil, "exit", "3")
	without := runGuest(t, time.Minute, func(c *Config) { c.Code = "" }, "exit", "3")
	if with.code != 3 || without.code != 3 || with.took > without.took {
		t.Errorf("with code %+v, without %+v", with, without)
	}
	t.Logf("with code %v, without %v", with.took, without.took)
	bad := filepath.Join(t.TempDir(), "code")
	if err := os.CopyFS(bad, os.DirFS(config.Code)); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(bad, "*", "*"))
	if err := os.Truncate(files[0], 1000); err != nil {
		t.Fatal(err)
	}
	if r := runGuest(t, time.Minute, func(c *Config) { c.Code = bad }, "exit", "3"); r.code != 3 {
		t.Errorf("with code that was cut %+v", r)
	}
}

func TestStore(t *testing.T) {
	config, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(config.Module)
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(string) bool { return false }
	s, err := OpenStore(filepath.Join(t.TempDir(), "modules"), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(strings.NewReader("no module"), nobody); !errors.Is(err, ErrModule) {
		t.Errorf("no module: %v", err)
	}
	if _, _, err := s.Put(io.MultiReader(strings.NewReader(header), io.LimitReader(zeros{}, ModuleMax)), nobody); !errors.Is(err, ErrModule) {
		t.Errorf("a long one: %v", err)
	}
	digest, size, err := s.Put(bytes.NewReader(binary), nobody)
	if err != nil || digest != config.Digest || size != int64(len(binary)) {
		t.Fatalf("%s of %d bytes, %v", digest, size, err)
	}
	fetched := false
	fetch := func(path string) error { fetched = true; return os.WriteFile(path, binary, 0o600) }
	for range 2 {
		if err := s.Bring(t.Context(), digest, size, nobody, fetch, testCompiler()); err != nil || fetched {
			t.Fatalf("%v, fetched %v", err, fetched)
		}
	}
	var c Config
	if s.Files(digest, &c); !Ready(c.Code) {
		t.Error("it was not compiled")
	}
	s.most = 1000
	small := trap
	if _, _, err := s.Put(strings.NewReader(small), nobody); !errors.Is(err, ErrRoom) {
		t.Errorf("what was used lately made room: %v", err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.Dir(digest), before, before); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(strings.NewReader(small), func(d string) bool { return d == digest }); !errors.Is(err, ErrRoom) {
		t.Errorf("what is needed made room: %v", err)
	}
	if _, _, err := s.Put(strings.NewReader(small), nobody); err != nil {
		t.Error(err)
	}
	if _, here := s.Has(digest); here {
		t.Error("there are more bytes than there may be")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestCompilerRefusesWhatIsNoModule: with the walls of this machine.
func TestCompilerInsideWalls(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module in processes of its own")
	}
	means := sandbox.Find()
	if _, err := means.Walls(sandbox.Auto); err != nil {
		t.Skip(err)
	}
	config, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	c := testCompiler()
	c.Means = func() *sandbox.Means { return means }
	dir := filepath.Join(t.TempDir(), "code")
	if err := c.compile(t.Context(), config.Module, dir); err != nil || !Ready(dir) {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte(header+"\x01\x7f"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.compile(t.Context(), bad, dir); !errors.Is(err, ErrModule) {
		t.Errorf("a module that was cut: %v", err)
	}
}

func TestCommandIsReadAsItWasWritten(t *testing.T) {
	want := Config{Module: "/m", Digest: "d", Folder: "/tmp", Memory: 1, Disk: 2, Files: 3, Coarse: true}
	line := want.Command("gridnode", []string{"a", "--b"}, []string{"C=d"})
	got, args, env, err := parse(line[2:])
	if err != nil || *got != want || len(args) != 2 || args[1] != "--b" || len(env) != 1 || env[0] != "C=d" {
		t.Errorf("%+v %q %q %v", got, args, env, err)
	}
	for _, bad := range [][]string{{}, {"{}"}, {"{}", "2", "a"}, {"{}", "-1"}, {"x", "0"}} {
		if _, _, _, err := parse(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
