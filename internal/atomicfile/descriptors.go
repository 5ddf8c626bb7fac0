package atomicfile

import (
	"errors"
	"syscall"
)

// NoDescriptors reports whether an error says that this process or machine can open no more files.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
