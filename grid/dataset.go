package grid

import (
	"fmt"
	"strings"
)

// DataSet is what a job reads and sites hold, known by its name everywhere in the
// federation: a logical name, or DigestPrefix and a digest, which is its content's.
type DataSet struct {
	Name string // 1 to DataNameMax of the characters that CheckDataName allows
	Size int64  // bytes, 0 to DataSizeMax; SizeUnknown if nobody has said
}

// Bounds of data sets.
const (
	DataNameMax = 200
	DataSizeMax = 1 << 50
	SizeUnknown = -1
	InputsMax   = 32 // data sets that one job reads
)

// DigestPrefix begins the name of a data set that is known by its content. What
// follows are the 64 lower-case hexadecimal digits of its SHA-256.
const DigestPrefix = "sha256:"

// CheckDataName returns an error that says what is wrong with the name of a data set.
func CheckDataName(name string) error {
	if len(name) == 0 || len(name) > DataNameMax {
		return fmt.Errorf("the name of a data set has %d bytes, want 1 to %d", len(name), DataNameMax)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._-+@:/", c) >= 0 && i > 0:
		default:
			return fmt.Errorf("%q is no name of a data set: want letters, digits and . _ - + @ : /, beginning with a letter or digit", name)
		}
	}
	digest, addressed := strings.CutPrefix(name, DigestPrefix)
	if addressed && (len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "") {
		return fmt.Errorf("%q: %s is followed by the 64 hexadecimal digits of a digest", name, DigestPrefix)
	}
	return nil
}

// CheckInputs returns an error that says what is wrong with what a job reads.
func CheckInputs(inputs []DataSet) error {
	if len(inputs) > InputsMax {
		return fmt.Errorf("%d inputs, at most %d", len(inputs), InputsMax)
	}
	for i := range inputs {
		in := &inputs[i]
		if err := CheckDataName(in.Name); err != nil {
			return err
		}
		if in.Size < SizeUnknown || in.Size > DataSizeMax {
			return fmt.Errorf("input %s of %d bytes, at most %d", in.Name, in.Size, int64(DataSizeMax))
		}
		for _, other := range inputs[:i] {
			if other.Name == in.Name {
				return fmt.Errorf("input %s stands there twice", in.Name)
			}
		}
	}
	return nil
}
