package run

import "os"

// KeepMax is how many bytes of one stream of a job are kept that ran elsewhere.
const KeepMax = 16 << 20

// Keep is a file that is made when its first byte comes, and has its name when it is
// complete.
type Keep struct {
	Path string

	file *os.File
	size int
}

// Create makes the file, also if nothing is written to it.
func (k *Keep) Create() (err error) {
	if k.file == nil {
		k.file, err = os.OpenFile(k.Path+PartSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	return err
}

// Write appends up to KeepMax bytes in all and drops the rest.
func (k *Keep) Write(data []byte) (int, error) {
	if err := k.Create(); err != nil {
		return 0, err
	}
	some := data[:min(len(data), KeepMax-k.size)]
	k.size += len(some)
	if n, err := k.file.Write(some); err != nil {
		return n, err
	}
	return len(data), nil
}

// Done gives the file its name, if there is one.
func (k *Keep) Done() error {
	if k.file == nil {
		return nil
	}
	err := k.file.Close()
	k.file = nil
	if err == nil {
		err = os.Rename(k.Path+PartSuffix, k.Path)
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
