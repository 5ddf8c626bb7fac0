package run

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gridnode/grid"
)

// OutputPath returns the file that a pattern of Command.Output means for a job which ran at
// a site: with Slurm's %j, %A, %a, %J, %x, %u, %N, %n, %s, %t and %%, whose numbers may have
// a width (%4a). A pattern with a backslash is taken as it is, without that.
func OutputPath(pattern string, job *grid.Job, site string) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	number := int64(job.Number)
	array, index := number, int64(noIndex)
	if a := job.Array; a != nil {
		array, index = int64(a.Number), a.Index
	}
	var out strings.Builder
	for rest := pattern; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		out.WriteString(before)
		if !found {
			break
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		width, _ := strconv.Atoi(after[:min(digits, 2)])
		if digits == len(after) {
			out.WriteString("%" + after)
			break
		}
		letter := after[digits]
		rest = after[digits+1:]
		numbered := func(n int64) { fmt.Fprintf(&out, "%0*d", min(width, widthMax), n) }
		switch letter {
		case '%':
			out.WriteByte('%')
		case 'j', 'J':
			numbered(number)
		case 'A':
			numbered(array)
		case 'a':
			numbered(index)
		case 'n', 't', 's':
			numbered(0)
		case 'x':
			out.WriteString(fileName(job.Title()))
		case 'u':
			out.WriteString(fileName(job.User))
		case 'N':
			out.WriteString(fileName(site))
		default:
			out.WriteString("%" + after[:digits+1])
		}
	}
	return filepath.Clean(out.String())
}

const (
	widthMax = 10
	noIndex  = 4294967294 // what Slurm writes for %a of a job outside of an array
)

// fileName keeps a name from leaving its directory.
func fileName(name string) string { return strings.NewReplacer("/", "_", "\x00", "_").Replace(name) }
