package main

import (
	"errors"

	"github.com/spf13/cobra"

	"gridnode/node/console"
)

func newExec(root *options) *cobra.Command {
	var tty bool
	var keys string
	cmd := &cobra.Command{
		Use:   "exec [-t] JOB [--] COMMAND [ARG...]",
		Short: "Run a command beside a job, where that runs",
		Long: `Run a command beside a job of yours that runs, where that runs: as its account, inside
its walls and limits, with its environment and in its directory. The command ends with
the job at the latest, and when you interrupt it. Its input and its outputs are those of
this verb, and so is its exit code.`,
		Example: `  gridnode exec 7q3k -- ps
  gridnode exec 7q3k -- tail -n 3 progress.log
  gridnode exec -t 7q3k -- bash`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("wants the ID of a job and a command")
			}
			return nil
		},
		ValidArgsFunction: completeJobs(root, jobsAlive),
		RunE: func(cmd *cobra.Command, args []string) error {
			seat, err := newSeat(cmd, tty, keys)
			if err != nil {
				return err
			}
			command := args[1:]
			if command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return usagef("wants a command behind --")
			}
			request := console.Request{Args: command, TTY: tty}
			seat.fill(&request)
			c, err := root.client().Console(cmd.Context(), args[0], &request)
			if err != nil {
				return apiError(err)
			}
			defer c.Close()
			code, _, err := seat.use(c)
			switch {
			case errors.Is(err, errDetached):
				return nil
			case errors.Is(err, errBroken):
				return failf(exitFailed, "the connection to the job was lost, and the command ended")
			case err != nil:
				return err
			}
			return exitStatus(int(code))
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the job belongs to the command
	cmd.Flags().BoolVarP(&tty, "tty", "t", false, "give the command a terminal")
	addDetachKeys(cmd, &keys)
	return cmd
}
