package content

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"gridnode/internal/wire"
)

// What the tasks of one job leave, each in a directory of its own, is one tree in the end. Where
// they ran a task has a number among those that were there, and its files lie in a folder of that
// name; at home in one that is named after its rank.
const (
	numberWide = 5 // digits of a number, so that names are in the order of numbers
	numberMax  = 99999
	rankPrefix = "rank-"
)

// Numbered returns the sources of a task's files as those of a folder that is named after its
// number; none if there are none.
func Numbered(number int, sources []Source) []Source {
	if len(sources) == 0 || number > numberMax {
		return nil
	}
	folder := fmt.Sprintf("%0*d", numberWide, number)
	out := []Source{{Entry: Entry{Name: folder, Kind: Folder, Mode: 0o755}}}
	for _, s := range sources {
		s.Name = folder + "/" + s.Name
		out = append(out, s)
	}
	return out
}

// Piece is the tree of what some tasks of a job have left, in folders named after their numbers.
type Piece struct {
	Tree  *Tree
	First int // rank of the first of these tasks
	Tasks int
}

// Join makes one tree of pieces, in the order of their ranks, of a job of so many tasks. The
// folders are named after ranks. An error wraps wire.ErrMalformed: a piece is not in order.
func Join(pieces []Piece, tasks int) (*Tree, error) {
	out := &Tree{}
	wide := len(strconv.Itoa(max(tasks-1, 0)))
	for _, p := range pieces {
		for _, e := range p.Tree.Entries {
			folder, rest, inside := strings.Cut(e.Name, "/")
			number, err := strconv.ParseUint(folder, 10, 31)
			if err != nil || len(folder) != numberWide || int(number) >= p.Tasks || !inside && e.Kind != Folder {
				return nil, wire.Malformed("%.80q among the files of %d tasks", e.Name, p.Tasks)
			}
			if e.Name = fmt.Sprintf("%s%0*d", rankPrefix, wide, p.First+int(number)); inside {
				e.Name += "/" + rest
			}
			out.Entries = append(out.Entries, e)
		}
		out.Chunks = append(out.Chunks, p.Tree.Chunks...)
		if out.Left += p.Tree.Left; out.Why == "" {
			out.Why = p.Tree.Why
		}
	}
	if len(out.Entries) > EntriesMax {
		return nil, wire.Malformed("the tasks have left more than %d files and folders: pack them into archives", EntriesMax)
	}
	if err := out.check(); err != nil {
		return nil, wire.Malformed("tree: %v", err)
	}
	return out, nil
}

// TakesOf reports whether an entry of a joined tree is wanted: what is wanted is said of each
// task's own files.
func (s *Wanted) TakesOf(e *Entry) bool {
	_, rest, inside := strings.Cut(e.Name, "/")
	if !inside {
		return e.Kind == Folder && e.Mode&^fs.ModePerm == 0
	}
	own := *e
	own.Name = rest
	return s.Takes(&own)
}
