package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/sweep"
)

// Config is the scenario "chaos": a federation under faults. While they last
// and after they have healed, invariants are checked at every event.
type Config struct {
	scenario.Common

	Sites int     `json:"sites"` // 1 to 1000
	Hours float64 `json:"hours"` // how long jobs are submitted and faults happen; more than 0, at most 10000

	// Faults is a list of NAME or NAME=INTENSITY, separated by commas, or "none":
	//
	//	loss       share of messages that vanish
	//	duplicate  share of messages that arrive twice
	//	reorder    share of messages held back by up to two seconds
	//	drift      most that a clock gains or loses, in millionths
	//	daemon     crashes of a daemon, per site and hour
	//	torn       crashes between saving and sending, per site and hour
	//	machine    power cuts, per site and hour
	//	partition  partitions of the network, per hour
	//	aim        share of jobs at several sites that are cancelled, and of their claims,
	//	           barriers and starts at which one of their sites dies
	//	within     chance that a daemon dies right before or after an order of a step that saves,
	//	           once that is durable, in recoveries, too; of an order that comes seldomer than
	//	           most do a multiple, less where one has died before
	//	between    … of a step that saves nothing
	//	store      … that its store fails: nothing of a step is durable, and the daemon ends itself
	//	full       times that a disk is full for minutes: the daemon dies of whatever it saves, and so
	//	           it does when it is started again
	//	coincide   share of messages that arrive as a timer of the receiver goes off
	//	oneway     partitions that stop what one side says, not what it hears, per hour
	//	slow       times that all that a site says and hears takes longer, per site and hour
	//	step       times that a machine's clock is set by up to an hour, per site and hour
	//	still      times that it stands still
	//	slew       times that it, and the daemon's, is slewed
	//	old        times that a site that keeps no bank loses its power and comes up with a copy of its
	//	           store that is seconds to hours older, as one that is restored, per site and hour;
	//	           not in swarms
	Faults string `json:"faults"`

	// Features is a list of NAME or NAME=INTENSITY, separated by commas, or "none" (as is ""):
	//
	//	cancel     share of jobs that their users cancel
	//	hold       … that they hold for a while
	//	requeue    … that they have run again
	//	after      … that wait for earlier jobs
	//	begin      … that wait for an instant
	//	fail       … that do not end in time; most of them are run again
	//	break      share of the parts of jobs at several sites of which a task fails
	//	unready    … that take long until they can start, or for ever
	//	linger     share of executions that go on for seconds when they are killed
	//	poison     share of jobs that take the machine down on which they run, each time
	//	ban        … placed elsewhere whose homes the site there bans for a while as they are on their way
	//	detain     … placed elsewhere that the owner there holds for a while as they come, or ends
	//	read       share of jobs at several sites that read data sets
	//	once       share of jobs that are not run again when they vanish
	//	singleton  … of one user that run one at a time
	//	renew      … that sites keep for a short time without a word of home, or for ever
	//	drain      drains of a site, per site and hour
	//	price      changes of its price by hand, per site and hour
	//	link       changes of its links of delegation, per site and hour
	//	return     leases that are given back or wanted back by hand, some at once, per site and hour; more
	//	           than 0: some jobs are driven off borrowed processors just after they have started there
	//	ask        questions to the directory, per site and hour
	//	data       data sets that are entered, taken out or looked for, per site and hour
	//	find       times that a site is looked for by its name or ID, per site and hour
	//	account    … to banks, and transfers of credits, some of which their users say twice
	//	forge      what an honest site would not say, such as of another epoch, per site and hour
	//	paper      share of sites that place jobs as Grid-Federation does
	//	demand     … whose prices follow demand
	//	queue      … whose queues are fcfs or titan
	//	guests     … whose owners bound what other sites may have there
	//	quota      … whose owners bound what each user may have, and some what he may spend
	//	most       … that lend only some of their processors
	//	gpus       … that have GPUs, which some of their jobs need
	//	chain      … that borrow by load, in a line in which each asks the next one only, so that
	//	           processors are lent on
	//	head       share of groups of four sites of which the last heads the others, and shares
	//	           half of its jobs out over them
	//	array      share of jobs that are of arrays, of which some run at a time
	//	gossip     more than 0: sites find siblings, and gossip their load to them
	//	fresh      more than 0: quotes are good for minutes only, and cells of the directory small
	//	oracle     more than 0: who keeps a cell of the directory is known without messages, which
	//	           are most of a run otherwise
	//	expire     share of sites whose certificates end, and are renewed, some of them late
	//	revoke     … that are revoked, half of all at most
	//	invite     invitations, and strangers who ask to be certified, some without one, per site and
	//	           hour; more than 0: strangers of one name come, and some have their certificates renewed,
	//	           too. With one of these three the federation has a root
	Features string `json:"features"`

	// Lend lets sites lend processors to each other: by load, in a hierarchy, for what a job
	// lacks, and by hand; most of them want processors back at times.
	Lend bool `json:"lend"`

	// Failures is the directory to which a violation is written as a replay file, the same
	// with as little as still shows it (Shrink), and a diagram of the last messages; empty: none are.
	Failures string `json:"-"`

	// Shrink bounds the real time for leaving out what a violation does not need; 0: nothing is.
	Shrink time.Duration `json:"-"`

	// Away has the seeds of a campaign run elsewhere; nil: they are run here.
	Away sweep.Away `json:"-"`

	// Say is told how many fault points within steps were hit; nil: nobody is.
	Say func(text string) `json:"-"`

	// Watch looks for further violations; nil: nothing does. It is called before the run begins.
	Watch func(n *testnet.Network, c *testnet.Checker) `json:"-"`
}

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Sites: 20, Hours: 24,
		Faults: "loss,duplicate,reorder,drift,daemon,torn,machine,partition,aim", Features: "none", Lend: true,
	}
}

