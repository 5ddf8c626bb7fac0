package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"
)

// What a build for others sets (-ldflags "-X main.version=…"). Where revision is empty the
// rest is what Go has found out.
var (
	version  = "devel"
	revision = ""
	revised  = "" // when, RFC 3339
	modified = "" // "true": built from a tree with changes
)

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision, RFC 3339
	Modified bool   `json:"modified"`       // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() *build {
	b := &build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if revision != "" {
		b.Revision, b.Time, b.Modified = revision, revised, modified == "true"
		return b
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// line says which program this is, for people.
func (b *build) line() string {
	text := "gridnode " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision[:min(len(b.Revision), 12)]
	}
	if b.Modified {
		text += "+changes"
	}
	return text + " " + b.Go + " " + b.Platform
}

func newVersion(*options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print which version this is",
		Example: "  gridnode version\n  gridnode version -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			facts := []fact{{"version", b.Version}, {"revision", b.Revision}, {"time", b.Time}, {"modified", strconv.FormatBool(b.Modified)}, {"go", b.Go}, {"platform", b.Platform}}
			return l.act(cmd.OutOrStdout(), b, facts, func() { fmt.Fprintln(cmd.OutOrStdout(), b.line()) })
		},
	}
	addActFlags(cmd, &l)
	return cmd
}
