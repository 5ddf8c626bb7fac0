package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPrintList(t *testing.T) {
	type row struct {
		Name string `json:"name"`
		Note string `json:"note"`
	}
	columns := []column[row]{
		{head: "NAME", text: func(r row) string { return r.Name[:1] }, full: func(r row) string { return r.Name }},
		{head: "NOTE", wide: true, text: func(r row) string { return r.Note }},
	}
	rows := []row{{"alpha", "x,\x1b[2Jy"}, {"beta", ""}}
	for _, tt := range []struct {
		listing listing
		rows    []row
		want    string
	}{
		{listing{format: formatTable}, rows, "NAME\na\nb\n"},
		{listing{format: formatWide}, rows, "NAME   NOTE\nalpha  x, [2Jy\nbeta   -\n"},
		{listing{formatWide, true}, rows, "alpha  x, [2Jy\nbeta   -\n"},
		{listing{format: formatCSV}, rows, "NAME,NOTE\nalpha,\"x,\x1b[2Jy\"\nbeta,\n"},
		{listing{format: formatName}, rows, "alpha\nbeta\n"},
		{listing{format: formatJSON}, rows[1:], "[\n  {\n    \"name\": \"beta\",\n    \"note\": \"\"\n  }\n]\n"},
		{listing{format: formatJSON}, nil, "[]\n"},
	} {
		var b strings.Builder
		if err := printList(&b, tt.listing, columns, tt.rows); err != nil {
			t.Fatal(err)
		}
		if b.String() != tt.want {
			t.Errorf("%s: got\n%q, want\n%q", tt.listing.format, b.String(), tt.want)
		}
	}
}

func TestGrowing(t *testing.T) {
	columns := []column[string]{
		{head: "A", text: func(s string) string { return s }},
		{head: "B", text: func(s string) string { return strings.ToUpper(s) }},
	}
	var b strings.Builder
	g := growing[string]{listing: listing{format: formatTable}, columns: columns}
	for _, row := range []string{"x", "long", "y"} {
		if err := g.print(&b, row); err != nil {
			t.Fatal(err)
		}
	}
	if want := "A  B\nx  X\nlong  LONG\ny     Y\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	g = growing[string]{listing: listing{format: formatCSV}, columns: columns}
	for _, row := range []string{"x", "y"} {
		if err := g.print(&b, row); err != nil {
			t.Fatal(err)
		}
	}
	if want := "A,B\nx,X\ny,Y\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// A roll prints what printList does, whose rows are all held; of a long table the columns may
// become wider.
func TestRoll(t *testing.T) {
	type row struct {
		Name string `json:"name"`
		Note string `json:"note"`
	}
	columns := []column[row]{
		{head: "NAME", text: func(r row) string { return r.Name }},
		{head: "NOTE", text: func(r row) string { return r.Note }},
	}
	for _, f := range []format{formatTable, formatWide, formatJSON, formatCSV, formatName} {
		for _, n := range []int{0, 1, 3, rollMax, rollMax + 2} {
			for _, noHeaders := range []bool{false, true} {
				var rows []row
				for i := range n {
					rows = append(rows, row{fmt.Sprint("job-", i%7, strings.Repeat("x", i%3)), "<a>, \"b\""})
				}
				l := listing{f, noHeaders}
				var got, want strings.Builder
				r := newRoll(&got, l, columns)
				for _, row := range rows {
					if err := r.print(row); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(r.close(true), printList(&want, l, columns, rows)); err != nil {
					t.Fatal(err)
				}
				if got.String() != want.String() {
					t.Errorf("%d rows as %s: got\n%.200q, want\n%.200q", n, f, got.String(), want.String())
				}
			}
		}
	}
}

// A list that breaks off does not look whole.
func TestRollCutShort(t *testing.T) {
	var b strings.Builder
	r := newRoll(&b, listing{format: formatJSON}, []column[int]{})
	if err := errors.Join(r.print(1), r.close(false)); err != nil || json.Valid([]byte(b.String())) {
		t.Errorf("%q, %v", &b, err)
	}
	b.Reset()
	if err := newRoll(&b, listing{format: formatJSON}, []column[int]{}).close(false); err != nil || b.String() != "" {
		t.Errorf("nothing has come: %q, %v", &b, err)
	}
}
