package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// packages writes the packages of one architecture and returns their names.
func (d *dist) packages(arch, binary, client, pages string) ([]string, error) {
	stage, err := os.MkdirTemp(d.out, "stage")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	if err := d.stage(stage, binary, client, pages); err != nil {
		return nil, err
	}
	var made []string
	for _, format := range d.formats {
		target := filepath.Join(d.out, fmt.Sprintf("gridnode_%s_linux_%s.%s", d.version, arch, format))
		cmd := d.command(d.nfpm, "package", "--config", filepath.Join(d.root, "deploy/package/nfpm.yaml"), "--packager", format, "--target", target)
		cmd.Dir = stage
		cmd.Env = append(cmd.Env, "VERSION="+d.version, "ARCH="+arch, "SOURCE_DATE_EPOCH="+strconv.FormatInt(d.date.Unix(), 10))
		if err := run(cmd); err != nil {
			return nil, err
		}
		made = append(made, filepath.Base(target))
	}
	return made, nil
}

// stage lays out the files of the packages as they will lie on a machine.
func (d *dist) stage(stage, binary, client, pages string) error {
	copies := []struct{ from, to string }{
		{client, "usr/bin/gridnode"},
		{binary, "usr/libexec/gridnode/gridnoded"},
		{binary + ".cdx.json", "usr/share/doc/gridnode/gridnode.cdx.json"},
		{filepath.Join(pages, "bash"), "usr/share/bash-completion/completions/gridnode"},
		{filepath.Join(pages, "fish"), "usr/share/fish/vendor_completions.d/gridnode.fish"},
		{filepath.Join(pages, "zsh"), "zsh"}, // distributions have different places for it
		{filepath.Join(d.root, "deploy/systemd/gridnode.service"), "usr/lib/systemd/system/gridnode.service"},
		{filepath.Join(d.root, "deploy/package/sysusers.conf"), "usr/lib/sysusers.d/gridnode.conf"},
		{filepath.Join(d.root, "deploy/package/copyright"), "usr/share/doc/gridnode/copyright"},
		{filepath.Join(d.root, "deploy/package/lintian"), "lintian"},
		{filepath.Join(d.root, "deploy/grafana/gridnode.json"), "usr/share/doc/gridnode/examples/grafana.json"},
		{filepath.Join(d.root, "deploy/prometheus/gridnode.rules.yml"), "usr/share/doc/gridnode/examples/gridnode.rules.yml"},
		{filepath.Join(d.root, "deploy/prometheus/prometheus.yml"), "usr/share/doc/gridnode/examples/prometheus.yml"},
		{filepath.Join(d.root, "deploy/package/postinstall.sh"), "postinstall.sh"},
		{filepath.Join(d.root, "deploy/package/preremove.sh"), "preremove.sh"},
		{filepath.Join(d.root, "deploy/package/postremove.sh"), "postremove.sh"},
	}
	for _, c := range copies {
		text, err := os.ReadFile(c.from)
		if err != nil {
			return err
		}
		if err := d.place(stage, c.to, text); err != nil {
			return err
		}
	}
	err := eachFile(filepath.Join(pages, siteFolder), func(name string, text []byte) error {
		return d.place(stage, "usr/share/doc/gridnode/html/"+name, text)
	})
	if err != nil {
		return err
	}
	notices, err := os.ReadFile(binary + ".licences.txt")
	if err != nil {
		return err
	}
	changes, err := os.ReadFile(filepath.Join(d.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	packed := map[string][]byte{
		"usr/share/doc/gridnode/licences.txt.gz": notices,
		"usr/share/doc/gridnode/NEWS.md.gz":      changes,
		"changelog.gz":                           d.changelog(),
	}
	found, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range found {
		if packed["usr/share/man/man1/"+filepath.Base(page)+".gz"], err = os.ReadFile(page); err != nil {
			return err
		}
	}
	for to, text := range packed {
		small, err := pack(text)
		if err == nil {
			err = d.place(stage, to, small)
		}
		if err != nil {
			return err
		}
	}
	return d.redate(stage)
}

// eachFile calls see for every file below a directory, in order of their names, which have slashes.
func eachFile(dir string, see func(name string, text []byte) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		return see(name, text)
	})
}

// site packs the manual that is read in a browser, for those who have no package, and returns the
// name of the archive.
func (d *dist) site(dir string) (string, error) {
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	folder := "gridnode-manual-" + d.version
	err := eachFile(dir, func(name string, text []byte) error {
		header := &tar.Header{Name: folder + "/" + name, Mode: 0o644, Size: int64(len(text)), ModTime: d.date, Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	packed, err := pack(all.Bytes())
	if err != nil {
		return "", err
	}
	name := "gridnode_" + d.version + "_manual.tar.gz"
	return name, os.WriteFile(filepath.Join(d.out, name), packed, 0o644)
}

// place writes a file of the stage.
func (d *dist) place(stage, to string, text []byte) error {
	path := filepath.Join(stage, "root", to)
	if !strings.Contains(to, "/") {
		path = filepath.Join(stage, to)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(to, "usr/bin/") || strings.HasPrefix(to, "usr/libexec/") {
		mode = 0o755
	}
	if err := os.WriteFile(path, text, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask is
}

// redate gives everything of the stage the date of the commit, and directories their mode.
func (d *dist) redate(stage string) error {
	return filepath.WalkDir(stage, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		if err == nil {
			err = os.Chtimes(path, d.date, d.date)
		}
		return err
	})
}

// pack compresses a text; the same text gives the same bytes.
func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// changelog returns the changelog that Debian wants of a package.
func (d *dist) changelog() []byte {
	return fmt.Appendf(nil, "gridnode (%s) unstable; urgency=medium\n\n  * Built from commit %.12s. What is new stands in NEWS.md.gz.\n\n -- %s  %s\n",
		strings.Replace(d.version, "-", "~", 1), d.revision, maintainer, d.date.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// maintainer of the packages, as nfpm.yaml has it.
const maintainer = "The gridnode authors <maintainers@gridnode.example>"

// sums writes SHA256SUMS.
func (d *dist) sums(names []string) error {
	slices.Sort(names)
	var b bytes.Buffer
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), name)
	}
	return os.WriteFile(filepath.Join(d.out, "SHA256SUMS"), b.Bytes(), 0o644)
}
