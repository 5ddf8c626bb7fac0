package main

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// completeMax is how long a shell that completes a word waits for the daemon.
const completeMax = time.Second

// completer completes the words of a command line.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective)

// completing returns a completer that asks the daemon. Words that stand there already, and
// those beyond most, are not completed; most 0: any number.
func completing(root *options, most int, ask func(ctx context.Context, client *api.Client) ([]cobra.Completion, error)) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if root.resolveDaemon(cmd.Flags().Changed("home")) != nil || root.resolve() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeMax)
		defer cancel()
		words, err := ask(ctx, root.client())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words = slices.DeleteFunc(words, func(word cobra.Completion) bool {
			return slices.ContainsFunc(args, func(arg string) bool { return hasWord(word, arg) })
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// hasWord reports whether a completion is of a word.
func hasWord(c cobra.Completion, word string) bool {
	return len(c) >= len(word) && c[:len(word)] == word && (len(c) == len(word) || c[len(word)] == '\t')
}

// Which jobs a verb is about.
const (
	jobsAll   = false
	jobsAlive = true
)

// completeJobs completes the IDs of jobs of this site.
func completeJobs(root *options, alive bool) completer { return completeSomeJobs(root, alive, 1) }

func completeSomeJobs(root *options, alive bool, most int) completer {
	return completing(root, most, func(ctx context.Context, client *api.Client) ([]cobra.Completion, error) {
		var words []cobra.Completion
		_, err := api.ListJobs(ctx, client, url.Values{}, func(j *api.Job) error {
			if !j.Foreign && !(alive && j.Over()) {
				words = append(words, cobra.CompletionWithDesc(shortID(j.ID), cellText(j.Name)+" "+j.State))
			}
			return nil
		})
		return words, err
	})
}

// completeSites completes the names of sites.
func completeSites(root *options, most int) completer {
	return completing(root, most, func(ctx context.Context, client *api.Client) ([]cobra.Completion, error) {
		reply, err := client.Sites(ctx)
		if err != nil {
			return nil, err
		}
		var words []cobra.Completion
		for i := range reply.Sites {
			words = append(words, cellText(reply.Sites[i].Name))
		}
		slices.Sort(words)
		return slices.Compact(words), nil
	})
}

// completeSiteFlags completes the flags of cmd that name a site.
func completeSiteFlags(cmd *cobra.Command, root *options, names ...string) {
	for _, name := range names {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, completeSites(root, 0)) // fails only for a flag that is not there
		}
	}
}

// completeLeases completes the numbers of leases: borrowed ("in"), lent ("out"), or both.
func completeLeases(root *options, direction string) completer {
	return completing(root, 1, func(ctx context.Context, client *api.Client) ([]cobra.Completion, error) {
		reply, err := client.Leases(ctx, direction)
		if err != nil {
			return nil, err
		}
		var words []cobra.Completion
		for i := range reply.Leases {
			l := &reply.Leases[i]
			words = append(words, cobra.CompletionWithDesc(strconv.FormatUint(l.Number, 10), l.State))
		}
		return words, nil
	})
}

// completeDataSets completes the names of data sets that this site holds.
func completeDataSets(root *options) completer {
	return completing(root, 1, func(ctx context.Context, client *api.Client) ([]cobra.Completion, error) {
		reply, err := client.DataSets(ctx)
		if err != nil {
			return nil, err
		}
		var words []cobra.Completion
		for i := range reply.DataSets {
			words = append(words, cellText(reply.DataSets[i].Name))
		}
		return words, nil
	})
}

// addCompletions gives verbs what completes their words, where that is all that there is to
// say about them.
func addCompletions(tree *cobra.Command, root *options) {
	jobs := map[string]completer{
		"status": completeSomeJobs(root, jobsAll, 0), "why": completeJobs(root, jobsAll), "logs": completeSomeJobs(root, jobsAll, 0),
		"get": completeJobs(root, jobsAll), "ls": completeJobs(root, jobsAll), "wait": completeSomeJobs(root, jobsAlive, 0), "cancel": completeSomeJobs(root, jobsAlive, 0), "hold": completeSomeJobs(root, jobsAlive, 0),
		"release": completeSomeJobs(root, jobsAlive, 0), "requeue": completeSomeJobs(root, jobsAlive, 0),
		"sites": completeSites(root, 1), "revoke": completeSites(root, 1), "dataset remove": completeDataSets(root),
		"lease renew": completeLeases(root, "in"), "lease release": completeLeases(root, "in"), "lease revoke": completeLeases(root, "out"), "lease request": completeSites(root, 1),
		"link invite": completeSites(root, 1), "link accept": completeSites(root, 1), "link drop": completeSites(root, 1),
		"bank transfer": completeSites(root, 1), "bank grant": completeSites(root, 1), "bank balance": completeSites(root, 1), "bank statement": completeSites(root, 1),
		"guests ban": completeSites(root, 1), "guests unban": completeSites(root, 1),
	}
	var visit func(cmd *cobra.Command, path string)
	visit = func(cmd *cobra.Command, path string) {
		if complete := jobs[path]; complete != nil && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = complete
		}
		completeSiteFlags(cmd, root, "site", "sites")
		for _, below := range cmd.Commands() {
			name := below.Name()
			if path != "" {
				name = path + " " + name
			}
			visit(below, name)
		}
	}
	visit(tree, "")
}
