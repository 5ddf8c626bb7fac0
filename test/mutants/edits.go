package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// edit is a small change of a function's body, as an operator of mutation makes it.
type edit struct {
	function string // TYPE.METHOD or FUNCTION
	kind     string // the operator of mutation
	from, to int    // bytes of the file that are replaced, from 0
	with     string
	whole    [2]int // bytes of what is told to people: the expression or statement around it
}

// swaps are the operators that stand for each other, by kind of edit. One that orders has two edits: where it
// ends, and the other way round.
var swaps = []struct {
	kind     string
	from, to token.Token
	both     bool // and back
}{
	{"boundary", token.LSS, token.LEQ, true},
	{"boundary", token.GTR, token.GEQ, true},
	{"negation", token.LSS, token.GEQ, true},
	{"negation", token.GTR, token.LEQ, true},
	{"negation", token.EQL, token.NEQ, true},
	{"logic", token.LAND, token.LOR, true},
	{"arithmetic", token.ADD, token.SUB, true},
	{"arithmetic", token.MUL, token.QUO, true},
	{"arithmetic", token.REM, token.MUL, false},
	{"arithmetic", token.SHL, token.SHR, true},
	{"arithmetic", token.AND, token.OR, true},
	{"arithmetic", token.INC, token.DEC, true},
	{"arithmetic", token.ADD_ASSIGN, token.SUB_ASSIGN, true},
	{"arithmetic", token.MUL_ASSIGN, token.QUO_ASSIGN, true},
	{"arithmetic", token.AND_ASSIGN, token.OR_ASSIGN, true},
	{"loop", token.BREAK, token.CONTINUE, true},
}

// editor collects the edits of a file.
type editor struct {
	base     int // position of the file's first byte
	text     []byte
	info     *types.Info
	function string
	edits    []edit
}

// editsOf returns what may be changed in the bodies of a file's functions, in order. Not all of
// it compiles. What a panic says is left as it is.
func editsOf(fset *token.FileSet, file *ast.File, text []byte, info *types.Info) []edit {
	e := &editor{base: fset.File(file.Package).Base(), text: text, info: info}
	for _, d := range file.Decls {
		f, yes := d.(*ast.FuncDecl)
		if !yes || f.Body == nil {
			continue
		}
		e.function = f.Name.Name
		if f.Recv != nil {
			e.function = strings.Trim(types.ExprString(f.Recv.List[0].Type), "*") + "." + e.function
		}
		ast.Inspect(f.Body, e.visit)
	}
	return e.edits
}

// add adds an edit of what lies from one position to another, within a node.
func (e *editor) add(kind string, from, to token.Pos, with string, within ast.Node) {
	at := func(p token.Pos) int { return int(p) - e.base }
	e.edits = append(e.edits, edit{e.function, kind, at(from), at(to), with, [2]int{at(within.Pos()), at(within.End())}})
}

// swap adds the edits that put another operator in the place of one.
func (e *editor) swap(op token.Token, at token.Pos, within ast.Node) {
	for _, s := range swaps {
		to := s.to
		switch {
		case s.both && op == s.to:
			to = s.from
		case op != s.from:
			continue
		}
		e.add(s.kind, at, at+token.Pos(len(op.String())), to.String(), within)
	}
}

// negate adds the edit that turns a condition round; one that is made of comparisons has the
// edits of its operators.
func (e *editor) negate(kind string, x ast.Expr, within ast.Node) {
	if _, made := ast.Unparen(x).(*ast.BinaryExpr); !made {
		e.add(kind, x.Pos(), x.End(), "!("+e.source(x)+")", within)
	}
}

// source returns the text of a node.
func (e *editor) source(n ast.Node) string {
	return string(e.text[int(n.Pos())-e.base : int(n.End())-e.base])
}

// visit adds the edits of a node, and reports whether what is below it may have some.
func (e *editor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if t := e.info.Types[n]; t.Value == nil && (!isArithmetic(n.Op) || isBasic(t.Type, types.IsNumeric)) {
			e.swap(n.Op, n.OpPos, n)
		}
	case *ast.IncDecStmt:
		e.swap(n.Tok, n.TokPos, n)
	case *ast.AssignStmt:
		switch {
		case n.Tok == token.ASSIGN:
			e.add("removal", n.Pos(), n.End(), "", n)
		case n.Tok != token.DEFINE && isBasic(e.info.TypeOf(n.Lhs[0]), types.IsNumeric):
			e.swap(n.Tok, n.TokPos, n)
		}
	case *ast.ExprStmt:
		if !e.builtin(n.X, "panic") {
			e.add("removal", n.Pos(), n.End(), "", n)
		}
	case *ast.IfStmt:
		e.negate("condition", n.Cond, n.Cond)
	case *ast.BranchStmt:
		if n.Label == nil {
			e.swap(n.Tok, n.TokPos, n)
		}
	case *ast.CallExpr:
		switch {
		case e.builtin(n, "panic"):
			return false
		case e.builtin(n, "min"):
			e.add("bound", n.Fun.Pos(), n.Fun.End(), "max", n)
		case e.builtin(n, "max"):
			e.add("bound", n.Fun.Pos(), n.Fun.End(), "min", n)
		}
	case *ast.ReturnStmt:
		for _, x := range n.Results {
			e.result(x, n)
		}
	}
	return true
}

// result adds the edit that has a function return another value.
func (e *editor) result(x ast.Expr, within ast.Node) {
	t := e.info.Types[x]
	switch {
	case t.Type == nil || t.IsNil():
	case isBasic(t.Type, types.IsBoolean):
		e.negate("result", x, within)
	case isBasic(t.Type, types.IsNumeric):
		with := "0"
		if t.Value != nil && constant.Sign(t.Value) == 0 {
			with = "1"
		}
		e.add("result", x.Pos(), x.End(), with, within)
	case isBasic(t.Type, types.IsString):
		if t.Value == nil || constant.StringVal(t.Value) != "" {
			e.add("result", x.Pos(), x.End(), `""`, within)
		}
	default:
		switch t.Type.Underlying().(type) {
		case *types.Pointer, *types.Slice, *types.Map, *types.Interface, *types.Signature:
			e.add("result", x.Pos(), x.End(), "nil", within)
		}
	}
}

// builtin reports whether x calls a function of the language by that name.
func (e *editor) builtin(x ast.Expr, name string) bool {
	call, yes := ast.Unparen(x).(*ast.CallExpr)
	if !yes {
		return false
	}
	id, yes := call.Fun.(*ast.Ident)
	if !yes || id.Name != name {
		return false
	}
	_, yes = e.info.Uses[id].(*types.Builtin)
	return yes
}

// isArithmetic reports whether an operator's result has the type of what it is applied to: strings have + too.
func isArithmetic(op token.Token) bool { return op.Precedence() > token.EQL.Precedence() }

// isBasic reports whether a type is, or is made of, a basic one of that kind.
func isBasic(t types.Type, info types.BasicInfo) bool {
	if t == nil {
		return false
	}
	b, yes := t.Underlying().(*types.Basic)
	return yes && b.Info()&info != 0
}
