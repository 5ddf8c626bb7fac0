package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

// siteColumns are the columns of sites and quotes.
func siteColumns(now time.Time, sites []api.SiteInfo) []column[api.SiteInfo] {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	without := !slices.ContainsFunc(sites, func(s api.SiteInfo) bool { return len(s.GPUs) > 0 })
	return []column[api.SiteInfo]{
		{head: "NAME", text: func(s api.SiteInfo) string { return s.Name }},
		{head: "ID", wide: true, text: func(s api.SiteInfo) string { return s.ID }},
		{head: "CPUS", text: func(s api.SiteInfo) string { return number(s.Processors) }},
		{head: "FREE", text: func(s api.SiteInfo) string { return number(s.Free) }},
		{head: "WIDEST", wide: true, text: func(s api.SiteInfo) string { return number(s.Widest) }},
		{head: "GPUS", wide: without, text: gpusText},
		{head: "QUEUED", text: func(s api.SiteInfo) string { return number(s.Queued) }},
		{head: "WAIT", text: func(s api.SiteInfo) string { return formatSpan(grid.Time(s.Wait)) }},
		{head: "PRICE", text: func(s api.SiteInfo) string { return s.Price.String() }},
		{head: "SPEED", text: func(s api.SiteInfo) string { return number(s.Speed) }},
		{head: "BANDWIDTH", wide: true, text: func(s api.SiteInfo) string { return number(s.Bandwidth) }},
		{head: "MEMORY", wide: true, text: func(s api.SiteInfo) string { return formatSize(s.Memory) }},
		{head: "COST", wide: true, text: func(s api.SiteInfo) string { return s.Cost }},
		{head: "FOREIGN", text: func(s api.SiteInfo) string { return allowText(s.Foreign) }},
		{head: "HEAD", wide: true, text: func(s api.SiteInfo) string { return s.Head }},
		{head: "AGE", text: func(s api.SiteInfo) string { return ageText(s, now) }},
	}
}

// gpusText prints how many GPUs of a site are free, of how many, by type.
func gpusText(s api.SiteInfo) string {
	words := make([]string, len(s.GPUs))
	for i, g := range s.GPUs {
		words[i] = fmt.Sprintf("%s:%d/%d", g.Type, g.Free, g.Count)
	}
	return strings.Join(words, ",")
}

// matrixColumnsMax is how many sites may have a column of latencies.
const matrixColumnsMax = 16

// latencyColumns are the latency from here, and the matrix of latencies.
func latencyColumns(sites []api.SiteInfo) []column[api.SiteInfo] {
	columns := []column[api.SiteInfo]{
		{head: "LATENCY", wide: true, text: func(s api.SiteInfo) string { return wayText(s.Latency) }},
		{head: "KNOWN", wide: true, text: func(s api.SiteInfo) string { return s.LatencySource }},
	}
	if len(sites) > matrixColumnsMax {
		return columns
	}
	for i := range sites {
		to := &sites[i]
		columns = append(columns, column[api.SiteInfo]{head: "TO " + to.Name, wide: true, text: func(s api.SiteInfo) string {
			for _, l := range s.Latencies {
				if l.To == to.ID {
					return wayText(l.Latency)
				}
			}
			return ""
		}})
	}
	return columns
}

// wayText prints a latency in milliseconds, nothing if it is not known.
func wayText(l api.Seconds) string {
	if l == 0 {
		return ""
	}
	return strconv.FormatFloat(1000*grid.Time(l).Seconds(), 'f', 3, 64) + "ms"
}

func allowText(allowed bool) string {
	if allowed {
		return "allow"
	}
	return "deny"
}

// ageText prints how old the newest word of a site is.
func ageText(s api.SiteInfo, now time.Time) string {
	switch {
	case s.Self:
		return "self"
	case s.Issued == 0:
		return ""
	}
	age := formatSpan(max(grid.Time(api.InstantOf(now)-s.Issued), 0))
	if s.Silent {
		return age + ", silent"
	}
	return age
}

