package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// bed is bugs that are planted together: in one overlay, in which a changed function has, before
// its own body, that of each bug, for the case that the environment names the bug. So what has
// them is built once for all: to build it for each takes most of the time otherwise. (Untch et
// al. 1993 call it a schema of mutants.)
type bed struct {
	plot
	numbers map[string]int // by name, from 1
}

// planted is the variable of the environment that has the number of the bug.
const planted = "PLANTED_BUG" // daemons want no others that begin with GRIDNODE_

// plantedName is the file that declares what the functions of a package ask, plantedFile what is in it.
// It comes before all others: variables are set in the order of the files, and what sets one may ask.
const plantedName = "0_planted_bug.go"

const plantedFile = `package %s

import (
	"os"
	"strconv"
)

var plantedBug, _ = strconv.Atoi(os.Getenv("` + planted + `"))
`

// layBed plants those of the bugs together for which that can be done: whose functions differ in
// their bodies only. A package with which that does not build has its bugs left out.
func (g *garden) layBed(ctx context.Context, all []*mutant) (*bed, error) {
	left := slices.Clone(all)
	for {
		b, err := g.bedOf(left)
		if err != nil || b == nil {
			return nil, err
		}
		rooms := map[string]bool{}
		for _, m := range left {
			if b.numbers[m.Name] > 0 {
				for file := range m.change {
					rooms["./"+path.Dir(file)] = true
				}
			}
		}
		out, err := g.command(ctx, &b.plot, "go", append([]string{"build"}, slices.Sorted(maps.Keys(rooms))...)...).CombinedOutput()
		if err == nil || ctx.Err() != nil {
			return b, ctx.Err()
		}
		n := len(left)
		for line := range strings.Lines(string(out)) {
			if name, yes := strings.CutPrefix(strings.TrimSpace(line), "# "); yes {
				_, folder, _ := strings.Cut(name, "/") // behind the name of the module
				left = slices.DeleteFunc(left, func(m *mutant) bool { return m.touches(folder) })
				fmt.Fprintf(os.Stderr, "the bugs of %s are built one by one\n", folder)
			}
		}
		if len(left) == n {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
}

// touches reports whether the bug changes a file of a folder.
func (m *mutant) touches(folder string) bool {
	for file := range m.change {
		if path.Dir(file) == folder {
			return true
		}
	}
	return false
}

// bedOf writes the overlay; nil if there is nothing that could be in it.
func (g *garden) bedOf(all []*mutant) (*bed, error) {
	b := &bed{numbers: map[string]int{}}
	beds := map[string]*plantedText{}
	for _, m := range all {
		changed, err := m.apply(g.root)
		if err != nil {
			return nil, err
		}
		bodies := map[string]map[int]string{}
		for file, text := range changed {
			if beds[file] == nil {
				old, err := os.ReadFile(filepath.Join(g.root, filepath.FromSlash(file)))
				if err != nil {
					return nil, err
				}
				if beds[file], err = newPlantedText(old); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
			}
			if bodies[file] = beds[file].differ(text); bodies[file] == nil {
				bodies = nil
				break
			}
		}
		if bodies == nil {
			continue
		}
		number := len(b.numbers) + 1
		b.numbers[m.Name] = number
		for file, list := range bodies {
			for at, body := range list {
				beds[file].plant(number, at, body)
			}
		}
	}
	if len(b.numbers) == 0 {
		return nil, nil
	}
	dir := filepath.Join(g.dir, "bed")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	changed := map[string][]byte{}
	for file, t := range beds {
		if len(t.before) > 0 {
			changed[file] = t.text()
			changed[path.Join(path.Dir(file), plantedName)] = fmt.Appendf(nil, plantedFile, t.file.Name.Name)
		}
	}
	var err error
	b.overlay, err = writeOverlay(g.root, dir, changed)
	return b, err
}

// writeOverlay writes changed files below dir, and the list that go build wants of them.
func writeOverlay(root, dir string, changed map[string][]byte) (string, error) {
	list := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		list.Replace[filepath.Join(root, filepath.FromSlash(file))] = to
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "overlay.json")
	return to, os.WriteFile(to, text, 0o644)
}

// plantedText is a file, and what comes before the bodies of its functions.
type plantedText struct {
	old       []byte
	file      *ast.File
	functions []*ast.FuncDecl // that have a body, in order
	before    map[int]string
}

func newPlantedText(text []byte) (*plantedText, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	t := &plantedText{old: text, file: file, before: map[int]string{}}
	for _, d := range file.Decls {
		if f, yes := d.(*ast.FuncDecl); yes && f.Body != nil {
			t.functions = append(t.functions, f)
		}
	}
	return t, nil
}

// body returns what is between the braces of a function.
func (t *plantedText) body(at int) string {
	b := t.functions[at].Body
	return string(t.old[b.Lbrace : b.Rbrace-1]) // positions count from 1
}

// skeleton returns what is not between the braces of a function.
func (t *plantedText) skeleton() string {
	var s strings.Builder
	from := 0
	for _, f := range t.functions {
		s.Write(t.old[from:f.Body.Lbrace])
		from = int(f.Body.Rbrace) - 1
	}
	s.Write(t.old[from:])
	return s.String()
}

// differ returns the bodies of functions in which another text differs, by their place; nil if
// that is not all in which it does, or if one of them would mean something else within a block.
func (t *plantedText) differ(text []byte) map[int]string {
	o, err := newPlantedText(text)
	if err != nil || o.skeleton() != t.skeleton() {
		return nil
	}
	bodies := map[int]string{}
	for i, f := range o.functions {
		if o.body(i) == t.body(i) {
			continue
		}
		if !nests(f) {
			return nil
		}
		bodies[i] = o.body(i)
	}
	return bodies
}

// nests reports whether a function's body means the same within a block of it: it has no label,
// which the function would have twice, and declares no parameter or result anew, which would be
// another one there.
func nests(f *ast.FuncDecl) bool {
	names := map[string]bool{}
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				names[name.Name] = name.Name != "_"
			}
		}
	}
	fine := true
	for _, s := range f.Body.List {
		if a, yes := s.(*ast.AssignStmt); yes && a.Tok == token.DEFINE {
			for _, to := range a.Lhs {
				if id, yes := to.(*ast.Ident); yes && names[id.Name] {
					fine = false
				}
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, label := n.(*ast.LabeledStmt); label {
			fine = false
		}
		return fine
	})
	return fine
}

// plant puts the body of a bug before that of a function.
func (t *plantedText) plant(number, at int, body string) {
	end := "" // the body ends with a statement that ends the function
	if t.functions[at].Type.Results == nil {
		end = "return\n"
	}
	t.before[at] += fmt.Sprintf("\nif plantedBug == %d {%s\n%s}\n", number, body, end)
}

// text returns the file with all that is planted in it.
func (t *plantedText) text() []byte {
	var text []byte
	from := 0
	for i, f := range t.functions {
		text = append(text, t.old[from:f.Body.Lbrace]...)
		text = append(text, t.before[i]...)
		from = int(f.Body.Lbrace)
	}
	return append(text, t.old[from:]...)
}
