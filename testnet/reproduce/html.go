package reproduce

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"sync"
)

//go:embed report.html
var reportHTML string

// page is made when it is asked for: every start of the program would pay for it.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"wanted":  func(r *Report) string { return r.wanted() },
		"verdict": func(c Claim) string { return c.verdict() },
		"svg":     func(p Plot) (template.HTML, error) { return p.SVG() },
		"keys":    func(p Plot) []Key { return p.Keys() },
		"lines":   func(m Measure) []line { return m.lines() },
		"label":   func(l line) string { return l.label },
		"kind":    func(l line) string { return l.kind },
		"cells":   func(l line) []string { return l.cells },
		"anchor":  func(i int) string { return fmt.Sprintf("e%d", i+1) },
		"percent": func(n Number) string { return Format(n, 1) + " %" },
		"seconds": func(n Number) string { return Format(n, 1) },
		"count":   func(n int64) string { return Format(Number(n), 0) },
	}).Parse(reportHTML))

	// writeHTML writes the report as one page that refers to nothing outside itself.
})

func (r *Report) writeHTML(w io.Writer) error { return page().Execute(w, r) }
