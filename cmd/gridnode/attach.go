package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/node/api"
	"gridnode/node/console"
)

func newAttach(root *options) *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use:   "attach JOB",
		Short: "Sit at the terminal of a job, wherever it runs",
		Long: `Sit at the terminal of a job of yours that was submitted with --pty, wherever it runs.
What it showed last is shown again. The job goes on when you leave with the keys of
--detach-keys, or when the connection breaks. One looks at a time: who attaches later
takes the place of who did before. With the job's end comes its exit code.`,
		Example: `  gridnode submit --pty -- bash
  gridnode attach 7q3k
  gridnode attach --detach-keys ctrl-p,ctrl-q 7q3k`,
		Args:              exactArgs(1, "the ID of a job, or a unique prefix of it"),
		ValidArgsFunction: completeJobs(root, jobsAlive),
		RunE: func(cmd *cobra.Command, args []string) error {
			seat, err := newSeat(cmd, true, keys)
			if err != nil {
				return err
			}
			return attach(cmd, root.client(), seat, args[0])
		},
	}
	addDetachKeys(cmd, &keys)
	return cmd
}

func addDetachKeys(cmd *cobra.Command, keys *string) {
	cmd.Flags().StringVar(keys, "detach-keys", detachDefault, "`KEYS` that leave the terminal, separated by commas")
}

// attach sits at the terminal of a job until it ends, once it has begun.
func attach(cmd *cobra.Command, client *api.Client, s *seat, id string) error {
	request := console.Request{Wait: true, TTY: true}
	s.fill(&request)
	c, err := client.Console(cmd.Context(), id, &request)
	if err != nil {
		return apiError(err)
	}
	defer c.Close()
	code, reason, err := s.use(c)
	switch {
	case errors.Is(err, errDetached):
		fmt.Fprintf(cmd.ErrOrStderr(), "\r\ndetached: the job goes on; 'gridnode attach %s' comes back\n", id)
		return nil
	case errors.Is(err, errBroken):
		return failf(exitFailed, "%w; 'gridnode attach %s' comes back", err, id)
	case err != nil:
		return err
	case code < 0:
		return failf(exitFailed, "detached: %s", reason)
	}
	reply, err := client.Wait(cmd.Context(), api.IDsRequest{IDs: []string{id}})
	if err != nil {
		return apiError(err)
	}
	if err := new(luggage).settle(cmd, client, reply.Jobs, false); err != nil {
		return err
	}
	return outcome(cmd, client, reply.Jobs, false, true)
}
