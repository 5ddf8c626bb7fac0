package main

import (
	"strings"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newLog(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "What the daemon logs, while it runs",
		Long:  "Show and change what the daemon logs, while it runs.",
		Args:  noVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLogLevel(root))
	return cmd
}

func newLogLevel(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "level [SUBSYSTEM=LEVEL ...]",
		Short: "Show or change how severe messages must be to be logged",
		Long: `Show how severe messages of each subsystem of the daemon must be to be logged: debug, info,
warn or error. With SUBSYSTEM=LEVEL that changes at once; a LEVEL alone is for all of them.
It stays so until the daemon ends. For longer, set log.level and log.levels.

The subsystems are api, forward (streams between tasks), node, p2p, run (processes), slurm,
store, trace and witness. In the log they are the attribute part; what has none is of node.`,
		Example: `  gridnode log level
  gridnode log level p2p=debug
  gridnode log level warn p2p=info`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().LogLevels(cmd.Context(), logLevels(args))
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, []column[api.LogLevel]{
				{head: "SUBSYSTEM", text: func(v api.LogLevel) string { return v.Part }},
				{head: "LEVEL", text: func(v api.LogLevel) string { return v.Level }},
			}, reply.Levels)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// logLevels reads what is to change; nil if that is nothing.
func logLevels(texts []string) *api.LogLevels {
	if len(texts) == 0 {
		return nil
	}
	change := new(api.LogLevels)
	for _, text := range texts {
		part, level, ok := strings.Cut(text, "=")
		if !ok {
			part, level = "", text
		}
		change.Levels = append(change.Levels, api.LogLevel{Part: part, Level: level})
	}
	return change
}
