package main

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
)

// TestMissingSitesAreNoted: the list stays as it is, and stderr says that it may not
// be all.
func TestMissingSitesAreNoted(t *testing.T) {
	for _, certain := range []bool{true, false} {
		var out, talk bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		cmd.SetErr(&talk)
		noteMissing(cmd, certain)
		if (talk.Len() > 0) == certain || out.Len() > 0 {
			t.Errorf("certain %v: %q on stderr, %q on stdout", certain, talk.String(), out.String())
		}
	}
}
