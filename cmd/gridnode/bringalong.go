package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/node/api"
	"gridnode/node/content"
)

// luggage is what a job brings along and what of it is brought home.
type luggage struct {
	in      []string // PATH[=NAME]
	workdir string
	out     []string
	outDir  string

	sources []content.Source
	names   map[string]int // of sources
	stdin   string         // name of the job's standard input
	spooled []string       // temporary files
}

// stdinName is what a job's standard input is called among its files: nothing brings it home.
const stdinName = ".gridnode-stdin"

// outNone has nothing brought home.
const outNone = "none"

func (l *luggage) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&l.in, "in", nil, "bring `PATH[=NAME]` along: a file, a folder or a pattern; - is standard input; may be repeated")
	f.StringVar(&l.workdir, "workdir", "", "bring all of `DIR` along, but what its "+content.IgnoreFile+" names")
	f.StringArrayVar(&l.out, "out", nil, "bring home what matches `PATTERN` of the job's directory, or none (default: what is new or changed there); may be repeated")
	f.StringVar(&l.outDir, "out-dir", "", "bring it to `DIR` (default: the working directory)")
}

// given reports whether a job brings anything along.
func (l *luggage) given() bool { return len(l.in) > 0 || l.workdir != "" || len(l.sources) > 0 }

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

// pack finds all that is to be brought along. stdin is read if it is named.
func (l *luggage) pack(ctx context.Context, stdin io.Reader) error {
	if l.workdir != "" {
		if err := l.folder(ctx, l.workdir, "."); err != nil {
			return fmt.Errorf("--workdir: %w", err)
		}
	}
	for _, text := range l.in {
		if err := l.one(ctx, text, stdin); err != nil {
			return fmt.Errorf("--in %s: %w", text, err)
		}
	}
	if l.outDir != "" {
		dir, err := filepath.Abs(l.outDir)
		if err != nil {
			return fmt.Errorf("--out-dir: %w", err)
		}
		l.outDir = dir
	}
	for _, pattern := range l.out {
		if pattern == outNone {
			if len(l.out) > 1 {
				return errors.New("--out none: there are other patterns, too")
			}
			continue
		}
		if err := content.CheckPattern(pattern); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// one finds what one --in names.
func (l *luggage) one(ctx context.Context, text string, stdin io.Reader) error {
	from, name := text, ""
	if _, err := os.Lstat(text); err != nil {
		if i := strings.LastIndexByte(text, '='); i > 0 {
			from, name = text[:i], strings.TrimSuffix(text[i+1:], "/")
		}
	}
	if name != "" {
		if err := content.CheckName(name); err != nil {
			return err
		}
	}
	if from == "-" {
		if name == "" {
			name, l.stdin = stdinName, stdinName
		}
		_, err := l.spool(name, stdin)
		return err
	}
	if _, err := os.Stat(from); err == nil || !strings.ContainsAny(from, "*?[{") {
		if name == "" {
			name = nameOf(from)
		}
		return l.any(ctx, from, name)
	}
	found, err := doublestar.FilepathGlob(from)
	if err != nil {
		return fmt.Errorf("it is not a pattern: %w", err)
	}
	if len(found) == 0 {
		return errors.New("nothing here matches it")
	}
	for _, one := range found {
		at := nameOf(one)
		if name != "" {
			at = path.Join(name, filepath.Base(one))
		}
		if err := l.any(ctx, one, at); err != nil {
			return err
		}
	}
	return nil
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

// any enters a file or folder.
func (l *luggage) any(ctx context.Context, from, name string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file")
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return l.folder(ctx, from, name)
	}
	return l.path(from, name)
}

// path enters one file.
func (l *luggage) path(from, name string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is neither a file nor a folder")
	}
	if err := content.CheckName(name); err != nil {
		return err
	}
	file, err := os.Open(from) // whether it can be read is told now
	if err != nil {
		return err
	}
	file.Close()
	l.enter(content.Source{
		Entry: content.Entry{Name: name, Kind: content.File, Mode: info.Mode().Perm(), Size: info.Size(), Modified: info.ModTime().UnixNano()},
		Open:  func() (*os.File, error) { return os.Open(from) },
	})
	return nil
}

// enter adds an entry, and the folders that it lies in. What comes later counts.
func (l *luggage) enter(s content.Source) {
	if l.names == nil {
		l.names = make(map[string]int)
	}
	if dir := path.Dir(s.Name); dir != "." {
		if at, there := l.names[dir]; !there || l.sources[at].Kind != content.Folder {
			l.enter(content.Source{Entry: content.Entry{Name: dir, Kind: content.Folder, Mode: 0o755}})
		}
	}
	if at, there := l.names[s.Name]; there {
		l.sources[at] = s
		return
	}
	l.names[s.Name] = len(l.sources)
	l.sources = append(l.sources, s)
}

// folder enters all of a folder.
func (l *luggage) folder(ctx context.Context, from, name string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	w := &content.Wanted{Strict: true, Limits: content.Limits{Entries: content.EntriesMax, Size: content.SizeMax}}
	file, err := root.Open(content.IgnoreFile)
	if err == nil {
		w.Ignore, err = content.ReadIgnore(file)
		file.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	found, _, _, err := content.Scan(ctx, root, w)
	if err != nil {
		return err
	}
	if name != "." {
		l.enter(content.Source{Entry: content.Entry{Name: name, Kind: content.Folder, Mode: 0o755}})
	}
	for _, s := range found {
		s.Name = path.Join(name, s.Name)
		l.enter(s)
	}
	return nil
}

// missingAtOnce is how many chunks the daemon is asked about at a time.
const missingAtOnce = 20_000

// hand gives the daemon what it does not have of what the job brings along, and the job its
// name.
func (l *luggage) hand(cmd *cobra.Command, client *api.Client, spec *api.JobSpec) error {
	files := &api.JobFiles{Dir: l.outDir, Stdin: l.stdin}
	if slices.Equal(l.out, []string{outNone}) {
		files.Drop = true
	} else {
		files.Out = l.out
	}
	if len(l.sources) > 0 {
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

// tree hands over the files and returns the name of their tree.
func (l *luggage) tree(ctx context.Context, client *api.Client) (string, error) {
	tree, err := content.Build(ctx, l.sources)
	if err != nil {
		return "", err
	}
	encoded, _, err := tree.Encode()
	if err != nil {
		return "", err
	}
	index := content.NewIndex(tree, l.sources)
	digests := make([]string, len(tree.Chunks))
	for i := range tree.Chunks {
		digests[i] = tree.Chunks[i].Digest.String()
	}
	for some := range slices.Chunk(digests, missingAtOnce) {
		reply, err := client.MissingContent(ctx, some)
		if err != nil {
			return "", apiError(err)
		}
		for _, text := range slices.Compact(reply.Chunks) {
			d, err := content.ParseDigest(text)
			if err != nil {
				return "", err
			}
			b, err := index.Chunk(d)
			if err != nil {
				return "", err
			}
			if _, err := client.PutContent(ctx, b); err != nil {
				return "", apiError(err)
			}
		}
	}
	reply, err := client.PutTree(ctx, encoded)
	if err != nil {
		return "", apiError(err)
	}
	return reply.Tree, nil
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
		text = fmt.Sprintf("%s (%s) brought to %s", plural(r.Count, "file"), formatSize(r.Size), r.Dir)
	case r.State == "kept":
		text = fmt.Sprintf("%s (%s): 'gridnode get %s' brings them here", plural(r.Count, "file"), formatSize(r.Size), shortID(r.ID))
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
