package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// place is where the change of a sample is.
type place struct {
	file         string // path of the package and name of the file, as profiles of coverage have it
	line, column int    // from 1
}

// coverage is what the tests of a package execute of it.
type coverage struct {
	blocks    []block
	processor time.Duration // that they take
}

// block is statements that are executed one after the other.
type block struct {
	file     string
	from, to [2]int // line and column
	executed bool
}

// reaches reports whether tests may execute a place. What lies in no block, as the conditions of
// cases, may be.
func (c *coverage) reaches(p *place) bool {
	inside := false
	at := [2]int{p.line, p.column}
	for _, b := range c.blocks {
		if b.file == p.file && !before(at, b.from) && before(at, b.to) {
			if inside = true; b.executed {
				return true
			}
		}
	}
	return !inside
}

// before reports whether a line and column lie before others.
func before(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// cover runs the tests of a package without any bug, once, and says what they execute.
func (g *garden) cover(ctx context.Context, room string) (*coverage, error) {
	g.share.Lock()
	defer g.share.Unlock()
	if c := g.covers[room]; c != nil {
		return c, nil
	}
	name := filepath.Join(g.dir, strings.ReplaceAll(room, "/", "-"))
	build := g.tidy(ctx, "go", "test", "-c", "-cover", "-vet=off", "-o", name+".cover", "./"+room)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c -cover ./%s: %w\n%s", room, err, out)
	}
	run := g.tidy(ctx, name+".cover", "-test.coverprofile", name+".profile", "-test.paniconexit0", "-test.timeout", g.patience.String())
	run.Dir = filepath.Join(g.root, filepath.FromSlash(room))
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests of %s fail without the bug, too: %w\n%s", room, err, out)
	}
	text, err := os.ReadFile(name + ".profile")
	if err != nil {
		return nil, err
	}
	c := &coverage{processor: run.ProcessState.UserTime() + run.ProcessState.SystemTime()}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(line, ":")
		b := block{file: file}
		var statements, times int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from[0], &b.from[1], &b.to[0], &b.to[1], &statements, &times); n == 6 {
			b.executed = times > 0
			c.blocks = append(c.blocks, b)
		}
	}
	if g.covers == nil {
		g.covers = map[string]*coverage{}
	}
	g.covers[room] = c
	return c, nil
}
