package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hunk is a change of consecutive lines.
type hunk struct {
	line     int      // of the first old line when the patch was made, from 1
	old, new []string // with the lines around the change in both
}

// parseDiff reads a unified diff, of one file or several. Lines before the first "---" are
// left out, as those of git.
func parseDiff(text string) (map[string][]hunk, error) {
	change := map[string][]hunk{}
	file, left := "", [2]int{} // lines that the hunk still has, old and new
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		wrong := func(what string) error { return fmt.Errorf("line %d: %s: %q", i+2, what, line) }
		hunks := change[file]
		if left[0] == 0 && left[1] == 0 {
			switch {
			case strings.HasPrefix(line, "+++ b/"):
				file = strings.TrimPrefix(line, "+++ b/")
			case strings.HasPrefix(line, "+++ "):
				return nil, wrong("a patch changes files, it makes and removes none")
			case strings.HasPrefix(line, "@@ "):
				h, n, err := parseRange(line)
				if err != nil || file == "" {
					return nil, wrong("no beginning of a change in a file")
				}
				left = n
				change[file] = append(hunks, h)
			}
			continue
		}
		h := &hunks[len(hunks)-1]
		kind, rest := byte(' '), ""
		if line != "" { // an editor may have cut the space of an empty line
			kind, rest = line[0], line[1:]
		}
		switch kind {
		case ' ':
			h.old, h.new = append(h.old, rest), append(h.new, rest)
			left[0]--
			left[1]--
		case '-':
			h.old = append(h.old, rest)
			left[0]--
		case '+':
			h.new = append(h.new, rest)
			left[1]--
		default:
			return nil, wrong("want a line that begins with a space, + or -")
		}
		if left[0] < 0 || left[1] < 0 {
			return nil, wrong("more lines than the change says")
		}
	}
	if left != [2]int{} || len(change) == 0 {
		return nil, fmt.Errorf("the patch ends too early")
	}
	return change, nil
}

// parseRange reads "@@ -LINE,COUNT +LINE,COUNT @@ ...".
func parseRange(line string) (h hunk, counts [2]int, err error) {
	f := strings.Fields(line)
	if len(f) < 4 || f[3] != "@@" {
		return h, counts, fmt.Errorf("no range")
	}
	for i, sign := range []string{"-", "+"} {
		start, count, several := strings.Cut(strings.TrimPrefix(f[1+i], sign), ",")
		if !several {
			count = "1"
		}
		if counts[i], err = strconv.Atoi(count); err != nil || counts[i] < 0 {
			return h, counts, fmt.Errorf("no count")
		}
		if i == 0 {
			h.line, err = strconv.Atoi(start)
		}
		if err != nil {
			return h, counts, err
		}
	}
	return h, counts, nil
}

// applyHunks changes text. The lines of a hunk must be there, all of them; where they are there
// more than once, those nearest to where they were are meant.
func applyHunks(text string, hunks []hunk) (string, error) {
	lines := strings.Split(text, "\n")
	shift := 0
	for i, h := range hunks {
		at := -1
		want := h.line - 1 + shift
		for j := 0; j+len(h.old) <= len(lines); j++ {
			if slices.Equal(lines[j:j+len(h.old)], h.old) && (at < 0 || distance(j, want) < distance(at, want)) {
				at = j
			}
		}
		if at < 0 {
			return "", fmt.Errorf("the lines of change %d (line %d when the patch was made) are not there", i+1, h.line)
		}
		lines = slices.Replace(lines, at, at+len(h.old), h.new...)
		shift += len(h.new) - len(h.old)
	}
	after := strings.Join(lines, "\n")
	if after == text {
		return "", fmt.Errorf("the patch changes nothing")
	}
	return after, nil
}

func distance(a, b int) int { return max(a-b, b-a) }
