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
