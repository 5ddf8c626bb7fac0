package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/node/api"
)

// luggage is what a job brings along and what of it is brought home.
type luggage struct {
	in      []string // PATH[=NAME]
	workdir string
	out     []string
	outDir  string

	cargo
	names   map[string]int // of what is brought along, to where it stands in the cargo
	stdin   string         // name of the job's standard input
	spooled []string       // temporary files
}

// stdinName is what a job's standard input is called among its files: nothing brings it home.
const stdinName = ".gridnode-stdin"

// ignoreFile names what of a folder is not brought along.
const ignoreFile = ".gridnodeignore"

// outNone has nothing brought home.
const outNone = "none"

func (l *luggage) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&l.in, "in", nil, "bring `PATH[=NAME]` along: a file, a folder or a pattern; - is standard input; may be repeated")
	f.StringVar(&l.workdir, "workdir", "", "bring all of `DIR` along, but what its "+ignoreFile+" names")
	f.StringArrayVar(&l.out, "out", nil, "bring home what matches `PATTERN` of the job's directory, or none (default: what is new or changed there); may be repeated")
	f.StringVar(&l.outDir, "out-dir", "", "bring it to `DIR` (default: the working directory)")
}

// given reports whether a job brings anything along.
func (l *luggage) given() bool { return len(l.in) > 0 || l.workdir != "" || len(l.names) > 0 }

// apart reports whether the job runs in a directory of its own, wherever it does.
func (l *luggage) apart() bool {
	return l.given() || l.outDir != "" || len(l.out) > 0 && !slices.Equal(l.out, []string{outNone})
}

// close removes what was spooled.
func (l *luggage) close() {
	for _, name := range l.spooled {
		_ = os.Remove(name)
	}
}

// script returns the command line that runs a script: as an argument of its interpreter if it
// is short and brings nothing along, so that it runs in the working directory at home; else as
// a file of the job's directory.
func (l *luggage) script(s *script, args []string) ([]string, error) {
	if !l.apart() && len(s.text) <= scriptMax {
		if line, err := s.command(args); err == nil {
			return line, nil
		}
	}
	name, err := l.spool(s.name(), strings.NewReader(s.text))
	if err != nil {
		return nil, err
	}
	return slices.Concat(s.interpreter, []string{"./" + name}, args), nil
}

// program brings a program along that is a file here, if files are brought at all, and returns
// the command line that runs it.
func (l *luggage) program(line []string) ([]string, error) {
	if !l.given() || !strings.Contains(line[0], "/") || filepath.IsAbs(line[0]) {
		return line, nil
	}
	info, err := os.Stat(line[0])
	if err != nil || !info.Mode().IsRegular() {
		return line, nil
	}
	name := nameOf(line[0])
	if err := l.path(line[0], name); err != nil {
		return nil, err
	}
	return append([]string{"./" + name}, line[1:]...), nil
}

// spool keeps what is read as a file that is brought along.
func (l *luggage) spool(name string, r io.Reader) (string, error) {
	if clientOnly {
		return "", errWhole
	}
	file, err := os.CreateTemp("", "gridnode-*")
	if err != nil {
		return "", err
	}
	defer file.Close()
	l.spooled = append(l.spooled, file.Name())
	if _, err := io.Copy(file, r); err != nil {
		return "", err
	}
	if err := file.Chmod(0o700); err != nil {
		return "", err
	}
	return name, l.path(file.Name(), name)
}

// nameOf is what a file is called where the job runs: its path if that leads down from the
// current directory, else the end of it.
func nameOf(from string) string {
	clean := filepath.Clean(from)
	if filepath.IsLocal(clean) && clean != "." {
		return filepath.ToSlash(clean)
	}
	if full, err := filepath.Abs(clean); err == nil {
		clean = full
	}
	return filepath.Base(clean)
}

// hand gives the daemon what it does not have of what the job brings along, and the job its
// name.
func (l *luggage) hand(cmd *cobra.Command, client *api.Client, spec *api.JobSpec) error {
	files := &api.JobFiles{Dir: l.outDir, Stdin: l.stdin}
	if slices.Equal(l.out, []string{outNone}) {
		files.Drop = true
	} else {
		files.Out = l.out
	}
	if len(l.names) > 0 {
		tree, err := l.tree(cmd.Context(), client)
		if err != nil {
			return err
		}
		files.Tree = tree
	}
	if files.Tree != "" || files.Dir != "" || files.Drop || len(files.Out) > 0 {
		spec.Files = files
	}
	return nil
}

// settle waits until what jobs have left is home, and says so.
func (l *luggage) settle(cmd *cobra.Command, client *api.Client, jobs []api.Job, quiet bool) error {
	var failed error
	for i := range jobs {
		j := &jobs[i]
		if j.Start == j.End || j.State == "refused" {
			continue
		}
		reply, err := client.JobFiles(cmd.Context(), j.ID, true)
		if err != nil {
			return apiError(err)
		}
		text := filesText(reply)
		switch {
		case reply.State == "failed":
			failed = failf(exitFailed, "the files of job %s: %s; 'gridnode get %s' brings them elsewhere", shortID(j.ID), reply.Why, shortID(j.ID))
		case text != "" && !quiet:
			fmt.Fprintln(cmd.ErrOrStderr(), text)
		}
	}
	return failed
}

// filesText says what has become of the files that a job has left; empty if there are none.
func filesText(r *api.JobFilesReply) string {
	text := ""
	switch {
	case r.State == "brought" && r.Count > 0:
		text = fmt.Sprintf("%s (%s) brought to %s", plural(r.Count, "file"), bytesText(r.Size), r.Dir)
	case r.State == "kept":
		text = fmt.Sprintf("%s (%s): 'gridnode get %s' brings them here", plural(r.Count, "file"), bytesText(r.Size), shortID(r.ID))
	case r.State == "failed":
		text = "failed: " + r.Why
	}
	if r.Left > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s left out: %s", plural(r.Left, "file"), r.Why)
	}
	return text
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
