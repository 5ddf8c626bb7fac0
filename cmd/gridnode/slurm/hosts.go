package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// hostsMax bounds how many hosts one list may name.
const hostsMax = 65536

// Hosts takes a list of hosts apart as Slurm writes it: a,n[1-3,07].
func Hosts(list string) (names []string, err error) {
	for rest := list; rest != ""; {
		part := rest
		depth := 0
		rest = ""
		for i, r := range part {
			if r == '[' {
				depth++
			} else if r == ']' {
				depth--
			}
			if r == ',' && depth == 0 {
				part, rest = part[:i], part[i+1:]
				break
			}
		}
		if names, err = expand(names, part); err != nil {
			return nil, fmt.Errorf("%q: %w", list, err)
		}
	}
	return names, nil
}

// expand adds the hosts of one part, whose first brackets stand for several.
func expand(names []string, part string) ([]string, error) {
	before, rest, ranged := strings.Cut(part, "[")
	if !ranged {
		return append(names, part), nil
	}
	inside, after, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, errors.New("a bracket is not closed")
	}
	for span := range strings.SplitSeq(inside, ",") {
		from, to, several := strings.Cut(span, "-")
		if !several {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("%q is no range", span)
		}
		for n := first; n <= last; n++ {
			if len(names) >= hostsMax {
				return nil, fmt.Errorf("more than %d hosts", hostsMax)
			}
			var err error
			if names, err = expand(names, fmt.Sprintf("%s%0*d%s", before, len(from), n, after)); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
