package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

// submission is the flags of submit.
type submission struct {
	id, name             string
	tasks, cpus          int64
	time                 string
	memory, memoryPerCPU string
	array                string
	dir                  string
	elsewhere            bool // the daemon is on another machine
	export               string
	env                  []string
	deadline, budget     string
	policy, site         string
	gpus                 string // as a100:2
	wasm                 string // path of a module; empty: a program of the site runs
	division             division
	luggage              luggage
	terms                terms
	atTerminal           atTerminal
	keeping              keeping
	partition            string // a site, if one is called so
	lenient              bool   // what a script's #SBATCH lines ask for and cannot be is left out
	numbers              bool   // print numbers
	ttl                  int64  // ttlDefault: not given
	tasksGiven           bool
	once                 bool // the command starts the tasks itself
	batch                bool // and that because it is a script of Slurm's
	wait, dryRun         bool
	quiet, parsable      bool
	listing              listing

	prefix, suffix string // of what is printed
	stored         bool   // the daemon has said that the jobs are safe
}

// ttlDefault leaves the delegation time-to-live to the settings.
const ttlDefault = math.MinInt64

func newSubmit(root *options) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit [flags] [--] COMMAND [ARG...] | SCRIPT [ARG...] | - | --wasm MODULE [--] [ARG...]",
		Short: "Submit a job, or an array of jobs",
		Long: `Submit a command, or a script that begins with #! ("-" reads one from standard
input). Flags may also stand in the script's first comments, as "#GRID --time 1h" or
"#SBATCH -n 4"; the command line counts before them. The job's ID is printed as
soon as the job is safely stored and a site has it; any unique prefix of the ID will
do in other verbs.

Spans are minutes (90), [d-]hh:mm:ss or durations (1h30m). A deadline is a span from
now or an instant. Sizes take K, M, G, T and count M without one. A job that runs
longer than its --time is ended.

Policies: cheapest (lowest cost by the deadline), fastest (earliest end within the
budget), local (here), spill (here, else elsewhere by falling speed). With a
deadline, budget or site and no policy the cheapest is meant; otherwise the site's
market.policy. If no site can meet deadline and budget, the best that could be had
is printed and the exit code is 5.

With -n N the command is started N times, at the same moment: each of these tasks finds its
number in GRIDNODE_RANK. The first that fails ends the job, with its exit code. With --once
the command is started once for all, and starts its tasks itself, as mpirun and srun do; so
is a script with #SBATCH lines, and what has a terminal (--pty).

With --components or --coalloc the job runs at several sites at the same moment, or at
none: each task finds the addresses of all in GRIDNODE_PEERS. The other sites must lend
processors (leases.lend). Each task has the files that the job brings along (--in), and what it
leaves comes home in a folder rank-N. Data sets are named with --input: by cf, the placement
then, components go where they are, or can be copied to soonest, and each task finds their
paths in GRIDNODE_INPUT_0, GRIDNODE_INPUT_1, … (see 'dataset').

With --spread the tasks run here, or here and on processors that this site leases for them
(delegation.policy s-strd or x-strd).

With --wasm the job is a module of WebAssembly (WASI preview 1, at most 64 MiB), which is
brought to where it runs; what follows are its arguments. It sees one empty directory as /,
its arguments and --env, and has no network. --mem bounds its memory. A site that runs no
programs of others may run modules (wasm.guests of its settings).

With --gpus the job runs where as many GPUs are, and is placed like any other; no other job
has them meanwhile. It finds them in CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES.

With --wait the exit code is the job's own; of an array, the highest. What a single job
writes is printed as it comes, its ID on standard error, and what comes through a pipe is
its standard input; with --quiet only the ID is printed.

With --in and --workdir files are brought along, wherever the job runs, and what is new or
changed in its directory is brought home, or what --out names (docs/files.md).

` + exitCodesHelp,
		Example: `  gridnode submit -- hostname
  gridnode submit -n 4 -t 30m --deadline 2h --budget 5 -- ./simulate input.dat
  gridnode submit -n 4 -W -- sh -c 'echo "$GRIDNODE_RANK of $GRIDNODE_NTASKS"'
  gridnode submit -n 4 --once -- mpirun -n 4 ./model
  gridnode submit --policy fastest -a 0-199 -- sh -c 'work $GRIDNODE_ARRAY_TASK_ID'
  gridnode submit --dry-run --deadline 1h -n 16 -- ./simulate
  gridnode submit --components 8@physics,8,16 -- /opt/poisson
  gridnode submit -n 32 --coalloc 2..4 --min-per-site 8 -t 1h -- /opt/poisson
  gridnode submit -n 4 --coalloc 1 --input genome:hg38 -- sh -c 'wc -c <"$GRIDNODE_INPUT_0"'
  gridnode submit --gpus a100:2 -c 8 -t 2h --policy cheapest --budget 5 -- python3 train.py
  gridnode submit --wasm simulate.wasm --mem 256M --policy cheapest -- --steps 1000
  gridnode submit --policy cheapest --in data.csv -W analyse.py
  gridnode submit --workdir project --out 'plots/*' -W -- make plots
  gridnode submit --pty --site physics -- bash
  gridnode submit -W job.sh && echo fine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, root, args)
		},
	}
	s.flags(cmd)
	return cmd
}

// flags are those of submit.
func (s *submission) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the command belongs to it
	f.SortFlags = false
	f.StringVarP(&s.name, "job-name", "J", "", "`NAME` of the job, at most 128 bytes (default: that of the program)")
	f.Int64VarP(&s.tasks, "ntasks", "n", 1, "`COUNT` of tasks: the command is started that often, at the same moment")
	f.BoolVar(&s.once, "once", false, "start the command once, as it starts its tasks itself (mpirun, srun), and not once for each")
	f.Int64VarP(&s.cpus, "cpus-per-task", "c", 1, "`COUNT` of processors of each process")
	f.StringVarP(&s.time, "time", "t", "", "`SPAN` that bounds the run time here; elsewhere it follows the site's speed (default: job.time of the settings)")
	f.StringVar(&s.gpus, "gpus", "", "GPUs for the whole job: a number, or a `TYPE:NUMBER` such as a100:2")
	f.StringVar(&s.memory, "mem", "", "`SIZE` of the memory of the whole job, shared out evenly over its processors")
	f.StringVar(&s.memoryPerCPU, "mem-per-cpu", "", "`SIZE` of the memory per processor")
	f.StringVarP(&s.array, "array", "a", "", "one job for each index of `LIST`, e.g. 0-199, 1,3,5, 0-20:2 or 0-99%10, ten at a time; each sees its own in GRIDNODE_ARRAY_TASK_ID")
	f.StringVarP(&s.dir, "chdir", "D", "", "working `DIRECTORY` at this site; elsewhere a scratch directory is used (default: the current one; a scratch directory if that is closed to this account)")
	f.StringVar(&s.export, "export", "NONE", "environment to take along, a `LIST`: NONE, ALL, or names and settings separated by commas (HOME,MODE=fast)")
	f.StringArrayVarP(&s.env, "env", "e", nil, "a setting `NAME=VALUE` for the job's environment; may be repeated")
	f.StringVar(&s.deadline, "deadline", "", "`WHEN` the job must have ended: a span from now or an instant (RFC 3339)")
	f.StringVar(&s.budget, "budget", "", "most `CREDITS` the job may cost")
	f.StringVar(&s.policy, "policy", "", "`POLICY`: cheapest, fastest, local or spill")
	f.StringVar(&s.wasm, "wasm", "", "run this `MODULE`, a file of WebAssembly, instead of a program of the site")
	f.StringVar(&s.site, "site", "", "run only at this `SITE` (name or ID)")
	f.Int64Var(&s.ttl, "ttl", ttlDefault, fmt.Sprintf("how often a request to lend processors for the job may be delegated from site to site, 0 (never) to %d (default: delegation.hops of the settings)", grid.TTLMax))
	f.Lookup("ttl").DefValue = "0" // the help says it
	s.luggage.flags(f)
	s.terms.flags(cmd)
	s.keeping.flags(cmd)
	s.division.flags(cmd)
	s.atTerminal.flags(cmd)
	f.BoolVarP(&s.wait, "wait", "W", false, "wait for the end and exit with the job's code")
	f.BoolVar(&s.dryRun, "dry-run", false, "print what every site would charge and when it would be done; submit nothing")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "print the ID and nothing else")
	f.BoolVar(&s.parsable, "parsable", false, "same as --quiet")
	f.BoolVar(&s.numbers, "numbers", false, "print numbers instead of IDs, of an array one")
	f.BoolVar(&s.lenient, "lenient", false, "leave out what #SBATCH lines ask for and gridnode cannot do, with a note, instead of refusing the script")
	f.StringVarP(&s.partition, "partition", "p", "", "as --site if a site has this `NAME`; else left out with a note")
	f.StringVar(&s.id, "id", "", "`ID` of the job, 26 characters, so that a submission can be repeated safely (default: drawn at random)")
	addListingFlags(cmd, &s.listing)
	_ = cmd.MarkFlagDirname("chdir")
	_ = cmd.MarkFlagFilename("wasm", "wasm")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(namesOf(grid.GoalLocal, grid.GoalSpill), cobra.ShellCompDirectiveNoFileComp))
}

func (s *submission) run(cmd *cobra.Command, root *options, args []string) error {
	s.elsewhere = root.remote != ""
	defer s.luggage.close()
	line, name, err := s.command(cmd, args)
	if err == nil {
		err = s.luggage.pack(cmd.Context(), cmd.InOrStdin())
	}
	if err == nil && s.wait && !s.dryRun && s.array == "" && s.wasm == "" && !(len(args) > 0 && args[0] == "-") {
		err = s.luggage.pipedIn(cmd)
	}
	if err == nil {
		line, err = s.luggage.program(line)
	}
	if err != nil {
		return usagef("%w", err)
	}
	return s.send(cmd, root, line, name)
}

// send submits a command line, or says what would become of it.
func (s *submission) send(cmd *cobra.Command, root *options, line []string, name string) error {
	s.tasksGiven = cmd.Flags().Changed("ntasks")
	spec, err := s.spec(line, name, time.Now())
	if err != nil {
		return usagef("%w", err)
	}
	client := root.client()
	if s.wasm != "" {
		if err := s.handModule(cmd, client, &spec); err != nil {
			return err
		}
	}
	if err := s.choosePartition(cmd, client, &spec); err != nil {
		return err
	}
	if err := s.luggage.hand(cmd, client, &spec); err != nil {
		return err
	}
	if spec.Terminal && spec.Files != nil && spec.Files.Stdin != "" {
		return usagef("--in -: the standard input of a job with --pty is its terminal")
	}
	if s.dryRun {
		return s.preview(cmd, client, spec)
	}
	if s.atTerminal.pty {
		return s.sitDown(cmd, client, spec)
	}
	jobs, err := s.submit(cmd, client, spec)
	switch {
	case err != nil && s.stored:
		return failf(exitCode(apiError(err)), "%w: what was submitted goes on; see 'gridnode wait' when the daemon is back", err)
	case errors.Is(err, api.ErrBroken):
		return failf(exitFailed, "%w: job %s may have been taken; see 'gridnode status', or repeat with --id %s", err, spec.ID, spec.ID)
	case err != nil:
		return apiError(err)
	}
	switch s.listing.format {
	case formatJSON, formatCSV, formatName:
		if err := printList(cmd.OutOrStdout(), s.listing, jobColumns, jobs); err != nil {
			return err
		}
	}
	if s.listing.format != formatJSON && !s.quiet && !s.parsable {
		cheaper(cmd, client, jobs)
	}
	if s.wait {
		if err := s.luggage.settle(cmd, client, jobs, s.quiet || s.parsable); err != nil {
			return err
		}
	}
	return outcome(cmd, client, jobs, s.quiet || s.parsable, s.wait)
}

// submit hands the job over and prints IDs as soon as the jobs are safe, so that a
// user who stops waiting has them.
func (s *submission) submit(cmd *cobra.Command, client *api.Client, spec api.JobSpec) ([]api.Job, error) {
	stored := func(ids []string) {
		s.stored = true
		if s.listing.format == formatTable || s.listing.format == formatWide {
			fmt.Fprintln(cmd.OutOrStdout(), s.prefix+strings.Join(ids, "\n")+s.suffix)
		}
	}
	if s.streams(&spec) {
		return s.submitAndStream(cmd, client, spec)
	}
	if s.wait && !s.numbers {
		reply, err := client.SubmitAndWait(cmd.Context(), []api.JobSpec{spec}, stored)
		if err != nil {
			return nil, err
		}
		return reply.Jobs, nil
	}
	reply, err := client.Submit(cmd.Context(), []api.JobSpec{spec})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(reply.Jobs))
	for i := range reply.Jobs {
		ids[i] = reply.Jobs[i].ID
	}
	if !s.numbers {
		stored(ids)
		return reply.Jobs, nil
	}
	stored([]string{numberOf(reply.Jobs)})
	if s.wait {
		over, err := client.Wait(cmd.Context(), api.IDsRequest{IDs: ids})
		if err != nil {
			return nil, err
		}
		return over.Jobs, nil
	}
	return reply.Jobs, nil
}

// command returns the command line to run, and for a script a name. Options in a
// script are taken over.
func (s *submission) command(cmd *cobra.Command, args []string) (line []string, name string, err error) {
	if s.wasm != "" {
		return append([]string{filepath.Base(s.wasm)}, args...), "", nil
	}
	if len(args) == 0 {
		return nil, "", errors.New("wants a command or a script")
	}
	if cmd.ArgsLenAtDash() < 0 && (args[0] == "-" || isScript(args[0])) {
		script, err := readScript(args[0], cmd.InOrStdin())
		if err != nil {
			return nil, "", err
		}
		if s.batch, err = script.options(cmd.Flags(), s.lenient, cmd.ErrOrStderr()); err != nil {
			return nil, "", err
		}
		line, err = s.luggage.script(script, args[1:])
		return line, script.name(), err
	}
	if args[0] == "" {
		return nil, "", errors.New("the command is empty")
	}
	if err := plainFile(args[0]); err != nil {
		return nil, "", err
	}
	return args, "", nil
}

// spec checks the flags and returns the job they describe.
func (s *submission) spec(line []string, name string, now time.Time) (api.JobSpec, error) {
	spec := api.JobSpec{ID: s.id, Name: name, Args: line, Tasks: s.tasks, CPUsPerTask: s.cpus, Once: s.once || s.batch, Policy: s.policy, Site: s.site}
	if s.name != "" {
		spec.Name = s.name
	}
	if spec.ID == "" {
		spec.ID = newJobID().String()
	}
	for _, bound := range []struct {
		flag  string
		value int64
	}{{"--ntasks", s.tasks}, {"--cpus-per-task", s.cpus}} {
		if bound.value < 1 {
			return spec, fmt.Errorf("%s: %d: want at least 1", bound.flag, bound.value)
		}
	}
	if _, err := grid.ParseGoal(s.policy); err != nil && s.policy != "" {
		return spec, fmt.Errorf("--policy: %w", err)
	}
	if s.gpus != "" {
		need, err := grid.ParseGPUs(s.gpus)
		if err != nil {
			return spec, fmt.Errorf("--gpus: %w", err)
		}
		spec.GPUs = need.String()
	}
	if s.ttl != ttlDefault {
		if s.ttl < 0 || s.ttl > grid.TTLMax {
			return spec, fmt.Errorf("--ttl: %d: want 0 to %d", s.ttl, grid.TTLMax)
		}
		ttl := int32(s.ttl)
		spec.TTL = &ttl
	}
	for _, step := range []func(*api.JobSpec, time.Time) error{s.times, s.memories, s.surroundings, s.terms.spec, s.keeping.spec, s.divide, s.atTerminal.spec} {
		if err := step(&spec, now); err != nil {
			return spec, err
		}
	}
	for _, text := range slices.Concat(spec.Args, spec.Env, []string{spec.Name, spec.Dir}) {
		if !utf8.ValidString(text) {
			return spec, fmt.Errorf("%q is not valid UTF-8: put such bytes into a file", text)
		}
	}
	return spec, nil
}

func (s *submission) times(spec *api.JobSpec, now time.Time) error {
	if s.time != "" {
		span, err := parseSpan(s.time)
		if err != nil {
			return fmt.Errorf("--time: %w", err)
		}
		spec.Time = api.Seconds(span)
	}
	if s.deadline != "" {
		at, err := parseDeadline(s.deadline, now)
		if err != nil {
			return fmt.Errorf("--deadline: %w", err)
		}
		spec.Deadline = api.InstantOf(at)
	}
	if s.budget != "" {
		credits, err := grid.ParseCredits(s.budget)
		if err != nil {
			return fmt.Errorf("--budget: %w", err)
		}
		amount := api.Amount(credits)
		spec.Budget = &amount
	}
	if s.array != "" {
		indices, most, err := parseArray(s.array)
		if err != nil {
			return fmt.Errorf("--array: %w", err)
		}
		spec.Array, spec.ArrayMost = indices, most
	}
	return nil
}

func (s *submission) memories(spec *api.JobSpec, _ time.Time) error {
	const mega = 1 << 20
	if s.memory != "" && s.memoryPerCPU != "" {
		return errors.New("--mem and --mem-per-cpu exclude each other")
	}
	if s.memory != "" {
		total, err := parseSize(s.memory, mega)
		if err != nil {
			return fmt.Errorf("--mem: %w", err)
		}
		processors := s.tasks * s.cpus
		spec.MemoryPerProcessor = (total + processors - 1) / processors
	}
	if s.memoryPerCPU != "" {
		each, err := parseSize(s.memoryPerCPU, mega)
		if err != nil {
			return fmt.Errorf("--mem-per-cpu: %w", err)
		}
		spec.MemoryPerProcessor = each
	}
	return nil
}

func (s *submission) divide(spec *api.JobSpec, _ time.Time) error {
	switch {
	case !s.division.given():
	case s.once:
		return errors.New("--once excludes --components, --coalloc and --spread: each task of theirs is a process")
	case s.batch:
		return errors.New("a script with #SBATCH lines is started once, and srun in it starts tasks at one site only: leave out --components, --coalloc and --spread, or write the lines as #GRID")
	}
	return s.division.spec(spec, s.tasksGiven)
}

// surroundings sets the working directory and the environment.
func (s *submission) surroundings(spec *api.JobSpec, _ time.Time) error {
	spec.Dir = s.dir
	if s.elsewhere && spec.Dir == "" {
		return s.environment(spec)
	}
	here, err := os.Getwd()
	switch {
	case strings.HasPrefix(spec.Dir, "/"):
	case spec.Dir == "" && errors.Is(err, fs.ErrPermission):
		// What root types in its home for the site's account (runuser): a scratch directory will do.
	case err != nil:
		return fmt.Errorf("--chdir: %w", err)
	case spec.Dir == "":
		spec.Dir = here
	default:
		spec.Dir = here + "/" + spec.Dir
	}
	return s.environment(spec)
}

// environment sets what the job has of this one's environment.
func (s *submission) environment(spec *api.JobSpec) error {
	switch s.export {
	case "NONE", "NIL", "":
	default:
		for name := range strings.SplitSeq(s.export, ",") {
			if name == "ALL" { // what else stands in the list comes on top
				spec.Env = append(os.Environ(), spec.Env...)
			} else if setting := strings.Contains(name, "="); setting {
				spec.Env = append(spec.Env, name)
			} else if value, ok := os.LookupEnv(name); ok {
				spec.Env = append(spec.Env, name+"="+value)
			}
		}
	}
	for _, setting := range append(slices.Clone(spec.Env), s.env...) {
		if i := strings.IndexByte(setting, '='); i < 1 {
			return fmt.Errorf("--env: %q: want NAME=VALUE", setting)
		}
	}
	spec.Env = append(spec.Env, s.env...)
	return nil
}

// preview prints what would come of the job.
func (s *submission) preview(cmd *cobra.Command, client *api.Client, spec api.JobSpec) error {
	reply, err := client.Preview(cmd.Context(), spec)
	if err != nil {
		return apiError(err)
	}
	if err := printVerdicts(cmd.OutOrStdout(), s.listing, reply); err != nil {
		return err
	}
	noteMissing(cmd, reply.Certain == nil || *reply.Certain)
	if !reply.Feasible {
		return failf(exitRefused, "no site would have this job%s", bestOf(reply))
	}
	return nil
}

// choosePartition has the job run at the site that is called as the partition.
func (s *submission) choosePartition(cmd *cobra.Command, client *api.Client, spec *api.JobSpec) error {
	if s.partition == "" {
		return nil
	}
	spec.Env = append(spec.Env, "SLURM_JOB_PARTITION="+s.partition)
	if spec.Site != "" {
		return nil
	}
	reply, err := client.Sites(cmd.Context())
	if err != nil {
		return apiError(err)
	}
	for i := range reply.Sites {
		if reply.Sites[i].Name == s.partition {
			spec.Site = s.partition
			return nil
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: --partition %s is left out: no site is called so\n", s.partition)
	return nil
}

// numberOf returns the number of one job, or of an array.
func numberOf(jobs []api.Job) string {
	switch {
	case len(jobs) == 0:
		return ""
	case jobs[0].ArrayNumber > 0:
		return strconv.FormatUint(jobs[0].ArrayNumber, 10)
	}
	return strconv.FormatUint(jobs[0].Number, 10)
}

// newJobID draws an identity.
func newJobID() grid.JobID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	id, _ := grid.JobIDFromBytes(b[:])
	return id
}
