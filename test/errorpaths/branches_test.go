package main

import (
	"fmt"
	"testing"
)

const source = `package p

func f(n int) (int, error) {
	if err := g(); err != nil {
		return 0, fmt.Errorf("g: %w", err)
	}
	if n > 3 {
		return n, nil
	}
	switch n {
	case 1:
		return 0, errSmall
	case 2:
		n++
	}
	if n == 2 {
		return 0, &SpaceError{n}
	} else {
		n--
		return 0, wire.Malformed("n")
	}
}
`

// Of a file those branches are found that return an error, and of those the ones that were never executed.
func TestErrorBranches(t *testing.T) {
	list, err := errorBranches("p/p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	ran, err := readProfile("mode: set\np/p.go:4.32,6.3 1 0\np/p.go:11.9,12.21 1 0\np/p.go:11.9,12.21 1 1\np/p.go:16.12,18.3 1 1\np/p.go:18.8,21.3 2 0\n")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, b := range list {
		got += fmt.Sprintln(b.line, b.text, ran.at("p/p.go", b.first))
	}
	want := `4 if err := g(); err != nil { false
11 case 1: true
16 if n == 2 { true
18 } else { false
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := readProfile("mode: set\nnonsense\n"); err == nil {
		t.Error("a profile that is none was read")
	}
}
