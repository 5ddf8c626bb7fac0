//go:build !client

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

	"gridnode/node/api"
	"gridnode/node/content"
)

// cargo is the files that a job brings along.
type cargo struct{ sources []content.Source }

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

// handAtOnce is how many chunks the daemon is asked about at a time: so many are held while
// those before are handed over, and the next are read.
const handAtOnce = 8

// handed is a chunk that is on its way to the daemon.
type handed struct {
	digest content.Digest
	b      []byte
}

// fits returns an error if the files have more bytes than a job may bring along: what is sparse
// would be read for hours.
func (l *luggage) fits(ctx context.Context, client *api.Client) error {
	reply, err := client.MissingContent(ctx, []string{})
	if err != nil {
		return apiError(err)
	}
	var size int64
	for i := range l.sources {
		size += l.sources[i].Size
	}
	if reply.Most > 0 && size > reply.Most {
		return failf(exitRefused, "what it brings along has %s, and a job brings at most %s (files.job)", bytesText(size), bytesText(reply.Most))
	}
	return nil
}

// tree hands over the files and returns the name of their tree. Each is read once.
func (l *luggage) tree(ctx context.Context, client *api.Client) (string, error) {
	if err := l.fits(ctx, client); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	some := make(chan []handed)
	failed := make(chan error, 1)
	go func() {
		var err error
		for chunks := range some {
			if err == nil {
				err = handOverChunks(ctx, client, chunks)
			}
			if err != nil {
				cancel() // reading ends, too
			}
		}
		failed <- err
	}()
	var list []handed
	known := make(map[content.Digest]bool)
	tree, err := content.Cut(ctx, l.sources, func(c content.Chunk, b []byte) error {
		if known[c.Digest] {
			return nil
		}
		known[c.Digest] = true
		if list = append(list, handed{c.Digest, b}); len(list) == handAtOnce {
			some <- list
			list = nil
		}
		return ctx.Err()
	})
	if err == nil && len(list) > 0 {
		some <- list
	}
	close(some)
	if why := <-failed; why != nil {
		return "", why
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: let it be read, or leave it out with a line in %s", err, ignoreFile)
	}
	if err != nil {
		return "", err
	}
	encoded, _, err := tree.Encode()
	if err != nil {
		return "", err
	}
	reply, err := client.PutTree(ctx, encoded)
	if err != nil {
		return "", apiError(err)
	}
	return reply.Tree, nil
}

// handOverChunks gives the daemon those of some chunks that it does not have.
func handOverChunks(ctx context.Context, client *api.Client, chunks []handed) error {
	digests := make([]string, len(chunks))
	for i := range chunks {
		digests[i] = chunks[i].digest.String()
	}
	reply, err := client.MissingContent(ctx, digests)
	if err != nil {
		return apiError(err)
	}
	for i := range chunks {
		if !slices.Contains(reply.Chunks, digests[i]) {
			continue
		}
		if _, err := client.PutContent(ctx, chunks[i].b); err != nil {
			return apiError(err)
		}
	}
	return nil
}
