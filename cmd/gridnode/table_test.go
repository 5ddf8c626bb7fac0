package main

import (
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
