// Command manual renders the manual, which is docs/*.md and the pages beside them, to a site
// of HTML that needs neither a server nor a network: every file is in it, and its search runs
// in the browser.
//
//	go run ./internal/manual -out bin/docs
//
// docs/README.md is its table of contents: what is listed below its headings, and in which
// order, is what stands at the side of every page. The same sources give the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the repository")
	out := flag.String("out", "bin/docs", "directory of the site; what lies there is replaced")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	b, err := read(root)
	if err != nil {
		return err
	}
	files, err := b.render()
	if err != nil {
		return err
	}
	// A directory that something else was put into is not ours to empty.
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, searchFile)); err != nil {
			return fmt.Errorf("%s holds something else than a manual: name another directory with -out, or empty it", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	for _, f := range files {
		to := filepath.Join(out, f.name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %d pages, open it with a browser\n", filepath.Join(out, "index.html"), len(b.pages))
	return nil
}
