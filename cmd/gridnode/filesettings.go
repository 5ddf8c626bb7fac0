//go:build !client

package main

import (
	"fmt"

	"gridnode/node/kept"
)

// fileSettings are the keys about files that jobs bring along, and leave.
var fileSettings = []setting{
	{key: "files.cache", value: "20G", usage: "files of jobs kept here, K, M, G or T; 64M to 1T",
		set: func(s *settings, v string) (err error) { s.files.Cache, err = fileSize(v, 64<<20, 1<<40); return err }},
	{key: "files.job", value: "10G", usage: "most bytes of files that one job brings along, and that are brought home of one, K, M, G or T; 1M to 1T, and never more than files.cache",
		set: func(s *settings, v string) (err error) { s.files.Job, err = fileSize(v, 1<<20, 1<<40); return err }},
	{key: "files.loose", value: "1G", usage: "most bytes brought home of a job that has not said which files, K, M, G or T; 1K to 1T",
		set: func(s *settings, v string) (err error) { s.files.Loose, err = fileSize(v, 1<<10, 1<<40); return err }},
	{key: "files.log", value: "16M", usage: "bytes kept of what a job writes to its standard output, and to its errors, K, M or G; 4K to 1G",
		set: func(s *settings, v string) (err error) {
			s.files.Log, err = fileSize(v, kept.Least, kept.Highest)
			return err
		}},
}

// fileSize reads a size within bounds.
func fileSize(text string, least, most int64) (int64, error) {
	size, err := parseSize(text, 1)
	if err == nil && (size < least || size > most) {
		err = fmt.Errorf("%q: want %s to %s", text, formatSize(least), formatSize(most))
	}
	return size, err
}
