package slurm

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
)

// Config says how a site uses its cluster.
type Config struct {
	Partition string             // empty: the cluster's default
	Account   string             // empty: the user's default
	QOS       string             // empty: the cluster's default
	Options   []string           // further options of sbatch, each as --name or --name=value
	Partners  map[string]Partner // by a site's name or ID
	Work      string             // absolute path of the work directory; compute nodes see it, too

	// Program carries out orders on the nodes, as this one does: path; empty: this one. A copy
	// of it is put into the work directory.
	Program string

	// Shim carries out an order: a command line in which OrderWord stands for the order's
	// path. nil: Program, with its verb.
	Shim []string
	// Pilot carries out the order of a pilot, likewise.
	Pilot []string

	Pilots    int64         // processors that are kept for small jobs of this site; 0: none
	PilotTime grid.Time     // for how long Slurm is asked for them at a time
	PilotIdle grid.Time     // after which they are given back if there is no job for them; 0: never
	silence   grid.Time     // 0 means the constant; tests set less
	linger    time.Duration // 0 means the constant
	turn      time.Duration // how long a job waits for room in a pilot at most; 0: glance and turnMax
	Listen    string        // address of this machine that compute nodes reach; empty: that from which it reaches the controller

	section string // of the keys in messages; empty: slurm.
}

// OrderWord stands for the path of an order in Config.Shim.
const OrderWord = "{ORDER}"

// option is one option of sbatch as the configuration may give it.
var option = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--([a-z][a-z0-9-]*)(=[^\x00-\x1f\x7f]{0,256})?$`) })

// word is the name of a partition, an account or a QOS.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+,-]{0,127}$`) })

// ours are the options that the engine gives itself, or that would change what it relies on.
var ours = []string{
	"job-name", "parsable", "output", "error", "input", "open-mode", "chdir", "export", "export-file", "get-user-env", "time", "ntasks", "cpus-per-task",
	"mem-per-cpu", "partition", "account", "qos", "requeue", "no-requeue", "wrap", "test-only", "array", "dependency", "wait", "hold", "begin", "deadline",
	"clusters", "cluster", "uid", "gid", "quiet", "help", "version", "usage", "ignore-pbs", "bb", "bbf", "comment",
}

// Check returns an error that names the key of the configuration which is wrong.
func (c *Config) Check() error {
	for _, w := range []struct{ key, value string }{{"partition", c.Partition}, {"account", c.Account}, {"qos", c.QOS}} {
		if w.value != "" && !word().MatchString(w.value) {
			return fmt.Errorf("%s: %q is no name", c.key(w.key), w.value)
		}
	}
	for _, o := range c.Options {
		m := option().FindStringSubmatch(o)
		if m == nil {
			return fmt.Errorf("%s: %q: want options of sbatch as --name or --name=value", c.key("options"), o)
		}
		for _, name := range ours {
			if m[1] == name {
				return fmt.Errorf("%s: --%s is the engine's own%s", c.key("options"), name, c.instead(name))
			}
		}
	}
	if !strings.HasPrefix(c.Work, "/") {
		return fmt.Errorf("slurm.workdir: %q: want the absolute path of a directory that compute nodes see, too", c.Work)
	}
	return c.checkPartners()
}

// instead says which key is there for an option.
func (c *Config) instead(name string) string {
	switch name {
	case "partition", "account", "qos":
		return ": set " + c.key(name)
	}
	return ""
}

// place returns the options that say where jobs go and in whose name.
func (c *Config) place() (args []string) {
	for _, o := range []struct{ name, value string }{{"partition", c.Partition}, {"account", c.Account}, {"qos", c.QOS}} {
		if o.value != "" {
			args = append(args, "--"+o.name+"="+o.value)
		}
	}
	return append(args, c.Options...)
}
