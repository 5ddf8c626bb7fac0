package grid_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = ".." // seen from this folder

// cores are the packages that must be pure (architecture.md, "A core and its driver").
// Sub-folders count with them.
var cores = []string{
	"directory", "market", "lease", "coalloc", "node/site", "node/pilot", "node/after", "node/quota", "node/guest", "node/blame", "node/history", "node/member", "internal/lrms", "grid", "testnet/kademlia",
}

// coreImports is everything a core may import from outside the module.
var coreImports = []string{
	"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/base32", "encoding/binary", "errors", "fmt", "hash/fnv",
	"iter", "maps", "math", "math/bits", "math/rand/v2", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
	"google.golang.org/protobuf/proto",
}

// coreAlso is what single cores may import besides.
var coreAlso = map[string][]string{
	// Certificates are X.509's; who is to draw random bits, and when it is, is an argument.
	"node/member": {
		"crypto", "crypto/ed25519", "crypto/subtle", "crypto/x509", "crypto/x509/pkix", "encoding/asn1", "encoding/base64",
		"encoding/hex", "encoding/json", "encoding/pem", "io", "math/big",
	},
	"node/guest":   {"encoding/json"}, // of its records
	"node/history": {"encoding/json"}, // the same
	"node/quota":   {"encoding/json"}, // the same
	"node/site":    {"reflect"},       // the board leads from the type of an input to the part that takes it
}

// coreCalls are selectors that read the world although their package is allowed.
var coreCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"rand": {"Int", "IntN", "Int64", "Int64N", "Uint64", "Uint64N", "Uint32", "Float64", "N", "Perm", "Shuffle", "NormFloat64", "ExpFloat64"},
}

// order is the import direction: a package imports only packages further right. A
// folder stands for what is below it, too, but for folders that are listed themselves.
var order = []string{
	"cmd/gridnode",
	"testnet/scale", "testnet/reproduce/papers", "testnet/reproduce/gridfederation", "testnet/reproduce/matchmaking",
	"testnet/reproduce/resourcedelegation", "testnet/reproduce/coallocation", "testnet/reproduce/muscle", "testnet/reproduce",
	"testnet/live",
	"testnet/scenario/scale", "testnet/scenario/hostile", "testnet/scenario/chaos", "testnet/scenario/packing", "testnet/scenario/coallocation",
	"testnet/scenario/delegation", "testnet/scenario/leasing", "testnet/scenario/federation", "testnet/scenario",
	"testnet/measure", "testnet", "testnet/sweep", "testnet/draw", "testnet/kademlia",
	"node/api/server", "node/metrics", "node", "node/notify", "node/backup", "node/api", "node/access", "node/run", "node/logging", "node/tally", "node/witness", "node/p2p", "node/reach", "node/forward", "node/shim", "node/console", "node/wasm", "node/content", "node/kept", "node/sandbox", "node/mailbox", "node/store",
	"node/pilot", "node/site", "node/after", "node/quota", "node/guest", "node/blame", "node/history", "node/member", "coalloc", "lease", "market", "directory", "directory/trie",
	"internal/lrms", "testnet/workload", "internal/wire", "internal/atomicfile", "internal/footprint", "grid",
}

// room returns the place in order of a package folder, -1 if it has none.
func room(folder string) int {
	best := -1
	for i, p := range order {
		if (folder == p || strings.HasPrefix(folder, p+"/")) && (best < 0 || len(p) > len(order[best])) {
			best = i
		}
	}
	return best
}

func TestCoresArePure(t *testing.T) {
	for _, core := range cores {
		for path, file := range sources(t, core) {
			for _, complaint := range impurities(file, coreAlso[core]...) {
				t.Errorf("%s: %s", path, complaint)
			}
		}
	}
}

