package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/node/api"
)

// runOptions are those of srun: of sbatch, and some of its own that say how tasks are shown
// or bound.
var runOptions = append(slurm.Batch(), slurm.Options{
	{Long: "label", Short: 'l'}, {Long: "unbuffered", Short: 'u'}, {Long: "pty", Value: slurm.Optional}, {Long: "mpi", Value: slurm.Required},
	{Long: "overlap"}, {Long: "exact"}, {Long: "kill-on-bad-exit", Short: 'K', Value: slurm.Optional}, {Long: "cpu-bind", Value: slurm.Required},
	{Long: "jobid", Value: slurm.Required}, {Long: "immediate", Short: 'I', Value: slurm.Optional}, {Long: "preserve-env", Short: 'E'},
}...)

// srun starts the tasks of a command: within a job at once, else in a job of its own, whose
// output comes as it is written.
func srun(cmd *cobra.Command, root *options, args []string) error {
	given, line, err := runOptions.Parse(args)
	if err != nil {
		return err
	}
	if len(line) == 0 {
		return errors.New("no command given to execute")
	}
	s, flags := newBatch(cmd)
	var lines []slurm.Line
	label := false
	for _, g := range given {
		switch g.Name {
		case "label":
			label = true
		case "unbuffered", "pty", "mpi", "overlap", "exact", "kill-on-bad-exit", "cpu-bind", "jobid", "immediate", "preserve-env":
		default:
			lines = append(lines, slurm.Line{Given: g})
		}
	}
	if _, err := s.take(flags, "", lines); err != nil {
		return err
	}
	if os.Getenv("GRIDNODE_JOB_ID") != "" {
		tasks := s.tasks
		if n, err := strconv.ParseInt(os.Getenv("SLURM_NTASKS"), 10, 32); err == nil && !flags.Flags().Changed("ntasks") {
			tasks = n
		}
		return runTasks(cmd, line, int(tasks), label)
	}
	return s.runAway(flags, root, line)
}

// runTasks starts tasks of a job beside each other, and ends with the highest of their codes.
func runTasks(cmd *cobra.Command, line []string, tasks int, label bool) error {
	codes := make([]int, tasks)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range tasks {
		c := exec.CommandContext(cmd.Context(), line[0], line[1:]...)
		n := strconv.Itoa(i)
		c.Env = append(os.Environ(), "SLURM_PROCID="+n, "SLURM_LOCALID="+n, "SLURM_NTASKS="+strconv.Itoa(tasks), "SLURM_NPROCS="+strconv.Itoa(tasks), "SLURM_STEP_ID=0")
		c.Stdin, c.Stdout, c.Stderr = nil, os.Stdout, os.Stderr
		if tasks == 1 {
			c.Stdin = os.Stdin
		}
		wg.Go(func() {
			var err error
			if label {
				err = labelled(c, n, &mu)
			} else {
				err = c.Run()
			}
			codes[i] = codeOf(err)
			if codes[i] == 127 {
				fmt.Fprintf(os.Stderr, "srun: error: %v\n", err)
			}
		})
	}
	wg.Wait()
	code := 0
	for _, c := range codes {
		code = max(code, c)
	}
	return exitStatus(code)
}

// codeOf returns the exit code of a command that has ended.
func codeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 127
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// labelled runs a command and writes its number before each line.
func labelled(c *exec.Cmd, number string, mu *sync.Mutex) error {
	c.Stdout, c.Stderr = nil, nil
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		mu.Lock()
		fmt.Printf("%s: %s\n", number, lines.Text())
		mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, out)
	return c.Wait()
}

// several starts the tasks of a command where it runs; no program of gridnode is needed there.
const several = `n=$1; shift; i=0; p=
while [ $i -lt $n ]; do SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & p="$p $!"; i=$((i+1)); done
c=0; for q in $p; do wait $q; r=$?; [ $r -gt $c ] && c=$r; done; exit $c`

// runAway runs a command in a job of its own. An interrupt ends the job.
func (s *submission) runAway(flags *cobra.Command, root *options, line []string) error {
	name := ""
	if s.tasks > 1 {
		name = line[0]
		line = append([]string{"/bin/sh", "-c", several, "srun", strconv.FormatInt(s.tasks, 10)}, line...)
	}
	spec, err := s.spec(line, name, time.Now())
	if err != nil {
		return err
	}
	client := root.client()
	if err := s.choosePartition(flags, client, &spec); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(flags.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	reply, err := client.Submit(ctx, []api.JobSpec{spec})
	if err != nil {
		return err
	}
	id := reply.Jobs[0].ID
	defer context.AfterFunc(ctx, func() {
		_, _ = client.Cancel(context.WithoutCancel(ctx), api.IDsRequest{IDs: []string{id}, Cause: "srun was interrupted"})
	})()
	var wg sync.WaitGroup
	for _, stream := range []struct {
		name string
		w    io.Writer
	}{{"stdout", flags.OutOrStdout()}, {"stderr", flags.ErrOrStderr()}} {
		wg.Go(func() {
			query := url.Values{"follow": {"true"}, "stream": {stream.name}}
			_ = client.Logs(context.WithoutCancel(ctx), id, query, stream.w) // the end of the job says what matters
		})
	}
	over, err := client.Wait(context.WithoutCancel(ctx), api.IDsRequest{IDs: []string{id}})
	wg.Wait()
	if err != nil {
		return err
	}
	j := &over.Jobs[0]
	if j.State != "done" {
		fmt.Fprintln(flags.ErrOrStderr(), "srun: "+ending(j))
	}
	return exitStatus(jobCode(j))
}