// chaosReport is the configuration as a result shows it.
type chaosReport struct {
	Config
	Injected map[string]int64 `json:"injected"` // faults that happened, by name
	Lost     int64            `json:"lost"`     // messages
	Acked    int              `json:"acknowledged"`
	Checked  int64            `json:"eventsChecked"`

	Leases  leaseCounts  `json:"leases"`
	Gangs   gangCounts   `json:"gangs"`
	Aimed   aimCounts    `json:"aimed"`
	Members rosterCounts `json:"members"`
	Points  pointCounts  `json:"points"` // of faults within steps
	Jumps   int64        `json:"jumps"`  // of daemons' clocks
	Lapsed  int64        `json:"lapsed"` // executions that were not renewed
	Forged  int64        `json:"forged"` // words that no honest site would say

	Asked    int64         `json:"asked"` // questions that the directory has answered
	Accounts accountCounts `json:"accounts"`
	Owners   ownerCounts   `json:"owners"`

	Transactions map[string]int64 `json:"transactions"` // of the banks, by kind
}

// Run runs the scenario. A violated invariant is an error that says how to
// see it again.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	return play(ctx, scriptOf(cfg), fmt.Sprintf("chaos-%d", cfg.Seed), "")
}

// Replay runs what a replay file says, with the rest of cfg: where results and violations go,
// and who watches.
func Replay(ctx context.Context, path string, cfg Config) (*measure.Result, error) {
	script, err := ReadScript(path)
	if err != nil {
		return nil, err
	}
	given := script.Config
	given.Common, given.Failures, given.Shrink, given.Watch, given.Say = cfg.Common, cfg.Failures, cfg.Shrink, cfg.Watch, cfg.Say
	script.Config = given
	script.Config.Seed = script.Seed
	return play(ctx, script, strings.TrimSuffix(filepath.Base(path), ".json"), path)
}

// play runs a script, which may come from a file. What it violates is explained in files of that name.
func play(ctx context.Context, script *Script, name, path string) (*measure.Result, error) {
	t := &trial{script: script}
	result, err := t.play(ctx, name, path)
	if points := t.points; script.Say != nil && points != nil {
		c := points.sum()
		script.Say(fmt.Sprintf("fault points: %d of %d hit", c.Hit, c.Seen))
	}
	return result, err
}

// play runs the trial, and explains what it violates in files of that name.
func (t *trial) play(ctx context.Context, name, path string) (*measure.Result, error) {
	if err := t.script.validate(); err != nil {
		return nil, err
	}
	result, err := t.run(ctx)
	if err == nil || ctx.Err() != nil {
		return result, err
	}
	return nil, t.explain(ctx, err, name, path)
}
