package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// etcNames are what a task gets of the machine's /etc: where libraries and commands are, and
// nothing about who is here. etcNetworked is for those with the network.
var (
	etcNames     = []string{"ld.so.cache", "alternatives", "localtime", "fonts", "mime.types", "magic"}
	etcNetworked = []string{"ssl/certs", "pki/tls/certs", "protocols", "services", "nsswitch.conf", "resolv.conf", "hosts", "host.conf", "gai.conf"}
)

// accounts are the task's own: it does not learn who else is here.
var accounts = map[string]string{
	"passwd": guestName + ":x:65534:65534::" + Folder + ":/bin/sh\n",
	"group":  guestName + ":x:65534:\n",
}

// etcMax bounds a file of /etc that is copied.
const etcMax = 4 << 20

// makeEtc makes a copy of what a task gets of /etc, in dir: one directory is shown to it in
// one mount, where each file of its own would cost a tenth of a millisecond.
func makeEtc(dir string, networked bool) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	names := etcNames
	if networked {
		names = append(names[:len(names):len(names)], etcNetworked...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyTree(filepath.Join("/etc", name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("copy of /etc/%s: %w", name, err)
		}
	}
	for name, text := range accounts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies files and links. What is not there, too large, or closed to this account,
// is left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			if within(link, "/usr/share/man") { // most alternatives are pages of the manual
				return nil
			}
			if path != from || within(link, "/usr") {
				return os.Symlink(link, target)
			}
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > etcMax || info.Mode()&0o004 == 0 {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}
