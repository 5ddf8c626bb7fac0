package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// profile says how often what was executed, by file and block.
type profile map[string]map[block]int

// block is where a block of a profile begins and ends.
type block struct{ from, to place }

type place struct{ line, column int }

func (p place) before(q place) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// readProfile reads what go test -coverprofile writes: FILE:L.C,L.C STATEMENTS COUNT.
func readProfile(text string) (profile, error) {
	p := profile{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 { // mode
			continue
		}
		var b block
		var statements, count int
		file, rest, ok := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &count); !ok || err != nil {
			return nil, fmt.Errorf("line %d: %q is no block", i+1, line)
		}
		if p[file] == nil {
			p[file] = map[block]int{}
		}
		p[file][b] += count // each test binary has its own line
	}
	return p, nil
}

func (p profile) files() []string { return slices.Sorted(maps.Keys(p)) }

// at reports whether what stands at a place of a file was executed.
func (p profile) at(file string, at place) bool {
	for b, count := range p[file] {
		if count > 0 && !at.before(b.from) && at.before(b.to) {
			return true
		}
	}
	return false
}

// branch is one that returns an error.
type branch struct {
	first place // its first statement
	line  int
	text  string // what leads there
}

// errorBranches returns the branches of a file that end with the return of an error.
func errorBranches(name string, source []byte) (list []branch, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(source), "\n")
	add := func(at token.Pos, body []ast.Stmt) {
		if len(body) == 0 {
			return
		}
		last, ok := body[len(body)-1].(*ast.ReturnStmt)
		if !ok || !slices.ContainsFunc(last.Results, isError) {
			return
		}
		first, line := set.Position(body[0].Pos()), set.Position(at).Line
		list = append(list, branch{place{first.Line, first.Column}, line, strings.TrimSpace(lines[line-1])})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			add(n.Pos(), n.Body.List)
			if other, ok := n.Else.(*ast.BlockStmt); ok {
				add(other.Pos(), other.List)
			}
		case *ast.CaseClause:
			add(n.Pos(), n.Body)
		}
		return true
	})
	return list, nil
}

// makers are functions that make errors, by their names.
var makers = []string{"Errorf", "Malformed", "malformed", "Join", "New"}

// isError tells by its form whether what is returned is an error.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err" || isSentinel(e.Name)
	case *ast.SelectorExpr:
		return isSentinel(e.Sel.Name)
	case *ast.UnaryExpr: // &SpaceError{…}
		c, ok := e.X.(*ast.CompositeLit)
		if !ok {
			return false
		}
		name, ok := c.Type.(*ast.Ident)
		return ok && strings.HasSuffix(name.Name, "Error")
	case *ast.CallExpr:
		switch f := e.Fun.(type) {
		case *ast.Ident:
			return slices.Contains(makers, f.Name)
		case *ast.SelectorExpr:
			pkg, ok := f.X.(*ast.Ident)
			return slices.Contains(makers, f.Sel.Name) && ok && (pkg.Name == "errors" || pkg.Name == "fmt" || pkg.Name == "wire")
		}
	}
	return false
}

// isSentinel tells ErrClosed and errClosed.
func isSentinel(name string) bool {
	for _, prefix := range []string{"Err", "err"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
			return true
		}
	}
	return false
}