// TestImpuritiesAreSeen keeps the check above from passing because it sees nothing.
func TestImpuritiesAreSeen(t *testing.T) {
	for _, tt := range []struct{ name, source string }{
		{"clock", `import "time"; func f() { time.Now() }`},
		{"goroutine", `func f() { go f() }`},
		{"channel", `func f(c chan int) {}`},
		{"select", `func f() { select {} }`},
		{"lock", `import "sync"; var m sync.Mutex`},
		{"global randomness", `import "math/rand/v2"; func f() { rand.IntN(3) }`},
		{"old randomness", `import "math/rand"; var _ = rand.Int`},
		{"file", `import "os"; var _ = os.Open`},
		{"logger", `import "log/slog"; var _ = slog.Info`},
		{"libp2p", `import _ "github.com/libp2p/go-libp2p"`},
		{"badger", `import _ "github.com/dgraph-io/badger/v4"`},
		{"simulator's secret", `func f(j *Job) { _ = j.RunTime }`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+tt.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(impurities(file)) == 0 {
				t.Errorf("no complaint about %s", tt.source)
			}
		})
	}
	clean := `package x; import ("time"; "math/rand/v2"); func f(r *rand.Rand) time.Duration { return time.Second * time.Duration(r.IntN(3)) }`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", clean, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := impurities(file); len(got) != 0 {
		t.Errorf("complaints about clean code: %v", got)
	}
}

func impurities(file *ast.File, also ...string) (complaints []string) {
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if !strings.HasPrefix(path, "gridnode/") && !slices.Contains(coreImports, path) && !slices.Contains(also, path) {
			complaints = append(complaints, "a core may not import "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			complaints = append(complaints, "a core starts no goroutine")
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			complaints = append(complaints, "a core uses no channel")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(coreCalls[pkg.Name], n.Sel.Name) {
				complaints = append(complaints, fmt.Sprintf("a core may not call %s.%s", pkg.Name, n.Sel.Name))
			}
			if n.Sel.Name == "RunTime" {
				complaints = append(complaints, "a core may not look at a job's true run time")
			}
		}
		return true
	})
	return complaints
}

func TestImportsPointOneWay(t *testing.T) {
	for i, from := range order {
		for path, file := range sources(t, from) {
			folder, err := filepath.Rel(module, filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			if room(filepath.ToSlash(folder)) != i {
				continue // it is listed itself
			}
			for _, spec := range file.Imports {
				to, inside := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "gridnode/")
				if j := room(to); inside && j >= 0 && j < i {
					t.Errorf("%s imports gridnode/%s, which is above it", path, to)
				}
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != module {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		documented[folder] = documented[folder] || file.Doc != nil && len(strings.TrimSpace(file.Doc.Text())) > 0
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(documented) < 5 {
		t.Fatalf("saw only the packages %v", documented)
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no doc comment", folder)
		}
	}
}

// The largest room and the largest type in which a reader still finds a way.
const (
	filesMax   = 30
	methodsMax = 60
)

// TestRoomsAreSmall: no package has more files, and no type more methods, than a reader
// can take in. The verbs of the command line, a file each, are a list and not a room.
func TestRoomsAreSmall(t *testing.T) {
	files, methods := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		files[folder]++
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[folder+": "+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 || len(methods) < 100 {
		t.Fatalf("saw only %d folders and %d types", len(files), len(methods))
	}
	for folder, n := range files {
		if n > filesMax && folder != filepath.Join(module, "cmd/gridnode") {
			t.Errorf("%s has %d files, want at most %d", folder, n, filesMax)
		}
	}
	for name, n := range methods {
		if n > methodsMax {
			t.Errorf("%s has %d methods, want at most %d", name, n, methodsMax)
		}
	}
}

// receiver names the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// TestTestsDoNotSleep: a test that waits for the clock is slow, or fails on a slow
// machine. In a synctest bubble the clock is the test's own.
func TestTestsDoNotSleep(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		seen++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing/synctest"` }) {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" {
					t.Errorf("%s sleeps on the real clock", path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Fatalf("saw only %d files of tests", seen)
	}
}

// sources parses the non-test files of a package folder and its sub-folders.
func sources(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	root := filepath.Join(module, folder)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // a folder that the design names and nobody has begun
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files[path] = file
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
