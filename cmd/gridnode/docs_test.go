package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/cli.md names every verb and every flag, in the section of its verb.
func TestCLIPageIsComplete(t *testing.T) {
	text := page(t, "cli.md")
	for _, cmd := range newRoot().Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		_, section, found := strings.Cut(text, "\n## "+cmd.Name()+"\n")
		if !found {
			t.Errorf("no section about %s", cmd.Name())
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		checkFlags(t, cmd, section, text)
	}
}

func checkFlags(t *testing.T, cmd *cobra.Command, section, whole string) {
	t.Helper()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		common := f.Name == "output" || f.Name == "no-headers" // explained once
		setting := cmd.Name() == "start" && newInit(&options{}).Flags().Lookup(f.Name) != nil
		if f.Hidden || f.Name == "help" || setting || common && strings.Contains(whole, "--"+f.Name) {
			return
		}
		if !strings.Contains(section, "--"+f.Name) {
			t.Errorf("the section about %s does not name --%s", cmd.Name(), f.Name)
		}
		if f.Shorthand != "" && !strings.Contains(section, "-"+f.Shorthand+", --"+f.Name) {
			t.Errorf("the section about %s does not name -%s", cmd.Name(), f.Shorthand)
		}
	})
	for _, below := range cmd.Commands() {
		if !strings.Contains(section, cmd.Name()+" "+below.Name()) {
			t.Errorf("the section about %s does not name %s", cmd.Name(), below.Name())
		}
		checkFlags(t, below, section, whole)
	}
}

// docs/configuration.md has every key with its flag and default.
func TestConfigurationPageIsComplete(t *testing.T) {
	text := page(t, "configuration.md")
	for i := range settingTable {
		s := &settingTable[i]
		row := "| `" + s.key + "` |"
		for _, cell := range []string{"--" + s.flag, s.value} {
			if cell != "" && cell != "--" {
				row += " `" + cell + "`"
			}
			row += " |"
		}
		if !strings.Contains(text, row) {
			t.Errorf("no row %s", row)
		}
	}
}

// Every verb has a help text with an example, and no flag is without an explanation.
func TestHelpIsComplete(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || cmd.Example == "" && !cmd.HasParent() || cmd.Example == "" && !cmd.HasSubCommands() {
			t.Errorf("%s: no summary or no example", cmd.CommandPath())
		}
		if cmd.Args == nil && cmd.Name() != "submit" && cmd.Name() != "status" && cmd.Name() != "cancel" && cmd.Name() != "wait" {
			t.Errorf("%s: arguments are not checked", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s: --%s is not explained", cmd.CommandPath(), f.Name)
			}
		})
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(newRoot())
}
