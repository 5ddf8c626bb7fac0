package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newLogs(root *options) *cobra.Command {
	var follow, stderr, bare bool
	var tail int64
	cmd := &cobra.Command{
		Use:   "logs JOB...",
		Short: "Print the output of jobs, wherever they run",
		Long: `Print what jobs have written to their standard output so far, or with --stderr to their
standard error. It works while a job runs, wherever it runs, and as long as the job is
kept after its end. With --follow more is printed as it comes, until all are over.

Several jobs, or an array (by its number), are printed with the job's name before each
line; with --follow as the lines come, else job by job.`,
		Example: `  gridnode logs 7q3k
  gridnode logs -f --stderr 7q3k
  gridnode logs --tail 20 7q3k
  gridnode logs -f 120`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("wants the IDs of jobs")
			}
			return nil
		},
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
			client := root.client()
			reply, err := client.Jobs(cmd.Context(), url.Values{"id": args, "all": {"true"}})
			switch {
			case err != nil:
				return apiError(err)
			case len(reply.Jobs) == 1 && len(args) == 1:
				return apiError(client.Logs(cmd.Context(), reply.Jobs[0].ID, query, cmd.OutOrStdout()))
			}
			slices.SortStableFunc(reply.Jobs, func(a, b api.Job) int { return cmp.Compare(indexOf(&a), indexOf(&b)) })
			all := severalLogs{client: client, query: query, bare: bare, w: cmd.OutOrStdout(), jobs: reply.Jobs, follow: follow}
			return apiError(all.print(cmd.Context()))
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the jobs are over")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "the standard error instead of the standard output")
	cmd.Flags().Int64Var(&tail, "tail", -1, "only the last `COUNT` lines of each (default: everything)")
	cmd.Flags().BoolVar(&bare, "no-prefix", false, "of several jobs, leave out the names")
	return cmd
}

// indexOf returns the index of a job in its array, 0 for one of none.
func indexOf(j *api.Job) int64 {
	if j.ArrayIndex == nil {
		return 0
	}
	return *j.ArrayIndex
}

// logsMax is how many outputs are read at a time. Those of an array's later jobs follow when
// earlier ones are over.
const logsMax = 64

// severalLogs prints the outputs of several jobs.
type severalLogs struct {
	client *api.Client
	query  url.Values
	jobs   []api.Job
	bare   bool
	follow bool

	mu sync.Mutex
	w  io.Writer
}

// print prints all of them. The first error is returned when the others are done.
func (l *severalLogs) print(ctx context.Context) error {
	most := 1 // job by job
	if l.follow {
		most = logsMax
	}
	room := make(chan struct{}, most)
	errs := make([]error, len(l.jobs))
	var wg sync.WaitGroup
	for i := range l.jobs {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			j := &l.jobs[i]
			lines := prefixed{to: l, before: cmp.Or(cellText(j.Name), shortID(j.ID)) + ": "}
			if l.bare {
				lines.before = ""
			}
			errs[i] = errors.Join(l.client.Logs(ctx, j.ID, l.query, &lines), lines.flush())
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// heldMax is how much of a line is held back until the rest of it comes.
const heldMax = 64 << 10

// prefixed writes whole lines, each behind the name of its job.
type prefixed struct {
	to     *severalLogs
	before string
	rest   []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	start := 0
	for i, c := range p.rest {
		if c != '\n' && i-start < heldMax {
			continue
		}
		if err := p.line(p.rest[start : i+1]); err != nil {
			return 0, err
		}
		start = i + 1
	}
	p.rest = append(p.rest[:0], p.rest[start:]...)
	return len(b), nil
}

// flush writes a last line that has no end.
func (p *prefixed) flush() error {
	if len(p.rest) == 0 {
		return nil
	}
	return p.line(p.rest)
}

func (p *prefixed) line(text []byte) error {
	whole := append([]byte(p.before), text...)
	if whole[len(whole)-1] != '\n' {
		whole = append(whole, '\n')
	}
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	_, err := p.to.w.Write(whole)
	return err
}
