package run

import (
	"os"

	"gridnode/node/kept"
)

// Keep is a log that is made when its first byte comes, and has its name when it is
// complete.
type Keep struct {
	Path  string
	Bound int64 // of package kept

	file *os.File
	size int64
}

// Create makes the file, also if nothing is written to it.
func (k *Keep) Create() (err error) {
	if k.file == nil {
		k.file, err = os.OpenFile(k.Path+PartSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
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

// Done gives the file its name, if there is one. One that is too long is cut, and says so.
func (k *Keep) Done() error {
	if k.file == nil {
		return nil
	}
	err := k.file.Close()
	k.file = nil
	part, bound := k.Path+PartSuffix, kept.Bound(k.Bound)
	if err == nil && k.size > bound && kept.At(part) != bound {
		err = kept.Cut(part, bound)
	}
	if err == nil {
		err = os.Rename(part, k.Path)
	}
	return err
}

// Discard removes the file unless it is done.
func (k *Keep) Discard() {
	if k.file != nil {
		k.file.Close()
		os.Remove(k.Path + PartSuffix)
	}
}
