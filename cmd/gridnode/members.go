package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

var memberColumns = []column[api.Member]{
	{head: "NAME", text: func(m api.Member) string { return m.Name }},
	{head: "ID", wide: true, text: func(m api.Member) string { return m.Site }},
	{head: "ORGANISATION", text: func(m api.Member) string { return m.Organisation }},
	{head: "RIGHTS", text: func(m api.Member) string { return m.Rights }},
	{head: "CERTIFIED-BY", text: func(m api.Member) string { return m.Issuer }},
	{head: "UNTIL", text: func(m api.Member) string { return m.Expires.Time().Format(time.DateOnly) }},
}

func newMembers(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the members of the federation that this site has met",
		Long: `List the members of the federation that this site has met since its daemon started, and
itself, as their certificates say: names are the certificates', so nobody can be called what
another is. In an open federation there are none.`,
		Example: "  gridnode members\n  gridnode members -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Members(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			if reply.Open {
				fmt.Fprintf(cmd.ErrOrStderr(), "the federation %s is open: it has no members, and whoever knows an address takes part\n", reply.Federation)
			}
			return printList(cmd.OutOrStdout(), l, memberColumns, reply.Members)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// spanText writes whole days as parseSpan reads them.
func spanText(t grid.Time) string { return fmt.Sprintf("%dd", t/grid.Day) }

func newRenew(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Have this site's certificate renewed",
		Long: `Have this site's certificate renewed by the member that has given it, for as long again. The
daemon does so by itself when two thirds of its time are over.`,
		Example: "  gridnode renew",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Renew(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), reply, []fact{{"expires", formatInstant(reply.Expires)}}, func() {
				fmt.Fprintf(cmd.OutOrStdout(), "good until %s\n", formatInstant(reply.Expires))
			})
		},
	}
	addActFlags(cmd, &l)
	return cmd
}

func newRevoke(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "revoke SITE",
		Short: "Take a member's certificate back",
		Long: `Take back the certificate of a member that this site has certified, named by name or ID,
and tell the federation. Every member ends its connections with it and hears it no more, also
after restarts. It can be invited again.`,
		Example: "  gridnode revoke hill",
		Args:    exactArgs(1, "SITE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().Revoke(cmd.Context(), args[0])
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), reply, []fact{{"site", reply.Site}}, func() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is a member no longer (%s)\n", cellText(args[0]), reply.Site)
			})
		},
	}
	addActFlags(cmd, &l)
	return cmd
}
