package away

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strings"

	"gridnode/internal/atomicfile"
	"gridnode/testnet/sweep"
)

// ErrPart is returned by a sweep that has done its part: there is nothing to print.
var ErrPart = errors.New("a part of a sweep is done")

// Part is a run of a sweep, as a command line names it: "3/40@1f2e3d4c5b6a" is the fourth of
// forty of the sweep of that ID.
type Part struct {
	Run, Runs int
	Sweep     string
}

// String returns the form that ParsePart reads.
func (p Part) String() string { return fmt.Sprintf("%d/%d@%s", p.Run, p.Runs, p.Sweep) }

// ParsePart reads what String gives.
func ParsePart(text string) (p Part, err error) {
	numbers, id, found := strings.Cut(text, "@")
	if n, err := fmt.Sscanf(numbers, "%d/%d", &p.Run, &p.Runs); !found || n != 2 || err != nil || p.Run < 0 || p.Run >= p.Runs {
		return Part{}, fmt.Errorf("%q is no part of a sweep, such as 3/40@1f2e3d4c5b6a", text)
	}
	p.Sweep = id
	return p, nil
}

// formatPart is the version of the form of a part's file.
const formatPart = 1

// parcel is what a part's file holds, as gob.
type parcel struct {
	Format int
	Part   Part
	Result []byte // of the run, as pack writes it
}

// Do returns what does this part of a sweep alone, and writes what comes of it to a file. It
// ends with ErrPart.
func (p Part) Do(path string) sweep.Away {
	return func(ctx context.Context, runs []sweep.Run, o sweep.Options) error {
		if len(runs) != p.Runs {
			return fmt.Errorf("part %v: the sweep has %d runs", p, len(runs))
		}
		run := &runs[p.Run]
		if err := sweep.Do(ctx, []sweep.Run{*run}, sweep.Options{Workers: 1, Progress: o.Progress}); err != nil {
			return err
		}
		if err := p.write(path, run); err != nil {
			return fmt.Errorf("part %v: %w", p, err)
		}
		return ErrPart
	}
}

// write writes what has come of the run, all of it or nothing.
func (p Part) write(path string, run *sweep.Run) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(parcel{formatPart, p, packed(run.Result)}); err != nil {
		return err
	}
	return atomicfile.Write(path, text.Bytes(), 0o644)
}

// Take fills in what run.Result points to from a file that Do has written. The error wraps
// fs.ErrNotExist if there is none; else it says that it is not of this part.
func (p Part) Take(path string, run *sweep.Run) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var c parcel
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&c); err != nil {
		return fmt.Errorf("%s is not what a part leaves: %w", path, err)
	}
	if c.Format != formatPart || c.Part != p {
		return fmt.Errorf("%s is of another sweep, or of another version: part %v, not %v", path, c.Part, p)
	}
	if err := unpacked(c.Result, run.Result); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
