package main

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newLogs(root *options) *cobra.Command {
	var follow, stderr bool
	var tail int64
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print the output of a job, wherever it runs",
		Long: `Print what a job has written to its standard output so far, or with --stderr to its
standard error. It works while the job runs, wherever it runs, and as long as the job
is kept after its end. With --follow more is printed as it comes, until the job is
over.`,
		Example: `  gridnode logs 7q3k
  gridnode logs -f --stderr 7q3k
  gridnode logs --tail 20 7q3k`,
		Args: exactArgs(1, "the ID of a job, or a unique prefix of it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if tail < -1 {
				return usagef("--tail: %d: want a number of lines, at least 0", tail)
			}
			if tail >= 0 {
				query.Set("tail", strconv.FormatInt(tail, 10))
			}
			if follow {
				query.Set("follow", "true")
			}
			if stderr {
				query.Set("stream", "stderr")
			}
			err := api.NewClient(root.home).Logs(cmd.Context(), args[0], query, cmd.OutOrStdout())
			return apiError(err)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job is over")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "the standard error instead of the standard output")
	cmd.Flags().Int64Var(&tail, "tail", -1, "only the last `COUNT` lines (default: everything)")
	return cmd
}
