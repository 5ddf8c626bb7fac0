package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// atTerminal is the flags of submit about a job with a terminal.
type atTerminal struct {
	pty  bool
	keys string
}

func (t *atTerminal) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.pty, "pty", false, "give the job a terminal, and sit at it until it ends (see 'attach')")
	addDetachKeys(cmd, &t.keys)
}

func (t *atTerminal) spec(spec *api.JobSpec, _ time.Time) error {
	if !t.pty {
		return nil
	}
	switch {
	case spec.Array != nil:
		return errors.New("--pty is for one job, not for an array")
	case spec.Coallocation != nil || spec.Spread:
		return errors.New("--pty is for a job at one site")
	case spec.Module != "":
		return errors.New("--pty is not for modules of WebAssembly")
	}
	spec.Terminal = true
	for _, setting := range spec.Env {
		if strings.HasPrefix(setting, "TERM=") {
			return nil
		}
	}
	if kind := os.Getenv("TERM"); kind != "" {
		spec.Env = append(spec.Env, "TERM="+kind)
	}
	return nil
}

// sitDown submits a job and sits at its terminal. Who is interrupted before the job has begun
// does not want it any more.
func (s *submission) sitDown(cmd *cobra.Command, client *api.Client, spec api.JobSpec) error {
	seat, err := newSeat(cmd, true, s.atTerminal.keys)
	if err != nil {
		return err
	}
	s.wait = false // it is sat at instead
	jobs, err := s.submit(cmd, client, spec)
	if err != nil {
		return apiError(err)
	}
	if jobs[0].State == "refused" {
		return outcome(cmd, client, jobs, true, false)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SetContext(ctx)
	over, err := sit(cmd, client, seat, jobs[0].ID)
	switch {
	case over != nil:
		return outcome(cmd, client, []api.Job{*over}, false, true)
	case ctx.Err() == nil:
		return err
	}
	cancel := api.IDsRequest{IDs: []string{jobs[0].ID}, Cause: "interrupted before it began"}
	if _, err := client.Cancel(context.WithoutCancel(ctx), cancel); err != nil {
		return apiError(err)
	}
	return failf(128+int(syscall.SIGINT), "job %s was cancelled: %s", shortID(jobs[0].ID), cancel.Cause)
}

// endMax is how long a job may take to be over whose terminal is gone.
const endMax = 2 * time.Second

// sit sits at the terminal of a job until it ends. Of one that was over before anybody could sit
// there it shows what it wrote, and returns it; else the job is nil, and the error attach's.
func sit(cmd *cobra.Command, client *api.Client, s *seat, id string) (over *api.Job, err error) {
	err = attach(cmd, client, s, id)
	if err == nil || isEnd(err) {
		return nil, err
	}
	ctx := context.WithoutCancel(cmd.Context()) // its output is of use to who was interrupted, too
	timeout := api.Seconds(1)
	if errors.Is(err, errBroken) {
		timeout = api.Seconds(endMax.Microseconds())
	}
	reply, werr := client.Wait(ctx, api.IDsRequest{IDs: []string{id}, Timeout: timeout})
	if werr != nil || reply.TimedOut || len(reply.Jobs) != 1 {
		return nil, err
	}
	if !s.seen {
		_ = client.Logs(ctx, id, url.Values{"stream": {"stdout"}}, cmd.OutOrStdout()) // the end of the job says what matters
	}
	return &reply.Jobs[0], nil
}

// isEnd reports whether an error is nothing but the exit code of a job.
func isEnd(err error) bool {
	var code *exitError
	return errors.As(err, &code) && code.err == nil
}
