package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// format is how data is printed.
type format string

// Output formats of listings.
const (
	formatTable format = "table"
	formatWide  format = "wide" // every column, full IDs
	formatJSON  format = "json" // keys stable; spans in seconds, instants RFC 3339
	formatCSV   format = "csv"  // every column, with a heading
	formatName  format = "name" // the first column only
)

// column is one column of a listing of T.
type column[T any] struct {
	head string
	wide bool // left out of the plain table
	text func(T) string
	full func(T) string // instead of text in every other format; nil: the same
}

func (c *column[T]) cell(row T, f format) string {
	if f != formatTable && c.full != nil {
		return c.full(row)
	}
	return c.text(row)
}

// listing says how a list of T is printed.
type listing struct {
	format    format
	noHeaders bool
}

// addListingFlags gives cmd -o and --no-headers, with the formats of listings or
// those named.
func addListingFlags(cmd *cobra.Command, l *listing, formats ...format) {
	if formats == nil {
		formats = []format{formatTable, formatWide, formatJSON, formatCSV, formatName}
	}
	l.format = formats[0]
	cmd.Flags().VarP(&formatFlag{&l.format, formats}, "output", "o", "output format: "+joinFormats(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(strings.Split(joinFormats(formats, " "), " "), cobra.ShellCompDirectiveNoFileComp))
	if slices.Contains(formats, formatCSV) {
		cmd.Flags().BoolVar(&l.noHeaders, "no-headers", false, "leave out the line of column headings")
	}
}

// formatFlag is a flag that takes one of a few formats.
type formatFlag struct {
	value   *format
	allowed []format
}

func (f *formatFlag) String() string { return string(*f.value) }
func (f *formatFlag) Type() string   { return "FORMAT" }
func (f *formatFlag) Set(s string) error {
	if !slices.Contains(f.allowed, format(s)) {
		return fmt.Errorf("want %s", joinFormats(f.allowed, ", "))
	}
	*f.value = format(s)
	return nil
}

func joinFormats(formats []format, separator string) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, separator)
}

// printList writes rows in l's format. JSON prints the rows themselves.
func printList[T any](w io.Writer, l listing, columns []column[T], rows []T) error {
	switch l.format {
	case formatJSON:
		if rows == nil {
			rows = []T{} // an empty list is [] and never null
		}
		return printJSON(w, rows)
	case formatName:
		for _, row := range rows {
			if _, err := fmt.Fprintln(w, columns[0].cell(row, l.format)); err != nil {
				return err
			}
		}
		return nil
	case formatCSV:
		return printCSV(w, l, columns, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, record := range records(l, shownIn(l.format, columns), rows) {
		for i, cell := range record {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, cellText(cell))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// rollMax is how many rows of a table the widths of its columns are taken from. Those beyond
// are printed as they come.
const rollMax = 1000

// roll prints a list as printList does, row by row, without holding more than rollMax of them.
type roll[T any] struct {
	w    *bufio.Writer
	rows growing[T]
	csv  *csv.Writer
	held []T // rows of a table whose widths are not known yet; nil once they are
	n    int // rows that have come
}

func newRoll[T any](w io.Writer, l listing, columns []column[T]) *roll[T] {
	return &roll[T]{w: bufio.NewWriterSize(w, 64<<10), rows: growing[T]{listing: l, columns: columns}}
}

func (r *roll[T]) print(row T) error {
	r.n++
	switch r.rows.listing.format {
	case formatJSON:
		before := "[\n  "
		if r.n > 1 {
			before = ",\n  "
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("  ", "  ")
		if err := encoder.Encode(row); err != nil {
			return err
		}
		_, err := r.w.WriteString(before + strings.TrimSuffix(b.String(), "\n"))
		return err
	case formatCSV:
		return r.record(row)
	case formatName:
		return r.rows.print(r.w, row)
	}
	if r.n > rollMax {
		return errors.Join(r.flush(), r.rows.print(r.w, row))
	}
	r.held = append(r.held, row)
	return nil
}

// record writes a line of CSV.
func (r *roll[T]) record(rows ...T) error {
	if r.csv == nil {
		r.csv = csv.NewWriter(r.w)
	}
	for _, record := range records(r.rows.listing, r.rows.columns, rows) {
		if err := r.csv.Write(record); err != nil {
			return fmt.Errorf("write csv: %w", err)
		}
	}
	r.rows.listing.noHeaders = true
	return nil
}

// flush prints the rows of a table that are held.
func (r *roll[T]) flush() error {
	if r.held == nil {
		return nil
	}
	held := r.held
	r.held = nil
	return r.rows.printAll(r.w, held)
}

// close prints what is left, and the end of the list if it is whole.
func (r *roll[T]) close(whole bool) (err error) {
	if !whole && r.n == 0 {
		return nil
	}
	switch r.rows.listing.format {
	case formatJSON:
		end := "\n]\n"
		if r.n == 0 {
			end = "[]\n"
		}
		if whole {
			_, err = r.w.WriteString(end)
		}
	case formatCSV:
		if err = r.record(); err == nil { // the headings, if nothing has come
			r.csv.Flush()
			err = r.csv.Error()
		}
	case formatName:
	default:
		if r.n == 0 {
			err = r.rows.printAll(r.w, nil)
		}
		err = errors.Join(err, r.flush())
	}
	return errors.Join(err, r.w.Flush())
}

// growing prints the rows of a table one by one, as they come: each column is as wide
// as its widest cell so far.
type growing[T any] struct {
	listing listing
	columns []column[T]
	widths  []int
}

func (g *growing[T]) print(w io.Writer, row T) error {
	l := g.listing
	g.listing.noHeaders = true
	switch l.format {
	case formatJSON:
		return printJSON(w, row)
	case formatCSV, formatName:
		return printList(w, l, g.columns, []T{row})
	}
	return g.table(w, l, row)
}

// printAll prints rows of a table that came together: each column is as wide as its widest cell.
func (g *growing[T]) printAll(w io.Writer, rows []T) error {
	l := g.listing
	g.listing.noHeaders = true
	return g.table(w, l, rows...)
}

func (g *growing[T]) table(w io.Writer, l listing, rows ...T) error {
	if g.widths == nil {
		g.columns = shownIn(l.format, g.columns)
		g.widths = make([]int, len(g.columns))
	}
	lines := records(l, g.columns, rows)
	for _, record := range lines {
		for i, cell := range record {
			record[i] = cellText(cell)
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(record[i]))
		}
	}
	for _, record := range lines {
		var line strings.Builder
		for i, cell := range record {
			fmt.Fprintf(&line, "%-*s  ", g.widths[i], cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// shownIn returns the columns that a format shows.
func shownIn[T any](f format, columns []column[T]) []column[T] {
	if f != formatTable {
		return columns
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool { return c.wide })
}

func printCSV[T any](w io.Writer, l listing, columns []column[T], rows []T) error {
	cw := csv.NewWriter(w)
	if err := cw.WriteAll(records(l, columns, rows)); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func records[T any](l listing, columns []column[T], rows []T) [][]string {
	var out [][]string
	if !l.noHeaders {
		heads := make([]string, len(columns))
		for i, c := range columns {
			heads[i] = c.head
		}
		out = append(out, heads)
	}
	for _, row := range rows {
		record := make([]string, len(columns))
		for i, c := range columns {
			record[i] = c.cell(row, l.format)
		}
		out = append(out, record)
	}
	return out
}

// cellText keeps a table's lines and columns whole whatever a cell holds: names
// and reasons may come from another site.
func cellText(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// printJSON writes one indented JSON value and a newline.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