// noteMissing says on stderr if the directory cannot vouch for a list.
func noteMissing(cmd *cobra.Command, certain bool) {
	if !certain {
		fmt.Fprintln(cmd.ErrOrStderr(), "gridnode: some sites may be missing: a part of the directory has just changed hands or did not answer; ask again in a few minutes")
	}
}

func newSites(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "sites [NAME]",
		Short: "List the sites of the federation, or find one",
		Long: `List the sites of the federation as the directory knows them: processors, how many are
free, jobs that wait, estimated wait of a job as wide as the site, price in credits per
processor-hour, speed (MIPS rating), whether they run jobs of other sites, and how old
the newest word of them is. A site that this one cannot reach is marked as silent. Where
sites have GPUs, GPUS says how many are free of how many, by type (a100:1/4).

-o wide and -o csv add what is known of the network: the latency from here (half a round
trip) and how it is known, and a column TO NAME for each site with the latency from every
site to it, if there are at most 16. In JSON all latencies between up to 32 sites are told.

With the name of a site, or its ID, that site is looked for, whoever knows it: by the
record that every site signs and that lies at others. Two sites may claim one name: then
both are listed, and the name stands for neither.`,
		Example: "  gridnode sites\n  gridnode sites -o wide\n  gridnode sites delft\n  gridnode sites delft -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("finds one site at a time, got %q as well", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return findSite(cmd, root, l, args[0])
			}
			reply, err := root.client().Sites(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			slices.SortFunc(reply.Sites, func(a, b api.SiteInfo) int {
				return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
			})
			columns := append(siteColumns(time.Now(), reply.Sites), latencyColumns(reply.Sites)...)
			if err := printList(cmd.OutOrStdout(), l, columns, reply.Sites); err != nil {
				return err
			}
			noteMissing(cmd, reply.Certain)
			return nil
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// foundColumns are the columns of sites that were looked for.
var foundColumns = []column[api.FoundSite]{
	{head: "NAME", text: func(s api.FoundSite) string { return s.Name }},
	{head: "ID", text: func(s api.FoundSite) string { return s.ID }},
	{head: "AUTHORITY", text: func(s api.FoundSite) string { return s.Authority }},
	{head: "CPUS", text: func(s api.FoundSite) string { return strconv.FormatInt(s.Processors, 10) }},
	{head: "SPEED", text: func(s api.FoundSite) string { return strconv.FormatInt(s.Speed, 10) }},
	{head: "BANDWIDTH", wide: true, text: func(s api.FoundSite) string { return strconv.FormatInt(s.Bandwidth, 10) }},
	{head: "MEMORY", wide: true, text: func(s api.FoundSite) string { return formatSize(s.Memory) }},
	{head: "SERVICES", text: func(s api.FoundSite) string { return strings.Join(s.Services, ",") }},
	{head: "SOURCE", text: func(s api.FoundSite) string { return s.Source }},
	{head: "EXPIRES", text: func(s api.FoundSite) string { return formatInstant(s.Expires) }},
	{head: "SEQUENCE", wide: true, text: func(s api.FoundSite) string { return strconv.FormatUint(s.Sequence, 10) }},
	{head: "ADDRESSES", wide: true, text: func(s api.FoundSite) string { return strings.Join(s.Addresses, ",") }},
}

// findSite prints who a name stands for.
func findSite(cmd *cobra.Command, root *options, l listing, name string) error {
	reply, err := root.client().FindSite(cmd.Context(), name)
	if err != nil {
		return apiError(err)
	}
	if err := printList(cmd.OutOrStdout(), l, foundColumns, reply.Sites); err != nil {
		return err
	}
	if reply.Clash {
		fmt.Fprintf(cmd.ErrOrStderr(), "gridnode: %d sites claim the name %s, so it stands for none of them: say which by its ID\n", len(reply.Sites), name)
	}
	return nil
}
