package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// contents is the page that lists all others, by kind.
const contents = "docs/README.md"

// book is the manual before it is rendered.
type book struct {
	root  string
	pages []*page          // in the order of the table of contents, which comes first
	at    map[string]*page // by source
	files map[string]bool  // what is no page and linked to, below the root
}

// page is one source.
type page struct {
	source string // below the root of the repository, with slashes
	kind   string // the heading of the contents below which it is listed; empty: the contents
	title  string // its first heading
	name   string // what the contents call it
	text   []byte
	doc    ast.Node
	parts  []part
}

// part is what stands below one heading, for the search and for the list of headings.
type part struct {
	level int
	id    string // anchor
	title string
	words string // its text, without what is only layout
}

// markdown reads what the pages are written in: CommonMark, and tables.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))))

// read reads the table of contents and every page that it lists.
func read(root string) (*book, error) {
	b := &book{root: root, at: make(map[string]*page), files: make(map[string]bool)}
	if err := b.add(contents, ""); err != nil {
		return nil, err
	}
	list := b.pages[0]
	kind := ""
	err := ast.Walk(list.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				kind = plain(n, list.text)
			}
		case *ast.Link:
			source, _, _ := strings.Cut(string(n.Destination), "#")
			if kind == "" || !strings.HasSuffix(source, ".md") || strings.Contains(source, "://") {
				return ast.WalkContinue, nil
			}
			source = path.Join(path.Dir(contents), source)
			if b.at[source] != nil {
				return ast.WalkStop, fmt.Errorf("%s lists %s twice", contents, source)
			}
			if err := b.add(source, kind); err != nil {
				return ast.WalkStop, err
			}
			b.at[source].name = plain(n, list.text)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.figures(); err != nil {
		return nil, err
	}
	for _, p := range b.pages {
		if err := b.mend(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
		p.divide()
	}
	return b, nil
}

func (b *book) add(source, kind string) error {
	raw, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(source)))
	if err != nil {
		return fmt.Errorf("a page that %s lists: %w", contents, err)
	}
	p := &page{source: source, kind: kind, text: raw, title: path.Base(source)}
	p.doc = markdown.Parser().Parse(text.NewReader(raw), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{taken: make(map[string]bool)}))))
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			p.title = plain(h, raw)
			break
		}
	}
	b.pages, b.at[source] = append(b.pages, p), p
	return nil
}

// figures adds the pages that a command writes and lists in a table of its own, as part of
// the kind that their list belongs to.
func (b *book) figures() error {
	list := b.at["docs/figures/README.md"]
	if list == nil {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(b.root, "docs", "figures", "*.md"))
	if err != nil {
		return err
	}
	for _, name := range names {
		source := "docs/figures/" + filepath.Base(name)
		if b.at[source] == nil {
			if err := b.add(source, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// mend makes links between sources links between pages, and notes which other files are
// linked to.
func (b *book) mend(p *page) error {
	return ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var to *[]byte
		switch n := n.(type) {
		case *ast.Link:
			to = &n.Destination
		case *ast.Image:
			to = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		target, anchor, _ := strings.Cut(string(*to), "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			return ast.WalkContinue, nil
		}
		source := path.Join(path.Dir(p.source), target)
		if info, err := os.Stat(filepath.Join(b.root, filepath.FromSlash(source))); err != nil {
			return ast.WalkStop, fmt.Errorf("link to %s: %w", target, err)
		} else if info.IsDir() {
			return ast.WalkStop, fmt.Errorf("link to %s: it is a folder, link to a file of it", target)
		}
		name := b.output(source)
		if b.at[source] == nil {
			b.files[source] = true
		}
		*to = []byte(relative(b.output(p.source), name))
		if anchor != "" {
			*to = append(*to, "#"+anchor...)
		}
		return ast.WalkContinue, nil
	})
}

// output returns what a source is called in the site: pages of docs lie at its top, other
// files of the repository in the folder files. A text gets a name that browsers show.
func (b *book) output(source string) string {
	inDocs := strings.TrimPrefix(source, "docs/")
	switch {
	case source == contents:
		return "index.html"
	case b.at[source] != nil && inDocs != source:
		return strings.TrimSuffix(inDocs, ".md") + ".html"
	case b.at[source] != nil:
		return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(source, ".md"), "/", "-")) + ".html"
	case inDocs != source:
		return inDocs
	case shown[path.Ext(source)]:
		return "files/" + source
	default:
		return "files/" + source + ".txt"
	}
}

// shown are endings of files that every browser shows.
var shown = map[string]bool{".png": true, ".svg": true, ".txt": true, ".json": true}

// relative returns how a file of the site names another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// divide finds the headings of the page and the words below each.
func (p *page) divide() {
	p.parts = nil
	current := part{level: 1, title: p.title}
	done := func() {
		current.words = strings.Join(strings.Fields(current.words), " ")
		p.parts = append(p.parts, current)
	}
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			current.words += " " + plain(n, p.text)
			continue
		}
		if h.Level > 1 {
			done()
			id, _ := h.AttributeString("id")
			anchor, _ := id.([]byte)
			current = part{level: h.Level, id: string(anchor), title: plain(h, p.text)}
		}
	}
	done()
}

// plain returns what a reader sees of a node, without its layout.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeBlock && !entering {
			b.WriteByte(' ')
		}
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(util.UnescapePunctuations(n.Segment.Value(source)))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.WriteString(drawing.ReplaceAllString(string(line.Value(source)), " "))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// drawing is what lines of diagrams are made of: nobody searches for it.
var drawing = regexp.MustCompile(`[─-╿▀-▟]+|[-=+|_<>^/\\]{3,}`)

// anchors names headings as the places do where the sources are read, too, so that a link
// to a heading is right in both.
type anchors struct{ taken map[string]bool }

// notInAnchors is what the anchor of a heading leaves out.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), "")
	id = strings.ReplaceAll(id, " ", "-")
	unique := id
	for i := 1; a.taken[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", id, i)
	}
	a.taken[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.taken[string(value)] = true }
