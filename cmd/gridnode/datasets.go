package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// dataSetColumns are the columns of datasets.
var dataSetColumns = []column[api.DataSet]{
	{head: "NAME", text: func(d api.DataSet) string { return d.Name }},
	{head: "SIZE", text: func(d api.DataSet) string { return formatSize(d.Size) }, full: func(d api.DataSet) string { return fmt.Sprint(d.Size) }},
	{head: "COPIES", text: func(d api.DataSet) string { return copiesText(d.Shared) }},
	{head: "PATH", text: func(d api.DataSet) string { return d.Path }},
	{head: "ADDED", wide: true, text: func(d api.DataSet) string { return formatInstant(d.Added) }},
}

// holderColumns are the columns of dataset find.
var holderColumns = []column[api.DataHolder]{
	{head: "SITE", text: func(h api.DataHolder) string { return h.SiteName }},
	{head: "ID", wide: true, text: func(h api.DataHolder) string { return h.Site }},
	{head: "SIZE", text: func(h api.DataHolder) string { return formatSize(h.Size) }, full: func(h api.DataHolder) string { return fmt.Sprint(h.Size) }},
	{head: "COPIES", text: func(h api.DataHolder) string { return copiesText(h.Shared) }},
}

// copiesText says whether other sites may copy a data set.
func copiesText(shared bool) string {
	if shared {
		return "allowed"
	}
	return "none"
}

func newDataSets(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "datasets",
		Short: "List the data sets that this site holds",
		Long: `List the data sets that this site holds: by what name the federation knows each, how large
it is, where it is, and whether other sites may copy it. Jobs name what they read with
submit --input.`,
		Example: "  gridnode datasets\n  gridnode datasets -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().DataSets(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, dataSetColumns, reply.DataSets)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

func newDataSet(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dataset",
		Short: "Say which data sets this site holds, and find out who holds one",
		Long: `Say which data sets this site holds, and ask the federation who holds one. A data set is a
file or a directory under a name that is the same everywhere. The name is any that sites
agree on, or sha256: and the digest of the file, which is then checked whenever it is
copied. Sites announce what they hold in the federation's DHT.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{newDataSetAdd(root), newDataSetRemove(root), newDataSetFind(root)} {
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	return cmd
}

func newDataSetAdd(root *options) *cobra.Command {
	var l listing
	var request api.DataSetRequest
	cmd := &cobra.Command{
		Use:   "add [flags] [NAME] PATH",
		Short: "Enter a file or directory as a data set that this site holds",
		Long: `Enter a file or directory of this machine as a data set that this site holds, or change
what is known of one. Without a NAME a file is known by its content, as sha256: and its
digest. Jobs that run here and name the data set are told its PATH, jobs of other sites,
too; that it is here, and how large it is, anybody in the federation may learn. With --share
other sites may also copy it to run jobs. Stays so across restarts. A file that changes
has to be added again.`,
		Example: `  gridnode dataset add climate-2020 /data/climate-2020.nc
  gridnode dataset add --share genome:hg38 /data/hg38.2bit
  gridnode dataset add --share /data/model.bin`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("wants a PATH, or a NAME and a PATH")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[len(args)-1])
			if err != nil {
				return err
			}
			request.Path = path
			if len(args) == 2 {
				request.Name = args[0]
			}
			reply, err := root.client().AddDataSet(cmd.Context(), request)
			if err != nil {
				return apiError(err)
			}
			if l.format != formatTable {
				return printOne(cmd.OutOrStdout(), l, dataSetColumns, reply.DataSet)
			}
			fmt.Fprintln(cmd.OutOrStdout(), reply.DataSet.Name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&request.Share, "share", false, "let other sites copy it; only files can be copied")
	addActFlags(cmd, &l)
	return cmd
}

func newDataSetRemove(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Do not hold a data set any more",
		Long: `Take a data set off those that this site holds. The file or directory stays where it is.
Jobs that run go on.`,
		Example: "  gridnode dataset remove climate-2020",
		Args:    exactArgs(1, "the NAME of a data set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := root.client().RemoveDataSet(cmd.Context(), args[0]); err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), map[string]any{"name": args[0], "removed": true}, []fact{{"name", args[0]}, {"removed", "true"}}, func() {})
		},
	}
	addActFlags(cmd, &l)
	return cmd
}

func newDataSetFind(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "find NAME",
		Short: "Ask the federation who holds a data set",
		Long: `Ask the federation's DHT who provides a data set, and then those sites whether they hold
it. The exit code is 4 if nobody does.`,
		Example: "  gridnode dataset find climate-2020\n  gridnode dataset find climate-2020 -o json",
		Args:    exactArgs(1, "the NAME of a data set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().FindDataSet(cmd.Context(), args[0])
			if err != nil {
				return apiError(err)
			}
			if err := printList(cmd.OutOrStdout(), l, holderColumns, reply.Holders); err != nil {
				return err
			}
			switch {
			case len(reply.Holders) == 0 && reply.Silent > 0:
				return failf(exitNotFound, "no site says that it holds %s; %d of %d sites that have announced it did not answer", args[0], reply.Silent, reply.Named)
			case len(reply.Holders) == 0:
				return failf(exitNotFound, "no site holds %s", args[0])
			}
			return nil
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// parseInput reads what --input says: NAME or NAME=SIZE.
func parseInput(text string) (api.DataInput, error) {
	name, size, sized := strings.Cut(text, "=")
	in := api.DataInput{Name: name}
	if !sized {
		return in, nil
	}
	bytes, err := parseSize(size, 1)
	if err != nil {
		return in, err
	}
	in.Size = &bytes
	return in, nil
}
