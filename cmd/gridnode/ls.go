package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// jobFileColumns are the columns of ls.
var jobFileColumns = []column[api.JobFile]{
	{head: "SIZE", text: func(f api.JobFile) string { return formatSize(f.Size) }, full: func(f api.JobFile) string { return fmt.Sprint(f.Size) }},
	{head: "KIND", wide: true, text: func(f api.JobFile) string { return f.Kind }},
	{head: "CHANGED", text: func(f api.JobFile) string { return formatInstant(f.Time) }},
	{head: "NAME", text: func(f api.JobFile) string { return f.Name }},
}

func newLs(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "ls JOB",
		Short: "List the files that a job has left",
		Long: `List the files that a job has left in its directory and that were brought home, and say
what has become of them.`,
		Example: "  gridnode ls 7q3k\n  gridnode ls 7q3k -o json",
		Args:    exactArgs(1, "the ID of a job, or a unique prefix of it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().JobFiles(cmd.Context(), args[0], false)
			if err != nil {
				return apiError(err)
			}
			if l.format == formatJSON {
				return printJSON(cmd.OutOrStdout(), reply)
			}
			if text := filesText(reply); text != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), text)
			} else if len(reply.Files) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), map[string]string{"running": "the job is not over", "coming": "they are on their way"}[reply.State])
			}
			return printList(cmd.OutOrStdout(), l, jobFileColumns, reply.Files)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}
