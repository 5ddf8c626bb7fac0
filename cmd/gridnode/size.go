package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeMax bounds every amount of memory a user may name.
const sizeMax = 1 << 50

// parseSize reads an amount of memory in bytes: a whole number with a suffix K, M,
// G or T (powers of 1024, as Slurm counts; KB and KiB mean the same) or B; without
// one it counts unit bytes.
func parseSize(s string, unit int64) (int64, error) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	switch strings.ToUpper(s[len(digits):]) {
	case "":
	case "B":
		unit = 1
	case "K", "KB", "KIB":
		unit = 1 << 10
	case "M", "MB", "MIB":
		unit = 1 << 20
	case "G", "GB", "GIB":
		unit = 1 << 30
	case "T", "TB", "TIB":
		unit = 1 << 40
	default:
		digits = ""
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || digits[0] == '+':
		return 0, fmt.Errorf("%q is not a size: want a whole number with a suffix K, M, G or T", s)
	case n < 0 || n > sizeMax/unit:
		return 0, fmt.Errorf("%q: want 0 to 1024T", s)
	}
	return n * unit, nil
}

// formatSize prints bytes for people: rounded down to at most five digits and the
// suffix that allows them.
func formatSize(n int64) string {
	suffix := ""
	for _, next := range []string{"K", "M", "G", "T"} {
		if n < 100_000 {
			break
		}
		n, suffix = n/1024, next
	}
	return strconv.FormatInt(n, 10) + suffix
}

// bytesText is formatSize in a sentence.
func bytesText(n int64) string {
	text := formatSize(n)
	if text == strconv.FormatInt(n, 10) {
		return plural(n, "byte")
	}
	return text
}
