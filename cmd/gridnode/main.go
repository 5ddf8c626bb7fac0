package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/node/api"
)

// options are the flags of every verb.
type options struct {
	home string // absolute

	// Another daemon than that of home.
	socket string // that it listens at for other accounts; empty: none
	remote string // https://HOST; empty: none
	token  string // for remote
}

// commandLine returns the arguments, with the command of Slurm that the program is called by.
func commandLine() []string {
	if name := filepath.Base(os.Args[0]); slices.Contains(slurmCommands, name) {
		return append([]string{slurmVerb, name}, os.Args[1:]...)
	}
	return os.Args[1:]
}

// run executes the command line and returns the exit code.
func run(root *cobra.Command) int {
	cmd, err := root.ExecuteC()
	return report(root, cmd, err)
}

// report says how a command has ended, and returns the exit code.
func report(root, cmd *cobra.Command, err error) int {
	code := exitCode(err)
	var exit *exitError
	if err == nil || errors.As(err, &exit) && exit.err == nil {
		return code
	}
	w := root.ErrOrStderr()
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "%s: %s\n", cmd.CommandPath(), line)
	}
	if code == exitUsage {
		fmt.Fprintf(w, "See '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// newRoot returns the command line of the whole program.
func newRoot() *cobra.Command { return newRootFor(nil) }

// newRootFor returns what a command line needs of it: the one verb that it begins with, if it
// does. Making all of them takes longer than what most do.
func newRootFor(line []string) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "gridnode",
		Short: "Couple compute sites into a federation without a centre",
		Long: `gridnode runs one site of a federation of compute sites. A site publishes what it
offers and at what price; jobs go where their deadline, budget and policy are met. 'gridnode manual' says where the
manual is.

` + exitCodesHelp,
		Example: `  gridnode init --site physics --price 0.5
  gridnode start --detach
  gridnode submit -n 4 -t 10m --deadline 1h --budget 5 -W -- ./simulate --steps 1000
  gridnode status
  gridnode logs JOB`,
		Args:          noVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(o.resolveDaemon(cmd.Flags().Changed("home")), o.resolve())
		},
	}
	root.PersistentFlags().StringVar(&o.home, "home", "", "home `DIRECTORY` of the site (default $GRIDNODE_HOME, else ~/.gridnode)")
	_ = root.MarkPersistentFlagDirname("home")
	root.PersistentFlags().StringVar(&o.socket, "socket", "", "`SOCKET` of a daemon that other accounts may use, instead of a home (default $GRIDNODE_SOCKET)")
	_ = root.MarkPersistentFlagFilename("socket")
	root.PersistentFlags().StringVar(&o.remote, "remote", "", "`URL` of a daemon elsewhere, with a token in $GRIDNODE_TOKEN or $GRIDNODE_TOKEN_FILE (default $GRIDNODE_REMOTE)")
	knowBuild()
	root.SetVersionTemplate("{{build}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{Use: "help", Short: "Explain a verb", Hidden: true, Args: cobra.ArbitraryArgs, RunE: helpFor})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(&cobra.Group{ID: groupSite, Title: "Site:"}, &cobra.Group{ID: groupJob, Title: "Jobs:"}, &cobra.Group{ID: groupFederation, Title: "Federation:"})
	verbs := slices.Concat(clientVerbs, wholeVerbs)
	if i := slices.IndexFunc(verbs, func(v verb) bool { return len(line) > 0 && v.name == line[0] }); i >= 0 {
		verbs = verbs[i : i+1]
	}
	for _, v := range verbs {
		cmd := v.make(&o)
		cmd.GroupID = v.group
		cmd.DisableFlagsInUseLine = true
		root.AddCommand(cmd)
	}
	for _, verb := range extraVerbs {
		root.AddCommand(verb())
	}
	addCompletions(root, &o)
	return root
}

// knowBuild has templates know this build, which is read only when it is asked for. cobra keeps
// such functions for all commands of a process together.
var knowBuild = sync.OnceFunc(func() {
	cobra.AddTemplateFunc("build", func() string { return thisBuild().line() })
})

// extraVerbs are those of builds for a purpose of their own.
var extraVerbs []func() *cobra.Command

// verb is a command below the program's own.
type verb struct {
	group string // in the help text
	name  string
	make  func(*options) *cobra.Command
}

