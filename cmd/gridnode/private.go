//go:build !client

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gridnode/node/access"
)

// checkPrivate returns an error if others can read or change what is the site's alone: its
// home and its key, as ssh does. Who reads the key is the site; who writes to the home
// has the daemon run what he wants.
func checkPrivate(home string) error {
	for _, p := range []struct {
		path, fix string
		mask      fs.FileMode
	}{{home, "chmod 700", 0o077}, {filepath.Join(home, keyFile), "chmod 600", 0o077}} {
		info, err := os.Stat(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // who needs it says so
		}
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&p.mask != 0 {
			return fmt.Errorf("%s has mode %04o, so others get at the site's key and jobs: run '%s %s'", p.path, mode, p.fix, p.path)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() && os.Geteuid() != 0 {
			return fmt.Errorf("%s belongs to another account (number %d): run the daemon as that account, or give it this one's: 'chown -R %d %s'", p.path, s.Uid, os.Geteuid(), p.path)
		}
	}
	return nil
}

// checkOwn returns an error if home is the home of another account's daemon: what root made
// there that daemon could not read.
func checkOwn(home string) error {
	info, err := os.Stat(home)
	if err != nil {
		return nil // there is none yet
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() || os.Geteuid() != 0 {
		return nil
	}
	account := access.Machine.Account(s.Uid)
	return fmt.Errorf("%s belongs to account %s, whose daemon could not read what root makes there: run it as that account, with 'runuser -u %s -- gridnode …'", home, account, account)
}
