//go:build !client

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/api"
)

func newConfig(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, change and check the settings of this site",
		Long: `Settings stand in config.yaml in the home directory. A flag of start counts before
the environment (site.price is GRIDNODE_SITE_PRICE there), that before the file,
that before the default. Changes take effect when the daemon starts, a new site.price
at once, rules for guests, limits and shares of users at 'gridnode reload'.

` + settingsHelp(),
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigShow(root), newConfigGet(root), newConfigSet(root), newConfigValidate(root))
	return cmd
}

func settingsHelp() string {
	var b strings.Builder
	b.WriteString("Keys and defaults:\n")
	for i := range settingTable {
		key := &settingTable[i]
		value := key.value
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&b, "  %-17s %s\n%20s%s\n", key.key, value, "", key.usage)
	}
	return strings.TrimRight(b.String(), "\n")
}

func newConfigShow(root *options) *cobra.Command {
	var l listing
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the effective value of every key",
		Example: `  gridnode config show
  gridnode config show --origin
  GRIDNODE_SITE_PRICE=2 gridnode config show -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, values, err := loadSettings(root.home, nil)
			if values == nil {
				return settingsError(err)
			}
			columns := []column[effective]{
				{head: "KEY", text: func(e effective) string { return e.Key }},
				{head: "VALUE", text: func(e effective) string { return e.Value }},
				{head: "ORIGIN", wide: !origin, text: func(e effective) string { return e.Origin }},
			}
			if printErr := printList(cmd.OutOrStdout(), l, columns, values); printErr != nil {
				return printErr
			}
			return settingsError(err)
		},
	}
	addListingFlags(cmd, &l)
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value comes from: flag, environment, file and line, default")
	return cmd
}

func newConfigGet(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:               "get KEY",
		Short:             "Print the effective value of one key",
		Example:           `  gridnode config get site.price`,
		Args:              exactArgs(1, "the key"),
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := findSetting(args[0]); err != nil {
				return usagef("%w", err)
			}
			_, values, err := loadSettings(root.home, nil)
			for _, e := range values {
				if e.Key != args[0] {
					continue
				}
				if err := l.act(cmd.OutOrStdout(), e, []fact{{e.Key, e.Value}}, func() { fmt.Fprintln(cmd.OutOrStdout(), e.Value) }); err != nil {
					return err
				}
			}
			return settingsError(err)
		},
	}
	addActFlags(cmd, &l)
	return cmd
}

func newConfigSet(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change one key in the file, keeping its comments",
		Long:  "Change one key in the file, keeping its comments. Lists are separated by commas. What does not go with\nother keys is written all the same, and said, as one of them may follow. A new site.price takes\neffect at once, guests.* and users.half-life at 'gridnode reload', every other change when the daemon starts.",
		Example: `  gridnode config set site.price 0.5
  gridnode config set network.join /ip4/127.0.0.1/tcp/7531/p2p/12D3KooW...`,
		Args:              exactArgs(2, "a key and its value"),
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := findSetting(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if err := key.set(new(settings), args[1]); err != nil {
				return usagef("%s: %w", key.key, err)
			}
			path := filepath.Join(root.home, configFile)
			text, err := os.ReadFile(path)
			if err != nil {
				_, _, err = loadSettings(root.home, nil)
				return settingsError(err)
			}
			if _, err := parseFile(path, text); err != nil {
				return settingsError(err)
			}
			if text, err = editFile(path, text, key, args[1]); err != nil {
				return err
			}
			if err := atomicfile.Rewrite(path, text); err != nil {
				return fmt.Errorf("write settings: %w", err)
			}
			if key.key == "site.price" {
				return applyPrice(cmd, root.home)
			}
			if _, _, err := loadSettings(root.home, nil); err != nil { // another one may have to follow
				fmt.Fprintf(cmd.ErrOrStderr(), "written; as the settings are now no daemon starts: %v\n", err)
			}
			if _, err := root.client().Node(cmd.Context()); err == nil && reloads(key.key) {
				fmt.Fprintf(cmd.ErrOrStderr(), "the running daemon goes on with the old %s until 'gridnode reload'\n", key.key)
			} else if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "the running daemon goes on with the old %s until '%s'\n", key.key, api.RestartCommand(root.home))
			}
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false) // a negative value is no flag
	return cmd
}

// applyPrice makes a running daemon charge and quote what the settings say now.
func applyPrice(cmd *cobra.Command, home string) error {
	set, _, err := loadSettings(home, nil)
	if err != nil {
		return settingsError(err)
	}
	reply, err := api.NewClient(home).SetPrice(cmd.Context(), set.price)
	switch {
	case errors.Is(err, api.ErrNoDaemon):
		return nil // it reads the file when it starts
	case err != nil:
		return apiError(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "the running daemon charges %v instead of %v\n", grid.Price(reply.Price), grid.Price(reply.Before))
	return nil
}

func newConfigValidate(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "validate",
		Short:   "Check the settings and print every problem",
		Example: `  gridnode config validate && gridnode start`,
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _, err := loadSettings(root.home, nil)
			if errors.Is(err, errNoHome) {
				return err
			}
			file := filepath.Join(root.home, configFile)
			problems, facts := []string{}, []fact(nil)
			if err != nil {
				problems = strings.Split(err.Error(), "\n")
			}
			for _, p := range problems {
				facts = append(facts, fact{file, p})
			}
			told := l.act(cmd.OutOrStdout(), map[string]any{"file": file, "valid": err == nil, "problems": problems}, facts, func() {
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s is valid\n", file)
				}
			})
			return errors.Join(settingsError(err), told)
		},
	}
	addActFlags(cmd, &l)
	return cmd
}

// settingsError gives err the exit code of a wrong setting, or that of a failure
// if there is no home at all.
func settingsError(err error) error {
	if err == nil || errors.Is(err, errNoHome) {
		return err
	}
	return usagef("%w", err)
}

func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	keys := make([]string, len(settingTable))
	for i := range settingTable {
		keys[i] = settingTable[i].key
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}
