package main

import (
	"context"
	"errors"
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
	err = attach(cmd, client, seat, jobs[0].ID)
	if ctx.Err() == nil {
		return err
	}
	cancel := api.IDsRequest{IDs: []string{jobs[0].ID}, Cause: "interrupted before it began"}
	if _, err := client.Cancel(context.WithoutCancel(ctx), cancel); err != nil {
		return apiError(err)
	}
	return failf(128+int(syscall.SIGINT), "job %s was cancelled: %s", shortID(jobs[0].ID), cancel.Cause)
}
