package workload

import "fmt"

const micros = 1_000_000

// number reads a decimal number that ends at a blank or at the end of line. It
// returns the integral part, the millionths, and where it stopped. A fault is a
// sentence for the user, and empty if there is none; nothing is allocated
// unless there is one. With a number below zero that may not be the integral part is
// Unknown, with other faults 0.
func number(line []byte, pos int) (integral, millionths int64, end int, fault string) {
	i := pos
	negative := i < len(line) && line[i] == '-'
	if negative {
		i++
	}
	first := i
	for i < len(line) {
		digit := line[i] - '0'
		if digit > 9 {
			break
		}
		integral = integral*10 + int64(digit)
		i++
	}
	digits := i - first
	var decimals byte // not zero if any decimal is not
	if i < len(line) && line[i] == '.' {
		i++
		first = i
		scale := int64(micros)
		for i < len(line) {
			digit := line[i] - '0'
			if digit > 9 {
				break
			}
			scale /= 10
			decimals |= digit
			millionths += int64(digit) * scale
			i++
		}
		if i == first {
			digits = 0 // a point without decimals is no number
		}
	}
	switch {
	case i < len(line) && !blank(line[i]), digits == 0:
		return 0, 0, i, fmt.Sprintf("%s is not a number", quote(line, pos))
	case digits > 18:
		return 0, 0, i, fmt.Sprintf("%s is too large", quote(line, pos))
	}
	if negative {
		// -1 says that the log does not know; no field of a log can be below zero.
		if integral != 1 || decimals != 0 {
			return Unknown, 0, i, fmt.Sprintf("%s is negative (only -1, for unknown, may be)", quote(line, pos))
		}
		integral = Unknown
	}
	return integral, millionths, i, ""
}

// plain is number for what nearly all fields are: -1, or digits only. It returns
// false for anything else.
func plain(line []byte, pos int) (n int64, end int, ok bool) {
	i := pos
	for i < len(line) {
		digit := line[i] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + int64(digit)
		i++
	}
	if i == pos && i+1 < len(line) && line[i] == '-' && line[i+1] == '1' {
		n = Unknown
		i += 2
	}
	return n, i, 0 < i-pos && i-pos <= 18 && (i == len(line) || blank(line[i]))
}

// value turns a number into what is kept of it, or finds fault with it.
func (c *column) value(integral, millionths int64) (v int64, fault string) {
	switch {
	case integral > c.max:
		return 0, fmt.Sprintf("%d is too large, at most %d", integral, c.max)
	case integral == Unknown:
		return Unknown, ""
	case millionths != 0 && c.kind == whole:
		return 0, fmt.Sprintf("%d.%06d is not a whole number", integral, millionths)
	}
	return integral*c.unit + millionths*c.unit/micros, ""
}

func blank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' }

// fieldEnd returns where the field that starts at pos ends.
func fieldEnd(line []byte, pos int) int {
	for pos < len(line) && !blank(line[pos]) {
		pos++
	}
	return pos
}

func skipBlanks(line []byte, pos int) int {
	for pos < len(line) && blank(line[pos]) {
		pos++
	}
	return pos
}

// fields counts the fields of a line.
func fields(line []byte) int {
	n := 0
	for pos := skipBlanks(line, 0); pos < len(line); pos = skipBlanks(line, pos) {
		n++
		pos = fieldEnd(line, pos)
	}
	return n
}

// quote shows the field that starts at pos, with control characters made
// visible and its length bounded.
func quote(line []byte, pos int) string {
	const max = 32
	field := line[pos:fieldEnd(line, pos)]
	if len(field) > max {
		return fmt.Sprintf("%q...", field[:max])
	}
	return fmt.Sprintf("%q", field)
}
