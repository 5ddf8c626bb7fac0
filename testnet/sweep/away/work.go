package away

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/internal/atomicfile"
	"gridnode/testnet/sweep"
)

// ErrWork is wrapped by what is wrong with the directory that a sweep is to work in.
var ErrWork = errors.New("the directory of a sweep")

// programName is what the program is called where parts run.
const programName = "gridnode"

// manifest says what sweep a directory is of.
type manifest struct {
	Format  int       `json:"format"`
	Args    []string  `json:"args"`    // of the command, without those of a part
	Program string    `json:"program"` // SHA-256 of it
	Inputs  []Input   `json:"inputs"`  // that runs read
	Runs    []runName `json:"runs"`
}

type runName struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

// formatWork is the version of the form of the directory.
const formatWork = 1

// Input is a file that runs read.
type Input struct {
	Name string `json:"name"` // in the directory of a part
	From string `json:"-"`    // its path here
	Sum  string `json:"sum"`  // SHA-256 of it
}

// work is such a directory.
type work struct {
	dir string // absolute
	id  string
	manifest
}

// open makes the directory ready for a sweep, or finds that it is.
func open(dir string, m manifest, program string) (*work, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWork, err)
	}
	m.Format = formatWork
	if m.Program, err = sumOf(program); err != nil {
		return nil, err
	}
	for i := range m.Inputs {
		if m.Inputs[i].Sum, err = sumOf(m.Inputs[i].From); err != nil {
			return nil, err
		}
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	w := &work{dir: dir, id: hex.EncodeToString(sum[:6]), manifest: m}
	for _, name := range []string{"in", "parts", "jobs", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("%w cannot be written to: %w", ErrWork, err)
		}
	}
	before, err := os.ReadFile(filepath.Join(dir, "sweep.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w, w.fill(program, text)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrWork, err)
	}
	probe, err := os.CreateTemp(filepath.Join(dir, "parts"), ".new-*")
	if err != nil {
		return nil, fmt.Errorf("%w cannot be written to: %w", ErrWork, err)
	}
	_, _ = probe.Close(), os.Remove(probe.Name())
	return w, w.compare(before)
}

// compare returns how another sweep's manifest differs from this one's, if it does.
func (w *work) compare(text []byte) error {
	var other manifest
	err := json.Unmarshal(text, &other)
	const instead = "name another one, or remove it"
	switch {
	case err != nil:
		return fmt.Errorf("%w, %s, has a sweep.json that is none: %w; %s", ErrWork, w.dir, err, instead)
	case other.Format != w.Format:
		return fmt.Errorf("%w, %s, has parts of form %d, not %d: another version of gridnode has made them; %s", ErrWork, w.dir, other.Format, w.Format, instead)
	case !slices.Equal(other.Args, w.Args):
		return fmt.Errorf("%w, %s, has parts of 'gridnode %s', not of 'gridnode %s'; %s", ErrWork, w.dir, strings.Join(other.Args, " "), strings.Join(w.Args, " "), instead)
	case other.Program != w.Program:
		return fmt.Errorf("%w, %s, has parts that another build of gridnode has made; %s", ErrWork, w.dir, instead)
	}
	for i := range w.Inputs {
		if at := slices.IndexFunc(other.Inputs, func(in Input) bool { return in.Name == w.Inputs[i].Name }); at < 0 || other.Inputs[at].Sum != w.Inputs[i].Sum {
			return fmt.Errorf("%w, %s, has parts that have read another %s; %s", ErrWork, w.dir, w.Inputs[i].From, instead)
		}
	}
	if len(other.Inputs) != len(w.Inputs) || !slices.Equal(other.Runs, w.Runs) {
		return fmt.Errorf("%w, %s, has parts of other runs; %s", ErrWork, w.dir, instead)
	}
	return nil
}

// fill brings the program and the inputs into the directory, and then says that it is of this
// sweep.
func (w *work) fill(program string, manifest []byte) error {
	for _, in := range append([]Input{{Name: programName, From: program}}, w.Inputs...) {
		to := w.path("in", in.Name)
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			err = bring(in.From, to)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrWork, err)
		}
	}
	if err := os.Chmod(w.path("in", programName), 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrWork, err)
	}
	if err := atomicfile.Write(w.path("sweep.json"), manifest, 0o644); err != nil {
		return fmt.Errorf("%w: %w", ErrWork, err)
	}
	return nil
}

// bring copies a file.
func bring(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// sumOf returns the SHA-256 of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (w *work) path(names ...string) string {
	return filepath.Join(append([]string{w.dir}, names...)...)
}

// part returns a run as a part, and the file that it leaves.
func (w *work) part(run int) (Part, string) {
	return Part{run, len(w.Runs), w.id}, w.path("parts", fmt.Sprintf("%d.part", run))
}

// take takes what has come of a run, if that is here.
func (w *work) take(at int, run *sweep.Run) error {
	p, path := w.part(at)
	return p.Take(path, run)
}

// command returns a command line of sh that does a part, in the directory that has the program,
// as $INDEX of the environment says, and writes what comes of it to a file of that name in the
// directory to.
func (w *work) command(index, to string) []string {
	script := fmt.Sprintf(`exec "$@" --part "$%s/%d@%s" --part-out "%s$%s.part"`, index, len(w.Runs), w.id, to, index)
	return append([]string{"sh", "-c", script, "sh", "./" + programName}, w.Args...)
}
