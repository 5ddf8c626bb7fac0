// Command dist builds what is handed out: static binaries for each architecture, their
// parts list and licences, and packages for Debian, Red Hat and Alpine.
//
//	go run ./internal/dist -out dist -version 1.2.3 -nfpm bin/nfpm
//
// The same commit gives the same bytes, wherever and whenever it is built: paths are
// trimmed, and every date is that of the commit. Packages are written by nfpm, from a tree
// of files that lies in the output directory until all is done.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dist is one run.
type dist struct {
	root, out string // directories, absolute
	nfpm      string // program; empty: no packages
	version   string // as semver has it, without v
	revision  string // of git
	modified  bool   // the tree has changes that are in no revision
	date      time.Time
	archs     []string
	formats   []string // of packages, by nfpm's names
	built     string   // the client, beside which the whole program lies; empty: they are built
}

func main() {
	var d dist
	var archs, formats string
	flag.StringVar(&d.root, "root", ".", "the repository")
	flag.StringVar(&d.out, "out", "dist", "directory of the results")
	flag.StringVar(&d.version, "version", "", "version, as semver has it; empty: 0.1.0-preN, N being how many commits there are")
	flag.StringVar(&d.nfpm, "nfpm", "", "the program nfpm; empty: no packages")
	flag.StringVar(&archs, "archs", "amd64,arm64", "architectures, as Go calls them")
	flag.StringVar(&formats, "formats", "deb,rpm,apk", "kinds of packages, as nfpm calls them")
	flag.StringVar(&d.built, "built", "", "to try packages only: a client that is packed as it is, as is the whole program beside it, whose name ends in d")
	flag.Parse()
	d.archs, d.formats = strings.Split(archs, ","), strings.Split(formats, ",")
	if err := d.run(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func (d *dist) run() error {
	if err := d.learn(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return err
	}
	pages, err := d.manual()
	if err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	defer os.RemoveAll(pages)
	site, err := d.site(filepath.Join(pages, siteFolder))
	if err != nil {
		return fmt.Errorf("pack the manual: %w", err)
	}
	made := []string{site}
	for _, arch := range d.archs {
		files, err := d.architecture(arch, pages)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		made = append(made, files...)
	}
	return d.sums(made)
}

// learn finds out what is built.
func (d *dist) learn() (err error) {
	for _, path := range []*string{&d.root, &d.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if d.nfpm != "" {
		if d.nfpm, err = filepath.Abs(d.nfpm); err != nil {
			return err
		}
	}
	said, err := d.git("log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	revision, seconds, _ := strings.Cut(said, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("date of %s: %w", revision, err)
	}
	d.revision, d.date = revision, time.Unix(at, 0).UTC()
	changes, err := d.git("status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	d.modified = changes != ""
	if d.version == "" {
		count, err := d.git("rev-list", "--count", "HEAD")
		if err != nil {
			return err
		}
		d.version = "0.1.0-pre" + count
	}
	return nil
}

// architecture makes all for one architecture and returns the names of the files.
func (d *dist) architecture(arch, pages string) ([]string, error) {
	name := fmt.Sprintf("gridnode_%s_linux_%s", d.version, arch)
	binary := filepath.Join(d.out, name)
	client := filepath.Join(d.out, "gridnode-client"+strings.TrimPrefix(name, "gridnode"))
	err := d.take(binary, client)
	if d.built == "" {
		err = errors.Join(d.build(binary, arch, ""), d.build(client, arch, "client"))
	}
	if err != nil {
		return nil, err
	}
	parts, err := d.parts(binary)
	if err != nil {
		return nil, fmt.Errorf("parts list: %w", err)
	}
	bom, err := parts.bom(d)
	if err != nil {
		return nil, fmt.Errorf("parts list: %w", err)
	}
	texts, err := parts.notices()
	if err != nil {
		return nil, fmt.Errorf("licences: %w", err)
	}
	made := []string{name, filepath.Base(client), name + ".cdx.json", name + ".licences.txt"}
	err = errors.Join(os.WriteFile(binary+".cdx.json", bom, 0o644), os.WriteFile(binary+".licences.txt", texts, 0o644))
	if err != nil || d.nfpm == "" {
		return made, err
	}
	packages, err := d.packages(arch, binary, client, pages)
	return append(made, packages...), err
}

// take takes the programs that were built already, if there are any.
func (d *dist) take(binary, client string) error {
	if d.built == "" {
		return nil
	}
	for to, from := range map[string]string{binary: d.built + "d", client: d.built} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// build builds the program, static and stripped: with the tag client, the part that users call.
func (d *dist) build(binary, arch, tags string) error {
	variables := fmt.Sprintf("-X main.version=%s -X main.revision=%s -X main.modified=%t -X main.revised=%s", d.version, d.revision, d.modified, d.date.Format(time.RFC3339))
	cmd := d.command("go", "build", "-trimpath", "-buildvcs=false", "-tags="+tags, "-ldflags=-s -w -buildid= "+variables, "-o", binary, "./cmd/gridnode")
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	return run(cmd)
}

// siteFolder is where in that directory the manual lies that is read in a browser.
const siteFolder = "html"

// manual writes the manual's pages, its site and the completions into a directory of its own.
func (d *dist) manual() (string, error) {
	dir, err := os.MkdirTemp(d.out, "manual")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "gridnode")
	steps := [][]string{{"go", "run", "./internal/manual", "-out", filepath.Join(dir, siteFolder)}, {"go", "build", "-tags", "manpages", "-buildvcs=false", "-ldflags=-X main.version=" + d.version, "-o", program, "./cmd/gridnode"}, {program, "manpages", dir}}
	for _, words := range steps {
		cmd := d.command(words[0], words[1:]...)
		cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(d.date.Unix(), 10))
		if err := run(cmd); err != nil {
			return dir, err
		}
	}
	for _, shell := range shells {
		script, err := d.command(program, "completion", shell).Output()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, shell), script, 0o644)
		}
		if err != nil {
			return dir, fmt.Errorf("completion for %s: %w", shell, err)
		}
	}
	return dir, os.Remove(program)
}

// shells that completions are made for.
var shells = []string{"bash", "fish", "zsh"}

// git returns what git says about the repository.
func (d *dist) git(args ...string) (string, error) {
	out, err := d.command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// command returns a command in the repository.
func (d *dist) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = d.root
	cmd.Env = slices.Clone(os.Environ())
	return cmd
}

func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
