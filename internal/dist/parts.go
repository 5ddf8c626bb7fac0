package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// part is a module that a program is built of.
type part struct {
	path, version string
	licence       string // its SPDX identifiers, joined by AND
	texts         []string
}

// parts is all of one program, by path; Go's own library comes first.
type parts struct {
	list []part
}

// parts reads what a program is built of from the program, and finds the licences of that.
func (d *dist) parts(binary string) (*parts, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		args = append(args, m.Path+"@"+m.Version)
	}
	said, err := d.command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	goRoot, err := d.command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	std, err := newPart("std", strings.TrimPrefix(info.GoVersion, "go"), strings.TrimSpace(string(goRoot)))
	if err != nil {
		return nil, err
	}
	p := &parts{list: []part{std}}
	for decoder := json.NewDecoder(bytes.NewReader(said)); ; {
		var module struct{ Path, Version, Dir string }
		if err := decoder.Decode(&module); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		m, err := newPart(module.Path, module.Version, module.Dir)
		if err != nil {
			return nil, err
		}
		p.list = append(p.list, m)
	}
	slices.SortStableFunc(p.list[1:], func(a, b part) int { return strings.Compare(a.path, b.path) })
	return p, nil
}

// newPart reads the licences in a module's directory.
func newPart(path, version, dir string) (part, error) {
	m := part{path: path, version: version}
	var kinds []string
	for _, path := range licenceFiles(dir) {
		text, err := os.ReadFile(path)
		if err != nil {
			return m, err
		}
		m.texts = append(m.texts, strings.TrimSpace(string(text)))
		if kind := licenceOf(string(text)); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return m, fmt.Errorf("%s %s: no licence in %s that is known: it must not be handed out", path, version, dir)
	}
	slices.Sort(kinds)
	m.licence = strings.Join(kinds, " AND ")
	return m, nil
}

// licenceFiles returns the files that say under which terms a module may be used.
func licenceFiles(dir string) (paths []string) {
	for _, pattern := range []string{"LICEN[CS]E*", "licen[cs]e*", "License*", "COPYING*", "UNLICENSE*", "NOTICE*", "licenses/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are good ones
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// licenceOf returns the SPDX identifier of a licence by what only its text says; empty for
// a text that is none of these.
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("Apache License") && has("Version 2.0"), has("Apache-2.0 Software License"):
		return "Apache-2.0"
	case has("Mozilla Public License") && has("2.0"):
		return "MPL-2.0"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Permission to use, copy, modify, and/or distribute this software"), has("Permission to use, copy, modify, and distribute this software"):
		return "ISC"
	case has("This is free and unencumbered software released into the public domain"):
		return "Unlicense"
	case has("The FreeType License"): // or the GPL, as one likes
		return "FTL"
	case has("Creative Commons Attribution 4.0 International"):
		return "CC-BY-4.0"
	case has("CC0 1.0 Universal"):
		return "CC0-1.0"
	}
	return ""
}

// bom returns the parts list as CycloneDX has it, in JSON.
func (p *parts) bom(d *dist) ([]byte, error) {
	type licence struct {
		Expression string `json:"expression"`
	}
	type component struct {
		Type     string    `json:"type"`
		Ref      string    `json:"bom-ref"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		URL      string    `json:"purl"`
		Licences []licence `json:"licenses"`
	}
	type metadata struct {
		Time      string    `json:"timestamp"`
		Component component `json:"component"`
	}
	of := func(kind, path, version, spdx string) component {
		url := "pkg:golang/" + path + "@" + version
		return component{kind, url, path, version, url, []licence{{spdx}}}
	}
	bom := struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}{"CycloneDX", "1.5", 1, metadata{d.date.Format("2006-01-02T15:04:05Z"), of("application", "gridnode", d.version, "Apache-2.0")}, nil}
	for _, m := range p.list {
		bom.Components = append(bom.Components, of("library", m.path, m.version, m.licence))
	}
	text, err := json.MarshalIndent(bom, "", "  ")
	return append(text, '\n'), err
}

// notices returns the list of licences with their texts, each text once.
func (p *parts) notices() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("gridnode is under the Apache License 2.0. It contains:\n\n")
	used := map[string][]string{}
	var order []string
	for _, m := range p.list {
		fmt.Fprintf(&b, "  %-60s %s\n", m.path+" "+m.version, m.licence)
		for _, text := range m.texts {
			if used[text] == nil {
				order = append(order, text)
			}
			used[text] = append(used[text], m.path)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 72), strings.Join(used[text], "\n"), text)
	}
	return b.Bytes(), nil
}
