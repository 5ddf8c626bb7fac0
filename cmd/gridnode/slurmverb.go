package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// slurmVerb has the commands of Slurm below it. The program is also called by their names.
const slurmVerb = "slurm"

var slurmCommands = []string{"sbatch", "squeue", "scancel", "sacct", "sinfo", "srun", "scontrol"}

func newSlurm(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   slurmVerb + " install DIRECTORY | COMMAND",
		Short: "Use Slurm's commands with the federation",
		Long: `Use Slurm's commands with the federation: sbatch, squeue, scancel, sacct, sinfo, srun and
scontrol, as far as scripts and tools use them. With install, links to this program by
these names are made in a directory, to be put into PATH; they find the site's home by
GRIDNODE_HOME, or in ~/.gridnode. What each of them takes stands in docs/slurm-commands.md.`,
		Example: `  gridnode slurm install ~/gridnode/bin
  PATH=~/gridnode/bin:$PATH snakemake --cluster sbatch …
  gridnode slurm sbatch --wrap hostname`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "install DIRECTORY", Short: "Make links by the names of Slurm's commands",
		Example: "  gridnode slurm install ~/gridnode/bin",
		Args:    exactArgs(1, "the directory for the links"),
		RunE:    func(cmd *cobra.Command, args []string) error { return installSlurm(cmd, args[0]) },
	})
	for _, c := range []struct {
		name, short, example string
		run                  func(*cobra.Command, *options, []string) error
	}{
		{"sbatch", "Submit a script", "sbatch --parsable -a 0-9%2 job.sh", sbatch},
		{"squeue", "List jobs that are not over", "squeue -h -o '%i %t %R'", squeue},
		{"scancel", "End jobs", "scancel 12 15_3", scancel},
		{"sacct", "List jobs, also those that are over", "sacct -X -P -n -o JobID,State,ExitCode -j 12", sacct},
		{"sinfo", "List sites", "sinfo -o '%P %C %t'", sinfo},
		{"srun", "Run a command and wait for it", "srun -n 4 hostname", srun},
		{"scontrol", "Show, hold, release and requeue jobs", "scontrol show job 12", scontrol},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.name, Short: c.short, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
			Example: "  " + c.example,
			RunE: func(cmd *cobra.Command, args []string) error {
				cmd.Root().SilenceErrors = true
				for _, a := range args {
					if a == "--" {
						break
					}
					if a == "--version" || a == "-V" {
						fmt.Fprintln(cmd.OutOrStdout(), "slurm 22.05.8 (gridnode "+version+")")
						return nil
					}
				}
				if err := c.run(cmd, root, args); err != nil {
					return slurmError(cmd, c.name, err)
				}
				return nil
			},
		})
	}
	return cmd
}

// slurmError says what went wrong as Slurm's commands do. All that is wrong with a command
// line or with the daemon ends with 1 there.
func slurmError(cmd *cobra.Command, name string, err error) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil || errors.Is(err, errWhole) {
		return err // a job's own code, or nothing that is wrong
	}
	text := err.Error()
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: error: %s\n", name, strings.ToUpper(text[:1])+text[1:])
	return exitStatus(exitFailed)
}

// installSlurm makes the links. It leaves alone what is not its own.
func installSlurm(cmd *cobra.Command, dir string) error {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var others []string
	for _, name := range slurmCommands {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		target, err := os.Readlink(path)
		if err != nil || filepath.Base(target) != filepath.Base(program) {
			others = append(others, path)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("%s: not gridnode's link, and left alone: choose another directory; nothing was made", others)
	}
	for _, name := range slurmCommands {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(program, path); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d links to %s in %s: put it into PATH\n", len(slurmCommands), program, dir)
	return nil
}
