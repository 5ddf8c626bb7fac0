//go:build !client

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
)

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
			return l.act(cmd.OutOrStdout(), reply, []fact{{"token", reply.Token}, {"expires", formatInstant(reply.Expires)}}, func() {
				fmt.Fprintln(cmd.OutOrStdout(), reply.Token)
				fmt.Fprintf(cmd.ErrOrStderr(), "good once, until %s; the new site is made with 'gridnode init --join TOKEN'\n", formatInstant(reply.Expires))
			})
		},
	}
	cmd.Flags().StringVar(&request.Name, "site", "", "name that the new member will have; without it, it chooses one")
	cmd.Flags().StringVar(&request.Organisation, "org", "", "organisation that it belongs to")
	cmd.Flags().StringVar(&request.Rights, "rights", "usual", "what it may do: offer, submit, lend, hold, bank, with commas; usual: all but bank")
	cmd.Flags().StringVar(&expires, "expires", spanText(grid.Day), "how long the invitation can be used")
	cmd.Flags().StringVar(&valid, "valid", spanText(90*grid.Day), "how long the certificate is good")
	addActFlags(cmd, &l)
	return cmd
}