// clientVerbs are those that ask the daemon and print what it says. What they need starts
// cheaply: no verb here may bring in a protocol, the network, the store or an engine.
var clientVerbs = []verb{
	{groupSite, "stop", newStop}, {groupSite, "drain", newDrain}, {groupSite, "log", newLog}, {groupSite, "users", newUsers}, {groupSite, "guests", newGuests}, {groupSite, "history", newHistory}, {groupSite, "token", newToken}, {groupSite, "web", newWeb},
	{groupJob, "submit", newSubmit}, {groupJob, "status", newStatus}, {groupJob, "why", newWhy}, {groupJob, "logs", newLogs}, {groupJob, "ls", newLs}, {groupJob, "wait", newWait}, {groupJob, "cancel", newCancel},
	{groupJob, "hold", newHold}, {groupJob, "release", newRelease}, {groupJob, "requeue", newRequeue}, {groupJob, "attach", newAttach}, {groupJob, "exec", newExec}, {groupJob, slurmVerb, newSlurm},
	{groupFederation, "sites", newSites}, {groupFederation, "quotes", newQuotes}, {groupFederation, "peers", newPeers}, {groupFederation, "bank", newBank}, {groupFederation, "leases", newLeases}, {groupFederation, "lease", newLease}, {groupFederation, "links", newLinks}, {groupFederation, "link", newLink}, {groupFederation, "datasets", newDataSets}, {groupFederation, "dataset", newDataSet},
	{groupFederation, "members", newMembers}, {groupFederation, "renew", newRenew}, {groupFederation, "revoke", newRevoke},
	{"", "manual", newManual}, {"", "version", newVersion},
}

// Groups of verbs in the help text.
const (
	groupSite       = "site"
	groupJob        = "job"
	groupFederation = "federation"
)

// resolve finds the home directory.
func (o *options) resolve() error {
	if o.home == "" {
		o.home = os.Getenv("GRIDNODE_HOME")
	}
	if o.home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return usagef("no home directory: %w: name one with --home or GRIDNODE_HOME", err)
		}
		o.home = filepath.Join(user, ".gridnode")
		if _, err := os.Stat(o.home); errors.Is(err, fs.ErrNotExist) && ownsSystemHome() {
			o.home = api.SystemHome
		}
	}
	home, err := filepath.Abs(o.home)
	if err != nil {
		return usagef("home directory %q: %w", o.home, err)
	}
	o.home = home
	return nil
}

// ownsSystemHome says whether a command means the site that the packages set up: it is that of
// root, and of the account that the daemon runs as, unless they have one of their own.
func ownsSystemHome() bool {
	info, err := os.Stat(api.SystemHome)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(s.Uid) == os.Geteuid())
}

// noVerb is the argument check of a command that only has verbs below it.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return usagef("unknown verb %q%s", args[0], didYouMean("", args[0], names))
}

// exactArgs checks for n arguments, called what in the error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > n && n == 0:
			return usagef("takes no arguments, got %q", args[0])
		case len(args) > n:
			return usagef("takes %s only, got %q as well", what, args[n])
		case len(args) < n:
			return usagef("wants %s", what)
		}
		return nil
	}
}

// flagError says which flag was meant.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return usagef("--%s: %q: %w", invalid.GetFlag().Name, invalid.GetValue(), plainCause(invalid))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usagef("%w", err)
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		if short == unknown.GetSpecifiedName() {
			return usagef("unknown flag -%s", short)
		}
		return usagef("unknown flag -%s in -%s", unknown.GetSpecifiedName(), short)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return usagef("unknown flag --%s%s", unknown.GetSpecifiedName(), didYouMean("--", unknown.GetSpecifiedName(), names))
}

// plainCause says what is wrong with a flag's value, without naming functions of
// the standard library.
func plainCause(invalid *pflag.InvalidValueError) error {
	var number *strconv.NumError
	cause := invalid.Unwrap()
	switch {
	case !errors.As(cause, &number):
		return cause
	case errors.Is(number.Err, strconv.ErrRange):
		return errors.New("the number is too large")
	case number.Func == "ParseBool":
		return errors.New("want true or false")
	}
	return errors.New("want a number")
}

func helpFor(cmd *cobra.Command, args []string) error {
	target, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return noVerb(cmd.Root(), args)
	}
	return target.Help()
}
