package slurm

import (
	"fmt"
	"strings"
)

// Line is an option of a script, or what is wrong with its line.
type Line struct {
	Given
	Number int // from 1
	Err    error
}

// Script returns the options in the #SBATCH lines of a script. They end at the first line
// that is neither empty nor a comment, as in Slurm; ##SBATCH is a comment.
func Script(text string, split func(string) ([]string, error)) (lines []Line) {
	options := Batch()
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && trimmed[0] != '#' {
			break
		}
		rest, found := strings.CutPrefix(strings.TrimSuffix(line, "\r"), "#SBATCH")
		if !found || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		words, err := split(rest)
		if err != nil {
			lines = append(lines, Line{Number: number, Err: err})
			continue
		}
		if len(words) > 0 && (words[0] == "hetjob" || words[0] == "packjob") {
			lines = append(lines, Line{Number: number, Err: fmt.Errorf("%s: jobs of several parts are written as --components", words[0])})
			continue
		}
		given, left, err := options.Parse(words)
		for _, g := range given {
			lines = append(lines, Line{Given: g, Number: number})
		}
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%q is not an option", left[0])
		}
		if err != nil {
			lines = append(lines, Line{Number: number, Err: err})
		}
	}
	return lines
}
