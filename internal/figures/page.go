package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// subject is one page.
type subject struct {
	name  string // of its file, and on the command line
	title string
	intro string // what the page is about
	takes string // how long it takes, roughly, on two cores
	parts []part
}

// part is what a subject is made of: a table, or all that a report has to say.
type part interface {
	// measure runs what the part needs and returns it as Markdown.
	measure(ctx context.Context, run runner) (string, error)
}

// written is the line by which a page is known as one of this command.
func written(name string) string {
	return fmt.Sprintf("<!-- Page %s, written by make figures. Do not edit. -->", name)
}

// page measures everything and returns the text of the page.
func (s *subject) page(ctx context.Context, run runner, at surroundings) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n# %s\n\n%s\n", written(s.name), s.title, wrap(s.intro, widthMax))
	b.WriteString(grid{
		{"measured", "with"},
		{"commit", at.commit},
		{"date", at.date.Format("2006-01-02 15:04 UTC")},
		{"machine", fmt.Sprintf("%d cores of %s, %s, %s", at.cores, at.cpu, at.memory, at.system)},
		{"Go", at.golang},
		{"seed", "1, unless a command says otherwise"},
		{"page written by", "`make figures SUBJECT=" + s.name + "`"},
	}.markdown())
	for _, p := range s.parts {
		text, err := p.measure(ctx, run)
		if err != nil {
			return "", err
		}
		b.WriteString("\n" + text)
	}
	return b.String(), nil
}

// section writes a table with its title, its explanation and its commands.
func section(title, text string, table string, commands []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", title)
	if text != "" {
		b.WriteString(wrap(text, widthMax) + "\n")
	}
	b.WriteString(table + "\n" + code(commands))
	return b.String()
}

// writeIndex writes the list of pages, with those that are not there yet.
func writeIndex(dir string, all []subject) error {
	var b strings.Builder
	b.WriteString(written("README") + "\n\n# Measured figures\n\n")
	b.WriteString(wrap("One page per subject. `make figures` writes all of them, `make figures SUBJECT=NAME` writes one. "+
		"`TRACES=DIRECTORY` names the logs that some of them need. Each page says on which machine and with which commands it was made. "+
		"The time in brackets is a rough one for two cores.", widthMax) + "\n")
	for _, s := range all {
		name := s.name
		if _, err := os.Stat(filepath.Join(dir, s.name+".md")); err == nil {
			name = fmt.Sprintf("[%s](%s.md)", s.name, s.name)
		}
		line := wrap(fmt.Sprintf("- %s: %s (%s)", name, s.title, s.takes), widthMax-2)
		b.WriteString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\n", "\n  ") + "\n")
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(b.String()), 0o644)
}
