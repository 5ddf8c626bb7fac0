package main

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// streams reports whether what the job writes is printed as it comes: it is one job, and
// nobody has asked for anything else.
func (s *submission) streams(spec *api.JobSpec) bool {
	return s.wait && !s.quiet && !s.parsable && !s.numbers && s.listing.format != formatJSON && len(spec.Array) == 0 && spec.Output == ""
}

// submitAndStream hands the job over, prints its ID on standard error and what it writes as it
// comes, and returns once it is over and all of that is printed.
func (s *submission) submitAndStream(cmd *cobra.Command, client *api.Client, spec api.JobSpec) ([]api.Job, error) {
	var copies sync.WaitGroup
	defer copies.Wait()
	reply, err := client.SubmitAndWait(cmd.Context(), []api.JobSpec{spec}, func(ids []string) {
		s.stored = true
		fmt.Fprintln(cmd.ErrOrStderr(), "job "+ids[0])
		for stream, w := range map[string]io.Writer{"stdout": cmd.OutOrStdout(), "stderr": cmd.ErrOrStderr()} {
			copies.Go(func() {
				if err := client.Logs(cmd.Context(), ids[0], url.Values{"follow": {"true"}, "stream": {stream}}, w); err != nil && cmd.Context().Err() == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "note: its %s is not printed to the end: %v; see 'gridnode logs %s'\n", stream, apiError(err), shortID(ids[0]))
				}
			})
		}
	})
	if err != nil {
		return nil, err
	}
	return reply.Jobs, nil
}

// stdinWait is how long a pipe may say nothing before it is taken for one that nobody writes to.
const stdinWait = time.Second

// pipedIn brings along what comes through a pipe, or from a file, as the job's standard input,
// if one waits for the job. A pipe that says nothing is left alone: a shell on another machine
// has one that never ends.
func (l *luggage) pipedIn(cmd *cobra.Command) error {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || l.stdin != "" {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	if clientOnly {
		return errWhole
	}
	r := bufio.NewReader(file)
	said := make(chan error, 1)
	go func() {
		_, err := r.Peek(1)
		said <- err
	}()
	select {
	case err := <-said:
		if err != nil {
			return nil // it is empty
		}
	case <-time.After(stdinWait):
		fmt.Fprintln(cmd.ErrOrStderr(), "note: standard input says nothing yet and is not brought along; --in - waits for it")
		return nil
	}
	l.stdin = stdinName
	_, err = l.spool(stdinName, r)
	return err
}
