package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/cmd/gridnode/slurm"
)

var sitesOptions = append(slurm.Options{
	{Long: "noheader", Short: 'h'}, {Long: "format", Short: 'o', Value: slurm.Required}, {Long: "partition", Short: 'p', Value: slurm.Required},
	{Long: "states", Short: 't', Value: slurm.Required}, {Long: "nodes", Short: 'n', Value: slurm.Required}, {Long: "clusters", Short: 'M', Value: slurm.Required},
	{Long: "summarize", Short: 's'}, {Long: "Node", Short: 'N'}, {Long: "long", Short: 'l'},
}, ignored("aervdRT", "all", "exact", "responding", "verbose", "dead", "list-reasons", "reservation")...)

// sinfo lists the sites of the federation, each as a partition of one node.
func sinfo(cmd *cobra.Command, root *options, args []string) error {
	given, rest, err := sitesOptions.All(args)
	if err != nil || len(rest) > 0 {
		return orUnexpected(err, rest)
	}
	format, head := slurm.SitesFormat, true
	var names, states []string
	for _, g := range given {
		switch g.Name {
		case "noheader":
			head = false
		case "format":
			format = g.Value
		case "summarize":
			format = "%P %.5a %.10l %.15F %N"
		case "Node":
			format = "%N %.6D %.9P %.6t"
		case "clusters":
			if !strings.EqualFold(g.Value, "all") {
				names = strings.Split(g.Value, ",")
			}
		case "partition", "nodes":
			names = strings.Split(g.Value, ",")
		case "states":
			states = strings.Split(strings.ToLower(g.Value), ",")
		}
	}
	table, err := slurm.ParseSites(format)
	if err != nil {
		return err
	}
	reply, err := root.client().Sites(cmd.Context())
	if err != nil {
		return err
	}
	if head {
		fmt.Fprintln(cmd.OutOrStdout(), table.Head())
	}
	for i := range reply.Sites {
		s := &reply.Sites[i]
		state := slurm.SiteState(s)
		wanted := func(word string) bool { return strings.HasPrefix(state, word) }
		if (len(names) == 0 || slices.Contains(names, s.Name)) && (len(states) == 0 || slices.ContainsFunc(states, wanted)) {
			fmt.Fprintln(cmd.OutOrStdout(), table.Line(s, time.Now()))
		}
	}
	return nil
}
