package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// What every page is laid out with.
var (
	//go:embed page.html
	layoutText string
	//go:embed manual.css
	style []byte
	//go:embed manual.js
	script []byte

	layout = template.Must(template.New("page").Parse(layoutText))
)

// searchFile has what is searched. It is a script and no JSON, as a page that was opened from
// a disk may load scripts, and nothing else.
const searchFile = "search.js"

// file is one file of the site.
type file struct {
	name string // with slashes, below the site
	text []byte
}

// render returns all files of the site.
func (b *book) render() ([]file, error) {
	found, err := b.index()
	if err != nil {
		return nil, err
	}
	files := []file{{"manual.css", style}, {"manual.js", script}, {searchFile, found}}
	for i, p := range b.pages {
		text, err := b.layOut(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
		files = append(files, file{b.output(p.source), text})
	}
	for source := range b.files {
		text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(source)))
		if err != nil {
			return nil, err
		}
		files = append(files, file{b.output(source), text})
	}
	slices.SortFunc(files, func(x, y file) int { return strings.Compare(x.name, y.name) })
	return files, nil
}

// view is what the layout shows.
type view struct {
	Title    string
	Kind     string
	Up       string // from the page to the top of the site: "", "../"
	Body     template.HTML
	Chapters []chapter
	Headings []entry
	Before   *entry
	After    *entry
}

// chapter is a kind of pages, and those pages.
type chapter struct {
	Title string
	Pages []entry
}

// entry is a line of a list of links.
type entry struct {
	Title, To string
	Here      bool
	Level     int
}

func (b *book) layOut(i int) ([]byte, error) {
	p := b.pages[i]
	name := b.output(p.source)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.doc); err != nil {
		return nil, err
	}
	v := view{Title: p.title, Kind: p.kind, Up: relative(name, ""), Body: template.HTML(body.String())} //nolint:gosec // what we have rendered
	var listed []*page
	for _, q := range b.pages {
		if q.kind == "" {
			continue
		}
		listed = append(listed, q)
		if n := len(v.Chapters); n == 0 || v.Chapters[n-1].Title != q.kind {
			v.Chapters = append(v.Chapters, chapter{Title: q.kind})
		}
		c := &v.Chapters[len(v.Chapters)-1]
		c.Pages = append(c.Pages, entry{Title: q.name, To: relative(name, b.output(q.source)), Here: p == q})
	}
	for _, part := range p.parts {
		if part.level == 2 || part.level == 3 {
			v.Headings = append(v.Headings, entry{Title: part.title, To: "#" + part.id, Level: part.level})
		}
	}
	if at := slices.Index(listed, p); at >= 0 {
		beside := func(at int) *entry {
			if at < 0 || at >= len(listed) {
				return nil
			}
			return &entry{Title: listed[at].name, To: relative(name, b.output(listed[at].source))}
		}
		v.Before, v.After = beside(at-1), beside(at+1)
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// index returns the script with what is searched: of each part of each page where it is, what
// it is called, and its words.
func (b *book) index() ([]byte, error) {
	var list [][4]string // address, page, heading, words
	for _, p := range b.pages {
		for _, part := range p.parts {
			to := b.output(p.source)
			if part.id != "" {
				to += "#" + part.id
			}
			list = append(list, [4]string{to, p.title, part.title, part.words})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "// Written by internal/manual: address, page, heading and words of each part.\nconst parts = %s;\n", text), nil
}

// blocks renders code: whoever uses the keyboard can come to it and scroll it, and what says
// in its first line how it is tried is not told to readers.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
	r.Register(ast.KindHeading, heading)
}

func code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(f.Language(source))
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		text := string(line.Value(source))
		// What is typed stands out from what is answered.
		if prompt, command, found := strings.Cut(text, "$ "); language == "console" && found && !strings.ContainsAny(prompt, " \t") {
			_, _ = fmt.Fprintf(w, `<span class="prompt">%s$ </span><b>%s</b>`+"\n", escape(prompt), escape(strings.TrimSuffix(command, "\n")))
			continue
		}
		if more, found := strings.CutPrefix(text, "> "); language == "console" && found {
			_, _ = fmt.Fprintf(w, `<span class="prompt">&gt; </span><b>%s</b>`+"\n", escape(strings.TrimSuffix(more, "\n")))
			continue
		}
		_, _ = w.WriteString(escape(text))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// heading renders a heading with a link to itself.
func heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h, ok := n.(*ast.Heading)
	if !ok {
		return ast.WalkContinue, nil
	}
	if entering {
		_, _ = fmt.Fprintf(w, "<h%d", h.Level)
		html.RenderAttributes(w, n, html.HeadingAttributeFilter)
		_ = w.WriteByte('>')
		return ast.WalkContinue, nil
	}
	if id, found := n.AttributeString("id"); found && h.Level > 1 {
		if anchor, ok := id.([]byte); ok {
			_, _ = fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to this heading">#</a>`, escape(string(anchor)))
		}
	}
	_, _ = fmt.Fprintf(w, "</h%d>\n", h.Level)
	return ast.WalkContinue, nil
}

func escape(text string) string { return template.HTMLEscapeString(text) }
