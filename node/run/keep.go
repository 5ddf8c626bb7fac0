package run

import (
	"errors"
	"os"

	"gridnode/internal/atomicfile"
	"gridnode/node/kept"
)

// Keep is a log that is made when its first byte comes, and has its name when it is
// complete and on disk.
type Keep struct {
	Path  string
	Bound int64 // of package kept

	file *os.File
	made bool // and not done
	size int64
}

// Create makes the file, also if nothing is written to it.
func (k *Keep) Create() (err error) {
	if k.made {
		return nil
	}
	k.file, err = os.OpenFile(k.Path+PartSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	k.made = err == nil
	return err
}

// Write appends what a log may have, and drops the rest.
func (k *Keep) Write(data []byte) (int, error) {
	if err := k.Create(); err != nil {
		return 0, err
	}
	some := data[:min(int64(len(data)), kept.Most(kept.Bound(k.Bound))-k.size)]
	k.size += int64(len(some))
	if n, err := k.file.Write(some); err != nil {
		return n, err
	}
	return len(data), nil
}

// Close says that nothing follows. A file that is too long is cut, and says so.
func (k *Keep) Close() error {
	if k.file == nil {
		return nil
	}
	err := k.file.Close()
	k.file = nil
	part, bound := k.Path+PartSuffix, kept.Bound(k.Bound)
	if err == nil && k.size > bound && kept.At(part) != bound {
		err = kept.Cut(part, bound)
	}
	return err
}

// Done gives the files that were made their names, in this order, once all of them are on disk.
func Done(keeps ...*Keep) error {
	var errs []error
	var paths []string
	for _, k := range keeps {
		errs = append(errs, k.Close())
		if k.made {
			paths = append(paths, k.Path)
		}
	}
	if err := errors.Join(errs...); err != nil || len(paths) == 0 {
		return err
	}
	if err := atomicfile.Place(PartSuffix, paths...); err != nil {
		return err
	}
	for _, k := range keeps {
		k.made = false
	}
	return nil
}

// Discard removes the file unless it is done.
func (k *Keep) Discard() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
	if k.made {
		os.Remove(k.Path + PartSuffix)
	}
}
