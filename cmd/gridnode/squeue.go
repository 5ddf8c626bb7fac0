package main

import (
	"fmt"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
	"gridnode/node/api"
)

// chosen is the options by which squeue, sacct and scancel choose jobs, which mean the same
// in all of them.
type chosen struct {
	jobs                                   []string
	users, states, names, partition, sites []string
	none                                   bool   // by what no job has here: an account, a reservation
	here                                   string // name of the home, if sites are chosen: what has no place yet is there
}

func (c *chosen) take(g slurm.Given) bool {
	list := strings.Split(g.Value, ",")
	switch g.Name {
	case "jobs", "job":
		if g.Has {
			c.jobs = append(c.jobs, splitJobs(g.Value)...)
		}
	case "user", "uid":
		c.users = list
	case "me":
		if u, err := user.Current(); err == nil {
			c.users = []string{u.Username}
		}
	case "states", "state":
		if !strings.EqualFold(g.Value, "all") {
			c.states = list
		}
	case "name":
		c.names = list
	case "partition":
		c.partition = list
	case "clusters", "cluster":
		if !strings.EqualFold(g.Value, "all") {
			c.sites = list
		}
	case "nodelist", "nodes":
		c.partition = list // a site is a partition of one node
	case "wckey", "reservation", "licenses":
		c.none = true
	default:
		return false
	}
	return true
}

// splitJobs splits a list of numbers at commas that are not within brackets.
func splitJobs(s string) (list []string) {
	depth, from := 0, 0
	for i, r := range s {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			list = append(list, jobHere(s[from:i]))
			from = i + 1
		}
	}
	return append(list, jobHere(s[from:]))
}

// jobHere returns what stands for a job, or what it means: in a job on a cluster SLURM_JOB_ID is that
// cluster's number of it, by which scripts call themselves, and which somebody else has at home.
func jobHere(word string) string {
	if id := os.Getenv("GRIDNODE_JOB_ID"); id != "" && word == os.Getenv("SLURM_JOB_ID") {
		return id
	}
	return word
}

// match reports whether a job is chosen by anything but its ID.
func (c *chosen) match(j *api.Job) bool {
	title := j.Name
	if i := strings.LastIndexByte(title, '['); j.ArrayIndex != nil && i >= 0 {
		title = title[:i]
	}
	state := slurm.StateOf(j)
	return !j.Foreign && j.Number > 0 &&
		(len(c.users) == 0 || slices.Contains(c.users, j.User)) &&
		(len(c.names) == 0 || slices.Contains(c.names, title)) &&
		!c.none && (len(c.sites) == 0 || slices.Contains(c.sites, c.siteOf(j))) &&
		(len(c.partition) == 0 || slices.Contains(c.partition, slurm.Partition(j))) &&
		(len(c.states) == 0 || slices.ContainsFunc(c.states, state.Is))
}

// siteOf returns the site that a job is at, or where it waits.
func (c *chosen) siteOf(j *api.Job) string {
	if j.Site == "" && j.SiteName == "" {
		return c.here
	}
	return slurm.Partition(j)
}

// list returns the jobs of this home that are chosen, in order of their numbers.
func (c *chosen) list(cmd *cobra.Command, root *options) ([]api.Job, error) {
	if len(c.sites) > 0 {
		node, err := root.client().Node(cmd.Context())
		if err != nil {
			return nil, err
		}
		c.here = node.Name
	}
	jobs, err := c.find(cmd, root)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(jobs, func(a, b api.Job) int {
		if a.ArrayIndex != nil && b.ArrayIndex != nil && a.ArrayNumber == b.ArrayNumber {
			return int(*a.ArrayIndex - *b.ArrayIndex)
		}
		return int(max(a.ArrayNumber, a.Number)) - int(max(b.ArrayNumber, b.Number))
	})
	return jobs, nil
}

// find returns the jobs that are named, or all, that are chosen. Of several that are named, those that nobody
// knows are left out, as in Slurm.
func (c *chosen) find(cmd *cobra.Command, root *options) ([]api.Job, error) {
	query := url.Values{"id": c.jobs}
	if len(c.jobs) == 0 {
		query.Set("all", "true")
	}
	jobs, err := c.ask(cmd, root, query)
	switch {
	case err == nil:
		return jobs, nil
	case len(c.jobs) < 2 || exitCode(apiError(err)) != exitNotFound:
		return nil, err
	}
	jobs = nil
	for _, id := range c.jobs {
		switch some, err := c.ask(cmd, root, url.Values{"id": {id}}); {
		case err == nil:
			jobs = append(jobs, some...)
		case exitCode(apiError(err)) != exitNotFound:
			return nil, err
		}
	}
	return jobs, nil
}

