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
	"path/filepath"
	"slices"
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
	label, input := false, "all"
	for _, g := range given {
		switch g.Name {
		case "label":
			label = true
		case "pty":
			s.atTerminal.pty = true
		case "input":
			input = g.Value
		case "unbuffered", "mpi", "overlap", "exact", "kill-on-bad-exit", "cpu-bind", "jobid", "immediate", "preserve-env":
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
		if os.Getenv("GRIDNODE_RANK") != "" && !flags.Flags().Changed("ntasks") { // within one of the tasks
			tasks = 1
		}
		if s.atTerminal.pty { // of the job, if it has one
			tasks, label = 1, false
		}
		return runTasks(cmd, line, int(tasks), label, input)
	}
	return s.runAway(flags, root, line, input)
}

// runTasks starts tasks of a job beside each other, and ends with the highest of their codes.
// Each reads all of the standard input, or what input says, as it does for Slurm's srun.
func runTasks(cmd *cobra.Command, line []string, tasks int, label bool, input string) error {
	source, only, err := taskInput(input, tasks)
	if err != nil {
		return err
	}
	defer source.Close()
	codes := make([]int, tasks)
	var fed []io.WriteCloser
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range tasks {
		c := exec.CommandContext(cmd.Context(), line[0], line[1:]...)
		n := strconv.Itoa(i)
		c.Env = append(os.Environ(), "GRIDNODE_RANK="+n, "GRIDNODE_LOCAL_RANK="+n, "SLURM_PROCID="+n, "SLURM_LOCALID="+n, "SLURM_NTASKS="+strconv.Itoa(tasks), "SLURM_NPROCS="+strconv.Itoa(tasks), "SLURM_STEP_ID=0")
		c.Stdin, c.Stdout, c.Stderr = nil, os.Stdout, os.Stderr
		switch {
		case only >= 0 && only != i:
		case tasks == 1:
			c.Stdin = source
		default:
			w, err := c.StdinPipe()
			if err != nil {
				return err
			}
			fed = append(fed, w)
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
	go feed(source, fed) // it may wait for input that nobody reads any more
	wg.Wait()
	code := 0
	for _, c := range codes {
		code = max(code, c)
	}
	return exitStatus(code)
}

// inputNone are words of --input for no standard input.
var inputNone = []string{"none", "/dev/null"}

// taskInput opens what tasks read: a file, or the standard input. only is the task that has
// all of it, -1: each has.
func taskInput(input string, tasks int) (source *os.File, only int, err error) {
	switch n, err := strconv.Atoi(input); {
	case err == nil && (n < 0 || n >= tasks):
		return nil, 0, fmt.Errorf("--input %d: the tasks are 0 to %d", n, tasks-1)
	case err == nil:
		return os.Stdin, n, nil
	case input == "all":
		return os.Stdin, -1, nil
	case slices.Contains(inputNone, input):
		input = os.DevNull
	}
	source, err = os.Open(input)
	if err != nil {
		return nil, 0, fmt.Errorf("--input: %w", err)
	}
	return source, -1, nil
}

// feed gives all that is read to each of several. One that has enough is left out.
func feed(source io.Reader, to []io.WriteCloser) {
	buffer := make([]byte, 64<<10)
	for len(to) > 0 {
		n, err := source.Read(buffer)
		to = slices.DeleteFunc(to, func(w io.WriteCloser) bool {
			_, failed := w.Write(buffer[:n])
			return failed != nil
		})
		if err != nil {
			break
		}
	}
	for _, w := range to {
		w.Close()
	}
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

// several is how srun starts the tasks of a command where it runs: as in Slurm one that fails
// leaves the others alone, and the highest code counts; no program of gridnode is needed there.
// Each opens the standard input anew: it is a file.
const several = `n=$1; shift; i=0; p=; exec 3<&0
while [ $i -lt $n ]; do GRIDNODE_RANK=$i GRIDNODE_LOCAL_RANK=$i SLURM_PROCID=$i SLURM_LOCALID=$i "$@" </proc/self/fd/3 3<&- & p="$p $!"; i=$((i+1)); done
c=0; for q in $p; do wait $q; r=$?; [ $r -gt $c ] && c=$r; done; exit $c`

// entering has a command run in the directory of who submitted it where that is seen, although
// its job, which brings its standard input along, has one of its own.
const entering = `d=$1; shift; cd -- "$d" 2>/dev/null; exec "$@"`

// bringInput has the job read what --input says: a file, or what comes through a pipe.
func (s *submission) bringInput(flags *cobra.Command, input string) error {
	switch _, err := strconv.Atoi(input); {
	case slices.Contains(inputNone, input), s.atTerminal.pty:
		return nil
	case err == nil && (input != "0" || s.tasks > 1):
		return fmt.Errorf("--input %s: outside of a job each task has the standard input, or none", input)
	case err != nil && input != "all":
		file, err := os.Open(input)
		if err != nil {
			return fmt.Errorf("--input: %w", err)
		}
		defer file.Close()
		flags.SetIn(file)
	}
	return s.luggage.pipedIn(flags)
}

// runAway runs a command in a job of its own. An interrupt ends the job.
func (s *submission) runAway(flags *cobra.Command, root *options, line []string, input string) error {
	name := line[0]
	if s.atTerminal.pty && s.tasks > 1 {
		return errors.New("--pty: one task has the terminal: leave out --ntasks")
	}
	defer s.luggage.close()
	if err := s.bringInput(flags, input); err != nil {
		return err
	}
	if s.tasks > 1 {
		line = append([]string{"/bin/sh", "-c", several, "srun", strconv.FormatInt(s.tasks, 10)}, line...)
		s.batch = true
	}
	if s.luggage.given() {
		s.luggage.out = []string{outNone}
		if here, err := os.Getwd(); err == nil {
			line = append([]string{"/bin/sh", "-c", entering, "srun", here}, line...)
		}
	}
	spec, err := s.spec(line, filepath.Base(name), time.Now())
	if err != nil {
		return err
	}
	client := root.client()
	if err := s.choosePartition(flags, client, &spec); err != nil {
		return err
	}
	if err := s.luggage.hand(flags, client, &spec); err != nil {
		return err
	}
	if s.atTerminal.pty {
		return s.sitAway(flags, client, spec)
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

// sitAway runs a command with a terminal, and sits at it until the job ends. If nobody can sit
// there, the job is not wanted.
func (s *submission) sitAway(flags *cobra.Command, client *api.Client, spec api.JobSpec) error {
	seat, err := newSeat(flags, true, detachDefault)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(flags.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags.SetContext(ctx)
	reply, err := client.Submit(ctx, []api.JobSpec{spec})
	if err != nil {
		return err
	}
	id := reply.Jobs[0].ID
	j, err := sit(flags, client, seat, id)
	if j == nil && err != nil && !isEnd(err) {
		_, _ = client.Cancel(context.WithoutCancel(ctx), api.IDsRequest{IDs: []string{id}, Cause: "srun was interrupted"}) // it may be over by now
	}
	if j == nil {
		return err
	}
	if j.State != "done" {
		fmt.Fprintln(flags.ErrOrStderr(), "srun: "+ending(j))
	}
	return exitStatus(jobCode(j))
}
