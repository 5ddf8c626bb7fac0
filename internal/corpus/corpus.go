// Package corpus reads what fuzz targets have found, which test/fuzz keeps: every run of their tests executes it
// again, and the next run of the fuzzer begins with it.
package corpus

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Path returns the file of what a fuzz target of a package has found, by the package's folder: an input a line,
// its values as those of a call in Go.
func Path(folder, target string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for root := folder; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "test", "fuzz", "corpus", strings.TrimPrefix(folder, root), target+".txt"), nil
		}
	}
	return "", fmt.Errorf("%s lies in no module", folder)
}

// Add adds to a fuzz target, before its call of Fuzz, what its runs have found.
func Add(f *testing.F) {
	f.Helper()
	path, err := Path(".", f.Name())
	if err != nil {
		f.Skip(err)
	}
	lines, err := Read(path)
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range lines {
		values, err := values(line)
		if err != nil {
			f.Fatalf("line %d of what %s has found: %v", i+1, f.Name(), err)
		}
		f.Add(values...)
	}
}

// Read returns the inputs of a file, none if there is no file.
func Read(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), err
}

// header is the first line of an input that Go's fuzzer has written. Each of the others is a value.
const header = "go test fuzz v1\n"

// Line returns the line of an input that Go's fuzzer has written to a file.
func Line(input []byte) (string, error) {
	text, ok := strings.CutPrefix(string(input), header)
	if !ok {
		return "", fmt.Errorf("an input begins with %.20q, want %q", input, header)
	}
	line := strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", ", ")
	_, err := values(line)
	return line, err
}

// values returns the values of a line.
func values(line string) (list []any, err error) {
	expression, err := parser.ParseExpr("f(" + line + ")")
	if err != nil {
		return nil, err
	}
	for _, argument := range expression.(*ast.CallExpr).Args {
		v, err := value(argument)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// value returns a value, which is a conversion of a literal.
func value(e ast.Expr) (any, error) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil, errors.New("a value is no conversion")
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return nil, errors.New("what is converted is no literal")
	}
	switch to := call.Fun.(type) {
	case *ast.ArrayType:
		text, err := strconv.Unquote(literal.Value)
		return []byte(text), err
	case *ast.Ident:
		switch {
		case to.Name == "string":
			return strconv.Unquote(literal.Value)
		case to.Name == "byte" && literal.Kind == token.CHAR:
			r, _, _, err := strconv.UnquoteChar(literal.Value[1:], '\'')
			return byte(r), err
		}
	}
	return nil, fmt.Errorf("%s is a value of a type that no fuzz target of the tree takes", literal.Value)
}
