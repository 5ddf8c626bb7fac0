//go:build !client

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gridnode/node/sandbox"
)

// sandboxSettings are the keys about walls and limits of jobs.
var sandboxSettings = []setting{
	{key: "sandbox.walls", value: "auto", usage: "around jobs of other sites: auto (the best there are), bubblewrap, landlock, or none (only if every member is trusted like oneself)",
		set: func(s *settings, v string) (err error) { s.sandbox.Walls, err = sandbox.ParseKind(v); return err }},
	{key: "sandbox.network", value: "deny", usage: "this machine's network to jobs of other sites: deny (tasks of one job reach each other all the same) or allow",
		set: oneOf(permissions, func(s *settings) *bool { return &s.sandbox.Network })},
	{key: "sandbox.read", value: "", list: true, usage: "files and directories that jobs of other sites may read besides the system, as absolute paths",
		set: func(s *settings, v string) (err error) { s.sandbox.Read, err = absolutePaths(v); return err }},
	{key: "sandbox.disk", value: "256M", usage: "files that a job of another site may have at a time, in memory where there is bubblewrap or root, K, M, G or T; 1M to 1T",
		set: func(s *settings, v string) (err error) {
			s.sandbox.Disk, err = parseSize(v, 1)
			if err == nil && (s.sandbox.Disk < 1<<20 || s.sandbox.Disk > 1<<40) {
				err = fmt.Errorf("%q: want 1M to 1T", v)
			}
			return err
		}},
	{key: "sandbox.processes", value: strconv.Itoa(sandbox.ProcessesDefault), usage: "processes and threads that a job held to limits may have, 16 to 4194304",
		set: func(s *settings, v string) (err error) {
			s.sandbox.Processes, err = intBetween(v, 16, 1<<22)
			return err
		}},
	{key: "sandbox.files", value: strconv.Itoa(sandbox.FilesDefault), usage: "files that each process of such a job may have open, 16 to 1048576",
		set: func(s *settings, v string) (err error) { s.sandbox.Files, err = intBetween(v, 16, 1<<20); return err }},
	{key: "sandbox.own", value: "none", usage: "what jobs of this site are held to: none, or limits (their memory, processors, and processes)",
		set: oneOf(map[string]bool{"none": false, "limits": true}, func(s *settings) *bool { return &s.sandbox.Own })},
}

// absolutePaths reads paths separated by commas.
func absolutePaths(v string) (list []string, err error) {
	for _, path := range strings.Split(v, ",") {
		if path = strings.TrimSpace(path); path == "" {
			continue
		}
		if !filepath.IsAbs(path) || path != filepath.Clean(path) || path == "/" {
			return nil, fmt.Errorf("%q: want an absolute path such as /data, without .. and not / itself", path)
		}
		list = append(list, path)
	}
	if len(list) > addressesMax {
		return nil, fmt.Errorf("%d paths, at most %d", len(list), addressesMax)
	}
	return list, nil
}
