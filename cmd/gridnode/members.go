package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
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

func newInvite(root *options) *cobra.Command {
	var l listing
	var request api.InviteRequest
	var expires, valid string
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Invite a site to be a member of the federation",
		Long: `Make an invitation and print it: one word, to be given to the owner of the new site by a
way that others do not read. It is used once, with 'gridnode init --join TOKEN', while the
daemon of this site runs. The new member gets at most the rights that this site has, and its
certificate does not outlast this site's.

Rights are offer (run jobs of others), submit (have jobs run by others, and borrow
processors), lend, hold (keep parts of the directory) and bank; usual stands for all but
bank. Only the root key gives the right to invite.`,
		Example: `  gridnode invite --site hill
  gridnode invite --site guest --rights submit --valid 7d
  gridnode init --home b --site hill --join $(gridnode invite --site hill)`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := member.ParseRights(request.Rights); err != nil {
				return usagef("--rights: %w", err)
			}
			for _, span := range []struct {
				flag, text string
				to         *api.Seconds
			}{{"expires", expires, &request.Expires}, {"valid", valid, &request.Valid}} {
				d, err := parseSpan(span.text)
				if err != nil {
					return usagef("--%s: %w", span.flag, err)
				}
				*span.to = api.Seconds(d)
			}
			reply, err := root.client().Invite(cmd.Context(), request)
			if err != nil {
				return apiError(err)
			}
			if l.format == formatJSON {
				return printJSON(cmd.OutOrStdout(), reply)
			}
			fmt.Fprintln(cmd.OutOrStdout(), reply.Token)
			fmt.Fprintf(cmd.ErrOrStderr(), "good once, until %s; the new site is made with 'gridnode init --join TOKEN'\n", formatInstant(reply.Expires))
			return nil
		},
	}
	cmd.Flags().StringVar(&request.Name, "site", "", "name that the new member will have; without it, it chooses one")
	cmd.Flags().StringVar(&request.Organisation, "org", "", "organisation that it belongs to")
	cmd.Flags().StringVar(&request.Rights, "rights", "usual", "what it may do: offer, submit, lend, hold, bank, with commas; usual: all but bank")
	cmd.Flags().StringVar(&expires, "expires", spanText(grid.Day), "how long the invitation can be used")
	cmd.Flags().StringVar(&valid, "valid", spanText(90*grid.Day), "how long the certificate is good")
	addListingFlags(cmd, &l, formatTable, formatJSON)
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
