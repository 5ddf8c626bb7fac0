package slurm

// fate says what becomes of an option of sbatch.
type fate uint8

const (
	kept    fate = iota // it means the same here: to a flag, by translate
	hint                // it says how the job may run better, who pays or who hears of it: left out with a note
	refused             // the job might not run as its author means
)

type batchOption struct {
	Option
	fate fate
	why  string // of a refusal or a note
}

const (
	pays   = "gridnode has no accounts of that kind"
	mails  = "gridnode sends no mail: see 'gridnode wait'"
	binds  = "where on a machine tasks run is the site's business"
	gres   = "gridnode hands out processors, memory and GPUs only"
	perGPU = "say tasks, their processors and memory, and --gpus"
	nodes  = "which nodes a job runs on is the site's business"
	raises = "only who runs a cluster raises the priority of a job"
	record = "gridnode records no such thing"
)

// batch is every option of sbatch that Slurm 22.05 to 25.05 know.
var batch = []batchOption{
	{Option{"array", 'a', Required}, kept, ""},
	{Option{"begin", 'b', Required}, kept, ""},
	{Option{"chdir", 'D', Required}, kept, ""},
	{Option{"clusters", 'M', Required}, kept, ""},
	{Option{"cpus-per-task", 'c', Required}, kept, ""},
	{Option{"deadline", 0, Required}, kept, ""},
	{Option{"dependency", 'd', Required}, kept, ""},
	{Option{"error", 'e', Required}, kept, ""},
	{Option{"export", 0, Required}, kept, ""},
	{Option{"gpus", 'G', Required}, kept, ""},
	{Option{"gpus-per-node", 0, Required}, kept, ""},
	{Option{"gpus-per-task", 0, Required}, kept, ""},
	{Option{"gres", 0, Required}, kept, gres},
	{Option{"hold", 'H', None}, kept, ""},
	{Option{"input", 'i', Required}, kept, ""},
	{Option{"job-name", 'J', Required}, kept, ""},
	{Option{"kill-on-invalid-dep", 0, Required}, kept, ""},
	{Option{"mem", 0, Required}, kept, ""},
	{Option{"mem-per-cpu", 0, Required}, kept, ""},
	{Option{"no-requeue", 0, None}, kept, ""},
	{Option{"nice", 0, Optional}, kept, raises},
	{Option{"nodes", 'N', Required}, kept, ""},
	{Option{"ntasks", 'n', Required}, kept, ""},
	{Option{"ntasks-per-node", 0, Required}, kept, ""},
	{Option{"open-mode", 0, Required}, kept, ""},
	{Option{"output", 'o', Required}, kept, ""},
	{Option{"parsable", 0, None}, kept, ""},
	{Option{"partition", 'p', Required}, kept, ""},
	{Option{"quiet", 'Q', None}, kept, ""},
	{Option{"requeue", 0, None}, kept, ""},
	{Option{"signal", 0, Required}, kept, ""},
	{Option{"test-only", 0, None}, kept, ""},
	{Option{"time", 't', Required}, kept, ""},
	{Option{"verbose", 'v', None}, kept, ""},
	{Option{"wait", 'W', None}, kept, ""},
	{Option{"wrap", 0, Required}, kept, ""},

	{Option{"account", 'A', Required}, hint, pays},
	{Option{"acctg-freq", 0, Required}, hint, record},
	{Option{"comment", 0, Required}, hint, record},
	{Option{"contiguous", 0, None}, hint, nodes},
	{Option{"core-spec", 'S', Required}, hint, binds},
	{Option{"cores-per-socket", 0, Required}, hint, binds},
	{Option{"cpu-freq", 0, Required}, hint, binds},
	{Option{"delay-boot", 0, Required}, hint, nodes},
	{Option{"distribution", 'm', Required}, hint, binds},
	{Option{"exclusive", 0, Optional}, hint, "processors are never shared, other jobs may run beside"},
	{Option{"extra-node-info", 'B', Required}, hint, binds},
	{Option{"get-user-env", 0, Optional}, hint, "see --export"},
	{Option{"gpu-bind", 0, Required}, hint, binds},
	{Option{"gpu-freq", 0, Required}, hint, binds},
	{Option{"hint", 0, Required}, hint, binds},
	{Option{"ignore-pbs", 0, None}, hint, "#PBS lines are comments"},
	{Option{"mail-type", 0, Required}, hint, mails},
	{Option{"mail-user", 0, Required}, hint, mails},
	{Option{"mcs-label", 0, Required}, hint, pays},
	{Option{"mem-bind", 0, Required}, hint, binds},
	{Option{"no-kill", 'k', Optional}, hint, nodes},
	{Option{"ntasks-per-core", 0, Required}, hint, binds},
	{Option{"ntasks-per-socket", 0, Required}, hint, binds},
	{Option{"oversubscribe", 's', None}, hint, "processors are never shared"},
	{Option{"power", 0, Required}, hint, binds},
	{Option{"prefer", 0, Required}, hint, nodes},
	{Option{"priority", 0, Required}, hint, raises},
	{Option{"profile", 0, Required}, hint, record},
	{Option{"propagate", 0, Optional}, hint, "limits are the site's"},
	{Option{"qos", 'q', Required}, hint, pays},
	{Option{"sockets-per-node", 0, Required}, hint, binds},
	{Option{"spread-job", 0, None}, hint, nodes},
	{Option{"switches", 0, Required}, hint, nodes},
	{Option{"thread-spec", 0, Required}, hint, binds},
	{Option{"threads-per-core", 0, Required}, hint, binds},
	{Option{"time-min", 0, Required}, hint, "the limit is --time"},
	{Option{"tmp", 0, Required}, hint, "the room of a scratch directory is the site's business"},
	{Option{"use-min-nodes", 0, None}, hint, nodes},
	{Option{"wait-all-nodes", 0, Required}, hint, nodes},
	{Option{"wckey", 0, Required}, hint, pays},

	{Option{"batch", 0, Required}, refused, nodes},
	{Option{"bb", 0, Required}, refused, "gridnode has no burst buffers"},
	{Option{"bbf", 0, Required}, refused, "gridnode has no burst buffers"},
	{Option{"cluster-constraint", 0, Required}, refused, "sites have no features: name one with --clusters"},
	{Option{"constraint", 'C', Required}, refused, "sites have no features: name one with --clusters"},
	{Option{"container", 0, Required}, refused, "gridnode runs no containers"},
	{Option{"container-id", 0, Required}, refused, "gridnode runs no containers"},
	{Option{"cpus-per-gpu", 0, Required}, refused, perGPU},
	{Option{"exclude", 'x', Required}, refused, nodes},
	{Option{"export-file", 0, Required}, refused, "write the settings into --export"},
	{Option{"gid", 0, Required}, refused, "jobs run for who submits them"},
	{Option{"gpus-per-socket", 0, Required}, refused, perGPU},
	{Option{"gres-flags", 0, Required}, hint, binds},
	{Option{"licenses", 'L', Required}, refused, "gridnode counts no licenses"},
	{Option{"mem-per-gpu", 0, Required}, refused, perGPU},
	{Option{"mincpus", 0, Required}, refused, "say it with --cpus-per-task"},
	{Option{"network", 0, Required}, refused, nodes},
	{Option{"nodefile", 'F', Required}, refused, nodes},
	{Option{"nodelist", 'w', Required}, refused, nodes},
	{Option{"ntasks-per-gpu", 0, Required}, refused, perGPU},
	{Option{"overcommit", 'O', None}, refused, "every task has a processor"},
	{Option{"reboot", 0, None}, refused, nodes},
	{Option{"reservation", 0, Required}, refused, "processors are reserved by leases: see 'gridnode lease request'"},
	{Option{"uid", 0, Required}, refused, "jobs run for who submits them"},
	{Option{"x11", 0, Optional}, refused, "a batch job has no display"},
}

// Batch are the options of sbatch.
func Batch() Options {
	options := make(Options, len(batch))
	for i := range batch {
		options[i] = batch[i].Option
	}
	return options
}

// of returns the entry of an option.
func of(name string) *batchOption {
	for i := range batch {
		if batch[i].Long == name {
			return &batch[i]
		}
	}
	return nil
}