// ask returns the jobs of a listing that are chosen; of the others nothing is held.
func (c *chosen) ask(cmd *cobra.Command, root *options, query url.Values) (jobs []api.Job, err error) {
	_, err = api.ListJobs(cmd.Context(), root.client(), query, func(j *api.Job) error {
		if c.match(j) {
			jobs = append(jobs, *j)
		}
		return nil
	})
	return jobs, err
}

// ignored returns options without a value that change nothing here; a blank among letters is none.
func ignored(letters string, names ...string) (options slurm.Options) {
	for i, name := range names {
		o := slurm.Option{Long: name}
		if letters[i] != ' ' {
			o.Short = letters[i]
		}
		options = append(options, o)
	}
	return options
}

var queueOptions = append(slurm.Options{
	{Long: "noheader", Short: 'h'}, {Long: "format", Short: 'o', Value: slurm.Required}, {Long: "Format", Short: 'O', Value: slurm.Required},
	{Long: "jobs", Short: 'j', Value: slurm.Required}, {Long: "user", Short: 'u', Value: slurm.Required}, {Long: "me"},
	{Long: "states", Short: 't', Value: slurm.Required}, {Long: "name", Short: 'n', Value: slurm.Required},
	{Long: "partition", Short: 'p', Value: slurm.Required}, {Long: "sort", Short: 'S', Value: slurm.Required},
	{Long: "account", Short: 'A', Value: slurm.Required}, {Long: "qos", Short: 'q', Value: slurm.Required}, {Long: "clusters", Short: 'M', Value: slurm.Required},
	{Long: "nodelist", Short: 'w', Value: slurm.Required}, {Long: "reservation", Short: 'R', Value: slurm.Required}, {Long: "licenses", Short: 'L', Value: slurm.Required},
	{Long: "long", Short: 'l'}, {Long: "start"},
}, ignored("aPrs v      ", "all", "priority", "array", "steps", "array-unique", "verbose", "hide", "local", "federation", "sibling", "noconvert", "only-job-state")...)

// squeue lists jobs that are not over.
func squeue(cmd *cobra.Command, root *options, args []string) error {
	given, rest, err := queueOptions.All(args)
	if err != nil || len(rest) > 0 {
		return orUnexpected(err, rest)
	}
	var c chosen
	table, _ := slurm.ParseQueue(slurm.QueueFormat)
	head, all := true, false
	for _, g := range given {
		switch g.Name {
		case "start":
			table, _ = slurm.ParseQueue("%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R")
			c.states = []string{"PENDING"}
		case "noheader":
			head = false
		case "format":
			table, err = slurm.ParseQueue(g.Value)
		case "Format":
			table, err = slurm.ParseQueueNames(g.Value)
		case "long":
			table, err = slurm.ParseQueue("%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R")
		default:
			all = c.take(g) && g.Name == "states" || all
		}
		if err != nil {
			return err
		}
	}
	jobs, err := c.list(cmd, root)
	if err != nil {
		return unknownID(err)
	}
	jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { return !all && slurm.StateOf(&j).Over() })
	of := c.sites
	if len(of) == 0 {
		of = []string{""}
	}
	for i, site := range of {
		if site != "" { // as Slurm does it, which asks one cluster after the other
			fmt.Fprintf(cmd.OutOrStdout(), "%sCLUSTER: %s\n", strings.Repeat("\n", min(i, 1)), site)
		}
		if head {
			fmt.Fprintln(cmd.OutOrStdout(), table.Head())
		}
		for i := range jobs {
			if j := &jobs[i]; site == "" || c.siteOf(j) == site {
				fmt.Fprintln(cmd.OutOrStdout(), table.Line(j, time.Now()))
			}
		}
	}
	return nil
}

// invalidID is what tools look for in what Slurm's commands say.
const invalidID = "Invalid job id specified"

// unknownID says that nobody knows a job as Slurm's commands do.
func unknownID(err error) error {
	if exitCode(apiError(err)) == exitNotFound {
		return fmt.Errorf("%s: %w", invalidID, err)
	}
	return err
}

func orUnexpected(err error, rest []string) error {
	if err == nil {
		err = fmt.Errorf("unrecognized option: %s", rest[0])
	}
	return err
}
