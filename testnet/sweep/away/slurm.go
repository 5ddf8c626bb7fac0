package away

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gridnode/internal/atomicfile"
)

// Slurm has parts done as arrays of a cluster's Slurm. The directory of the sweep has to be
// shared by its nodes. What sbatch takes from its environment counts (SBATCH_PARTITION,
// SBATCH_ACCOUNT, …).
type Slurm struct {
	Minutes int64 // bound on the run time of a part; 0: that of the partition
}

func (s *Slurm) reach(context.Context) error {
	for _, program := range []string{"sbatch", "squeue"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("there is no Slurm here: %w", err)
		}
	}
	return nil
}

// arrays returns the names of the lists in jobs/, in the order in which they were handed over:
// line k of a list is the part that element k of the array does.
func (w *work) arrays() (names []string, err error) {
	entries, err := os.ReadDir(w.path("jobs"))
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func (w *work) arrayName(list string) string { return w.jobName() + "-" + list }

func (s *Slurm) hand(ctx context.Context, w *work, parts []int) error {
	lists, err := w.arrays()
	if err != nil {
		return err
	}
	for next := len(lists) + 1; len(parts) > 0; next++ {
		n := min(len(parts), atOnce)
		if err := s.submit(ctx, w, fmt.Sprintf("%06d", next), parts[:n]); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

// submit hands an array over.
func (s *Slurm) submit(ctx context.Context, w *work, list string, parts []int) error {
	var lines strings.Builder
	for _, run := range parts {
		fmt.Fprintln(&lines, run)
	}
	if err := atomicfile.Write(w.path("jobs", list), []byte(lines.String()), 0o644); err != nil {
		return err
	}
	script := "#!/bin/sh\n" +
		"PART=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" ../jobs/" + list + ")\nexport PART\n" +
		quoted(w.command("PART", "../parts/")) + "\n" +
		"code=$?\necho $code >../jobs/" + list + ".$SLURM_ARRAY_TASK_ID\nexit $code\n"
	args := []string{
		"--parsable", "--job-name=" + w.arrayName(list), fmt.Sprintf("--array=0-%d", len(parts)-1), "--ntasks=1", "--cpus-per-task=1",
		"--chdir=" + w.path("in"), "--output=../logs/" + list + ".%a",
	}
	if s.Minutes > 0 {
		args = append(args, fmt.Sprintf("--time=%d", s.Minutes))
	}
	if _, err := slurmCommand(ctx, script, "sbatch", args...); err != nil {
		return errors.Join(err, os.Remove(w.path("jobs", list)))
	}
	return nil
}

// slurmCommand runs one of Slurm's programs and returns what it prints. ctx ends it before it
// begins only: what is half done is worse than what is done.
func slurmCommand(ctx context.Context, input, program string, args ...string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// over are the states of jobs that Slurm still knows and that have ended.
var over = []string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}

func (s *Slurm) look(ctx context.Context, w *work) (map[int]news, error) {
	lists, err := w.arrays()
	if err != nil || len(lists) == 0 {
		return nil, err
	}
	var names []string
	for _, list := range lists {
		names = append(names, w.arrayName(list))
	}
	out, err := slurmCommand(ctx, "", "squeue", "--noheader", "--array", "--states=all", "--name="+strings.Join(names, ","), "--format=%j %K %T")
	if err != nil {
		return nil, err
	}
	states := make(map[string]string) // by name and index
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) == 3 {
			states[words[0]+" "+words[1]] = words[2]
		}
	}
	seen := make(map[int]news)
	for at, list := range lists {
		text, err := os.ReadFile(w.path("jobs", list))
		if err != nil {
			return nil, err
		}
		for index, line := range strings.Fields(string(text)) {
			run, err := strconv.Atoi(line)
			if err != nil || run < 0 || run >= len(w.Runs) {
				return nil, fmt.Errorf("%s: line %d: %q is no part", w.path("jobs", list), index+1, line)
			}
			element := fmt.Sprintf("%s.%d", list, index)
			seen[run] = w.ended(states[fmt.Sprintf("%s %d", names[at], index)], element)
		}
	}
	return seen, nil
}

// ended returns how an element of an array stands, by its state in Slurm, which is empty if Slurm
// does not know it any more, and by the exit code that it has left.
func (w *work) ended(state, element string) news {
	n := news{over: state == "" || slices.Contains(over, state), see: "cat " + w.path("logs", element)}
	if !n.over {
		return n
	}
	text, err := os.ReadFile(w.path("jobs", element))
	code, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case state == "CANCELLED":
		n.why = "its job was cancelled"
	case state == "TIMEOUT" || state == "DEADLINE":
		n.why = "the time limit of its job was reached; --part-time says a longer one"
	case err != nil || bad != nil:
		n.killed, n.why = true, strings.TrimSpace("its job has vanished "+strings.ToLower(state))
	case code == 0:
		n.why = "it has left no file"
	default:
		n.killed, n.why = code >= killedCode, fmt.Sprintf("exit code %d", code)
	}
	return n
}

func (s *Slurm) afterwards(w *work) string {
	var names []string
	lists, _ := w.arrays()
	for _, list := range lists {
		names = append(names, w.arrayName(list))
	}
	return fmt.Sprintf("jobs that were handed over go on; 'scancel --name=%s' ends them", strings.Join(names, ","))
}
