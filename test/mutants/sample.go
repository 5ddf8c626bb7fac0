package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// cores are the folders that samples are drawn from, with what is below them, and those that -only names besides.
var cores = []string{"directory", "market", "lease", "coalloc", "node/site", "node/pilot", "node/member"}

// folders returns the cores, and which of the chosen words, with commas, are further folders of the tree.
func (g *garden) folders(only string) []string {
	all := slices.Clone(cores)
	for word := range strings.SplitSeq(only, ",") {
		in := func(core string) bool { return word == core || strings.HasPrefix(word, core+"/") }
		if i, err := os.Stat(filepath.Join(g.root, filepath.FromSlash(word))); word != "" && err == nil && i.IsDir() && !slices.ContainsFunc(cores, in) {
			all = append(all, word)
		}
	}
	return all
}

// draw returns a sample of the small changes that can be made in folders: size of each package,
// or all that it has if those are fewer, in the order of their names. Each change of a package is
// as likely as any other. The same seed draws the same, a larger sample has all of a smaller one,
// and where code has changed the others are still drawn.
func (g *garden) draw(ctx context.Context, folders []string, seed uint64, size int) (all []*mutant, err error) {
	packages, exports, err := g.list(ctx, folders)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		some, err := p.draw(g.root, exports, seed, size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Room, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// listed is a package as go list has it.
type listed struct {
	ImportPath, Dir, Export, Room string
	GoFiles                       []string
	DepOnly                       bool
}

// list returns the packages of folders, and where the compiled form of what they import is.
func (g *garden) list(ctx context.Context, folders []string) (packages []listed, exports map[string]string, err error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(g.root, filepath.FromSlash(folder))); err == nil {
			args = append(args, "./"+folder+"/...")
		}
	}
	out, err := g.command(ctx, nil, "go", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("go list of what samples are drawn from: %w", err)
	}
	exports = map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("what go list says: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly || len(p.GoFiles) == 0 {
			continue
		}
		room, err := filepath.Rel(g.root, p.Dir)
		if err != nil {
			return nil, nil, err
		}
		p.Room = filepath.ToSlash(room)
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b listed) int { return strings.Compare(a.Room, b.Room) })
	return packages, exports, nil
}

// sketch is a package whose changes are drawn.
type sketch struct {
	listed
	fset  *token.FileSet
	texts map[string][]byte
	files map[string]*ast.File
	bare  map[string]*ast.File // without the bodies of functions, but for those of generic ones
	types types.Config
}

// draw draws from one package; exports say where the compiled form of what it imports is.
func (p listed) draw(root string, exports map[string]string, seed uint64, size int) ([]*mutant, error) {
	s := &sketch{listed: p, fset: token.NewFileSet(), texts: map[string][]byte{}, files: map[string]*ast.File{}, bare: map[string]*ast.File{}}
	s.types.Importer = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		s.texts[name] = text
		for _, into := range []map[string]*ast.File{s.files, s.bare} {
			if into[name], err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return nil, err
			}
		}
		for _, d := range s.bare[name].Decls {
			if f, yes := d.(*ast.FuncDecl); yes && f.Name.Name != "init" && f.Type.TypeParams == nil && !genericReceiver(f) {
				f.Body = nil
			}
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := s.types.Check(p.ImportPath, s.fset, slices.Collect(maps.Values(s.files)), info); err != nil {
		return nil, err
	}
	type drawn struct {
		edit
		file, name string
		lot        [sha256.Size]byte
	}
	var lots []drawn
	for _, name := range p.GoFiles {
		if ast.IsGenerated(s.files[name]) {
			continue
		}
		count := map[string]int{}
		for _, e := range editsOf(s.fset, s.files[name], s.texts[name], info) {
			kind := e.function + ":" + e.kind
			count[kind]++
			d := drawn{e, name, fmt.Sprintf("%s/%s:%s:%d", p.Room, name, kind, count[kind]), [sha256.Size]byte{}}
			d.lot = sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, d.name))
			lots = append(lots, d)
		}
	}
	slices.SortFunc(lots, func(a, b drawn) int { return bytes.Compare(a.lot[:], b.lot[:]) })
	var some []*mutant
	for _, d := range lots {
		if len(some) == size {
			break
		}
		if m := s.mutant(d.edit, d.file, d.name); s.compiles(d.file, m) {
			some = append(some, m)
		}
	}
	slices.SortFunc(some, func(a, b *mutant) int { return strings.Compare(a.Name, b.Name) })
	return some, nil
}

// genericReceiver reports whether the function is a method of a generic type.
func genericReceiver(f *ast.FuncDecl) bool {
	return f.Recv != nil && strings.Contains(types.ExprString(f.Recv.List[0].Type), "[")
}

// mutant makes a bug of an edit.
func (s *sketch) mutant(e edit, file, name string) *mutant {
	text := string(s.texts[file])
	from := strings.LastIndexByte(text[:e.from], '\n') + 1
	to := len(text)
	if n := strings.IndexByte(text[e.to:], '\n'); n >= 0 {
		to = e.to + n
	}
	line := 1 + strings.Count(text[:from], "\n")
	after := text[from:e.from] + e.with + text[e.to:to]
	m := &mutant{Name: name, Room: s.Room, drawn: &place{file: s.ImportPath + "/" + file, line: 1 + strings.Count(text[:e.from], "\n")}}
	m.drawn.column = e.from - strings.LastIndexByte(text[:e.from], '\n')
	m.change = map[string][]hunk{path.Join(s.Room, file): {{line: line, old: strings.Split(text[from:to], "\n"), new: strings.Split(after, "\n")}}}
	sum := sha256.Sum256([]byte(text[from:to] + "\x00" + after))
	m.digest = hex.EncodeToString(sum[:8])
	was := flat(text[e.whole[0]:e.whole[1]])
	if becomes := flat(text[e.whole[0]:e.from] + e.with + text[e.to:e.whole[1]]); becomes != "" {
		m.Title = fmt.Sprintf("%s:%d: %s becomes %s", file, m.drawn.line, shorten(was), shorten(becomes))
	} else {
		m.Title = fmt.Sprintf("%s:%d: without %s", file, m.drawn.line, shorten(was))
	}
	return m
}

// flat returns code on one line.
func flat(code string) string { return strings.Join(strings.Fields(code), " ") }

// compiles reports whether the package is Go with a change of one of its files.
func (s *sketch) compiles(file string, m *mutant) bool {
	text, err := applyHunks(string(s.texts[file]), m.change[path.Join(s.Room, file)])
	if err != nil {
		return false
	}
	changed, err := parser.ParseFile(s.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := []*ast.File{changed}
	for name, f := range s.bare {
		if name != file {
			files = append(files, f)
		}
	}
	fine := true
	check := s.types
	check.Error = func(err error) {
		var e types.Error
		if !errors.As(err, &e) || s.fset.Position(e.Pos).Filename == file { // without bodies, the others do not use what they import
			fine = false
		}
	}
	_, _ = check.Check(s.ImportPath, s.fset, files, nil)
	return fine
}
