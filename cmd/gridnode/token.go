package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

var tokenColumns = []column[api.Token]{
	{head: "ID", text: func(t api.Token) string { return t.ID }},
	{head: "USER", text: func(t api.Token) string { return t.User }},
	{head: "ROLE", text: func(t api.Token) string { return t.Role }},
	{head: "CREATED", text: func(t api.Token) string { return t.Created.Time().Format(time.DateOnly) }},
	{head: "EXPIRES", text: func(t api.Token) string {
		if t.Expired {
			return "expired"
		}
		return formatInstant(t.Expires)
	}},
}

func newToken(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Let somebody ask this site from elsewhere",
		Long: `Make, list and revoke tokens. Who bears a token speaks as the account that it names, with
its role, at the port that api.listen opens: over TLS, and nowhere else. Only admins make
tokens, and only at the site itself.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(root), newTokenList(root), newTokenRevoke(root))
	return cmd
}

func newTokenCreate(root *options) *cobra.Command {
	var l listing
	var expires string
	request := api.TokenRequest{}
	cmd := &cobra.Command{
		Use:   "create USER",
		Short: "Make a token and print it",
		Long: `Make a token for an account of this machine and print it. It is shown this once: the site
keeps only its hash. Give it to its bearer by a way that others do not read.`,
		Example: `  gridnode token create ann
  gridnode token create ann --role operator --expires 7d
  gridnode --remote https://physics.example.org:7532 status`,
		Args: exactArgs(1, "USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			span, err := parseSpan(expires)
			if err != nil {
				return usagef("--expires: %w", err)
			}
			request.User, request.Expires = args[0], api.Seconds(span)
			token, err := root.client().CreateToken(cmd.Context(), request)
			if err != nil {
				return apiError(err)
			}
			facts := []fact{{"secret", token.Secret}, {"id", token.ID}, {"user", token.User}, {"role", token.Role}, {"expires", formatInstant(token.Expires)}}
			return l.act(cmd.OutOrStdout(), token, facts, func() {
				fmt.Fprintln(cmd.OutOrStdout(), token.Secret)
				fmt.Fprintf(cmd.ErrOrStderr(), "token %s: speaks as %s, %s, until %s; it is not shown again\n", token.ID, cellText(token.User), token.Role, formatInstant(token.Expires))
			})
		},
	}
	cmd.Flags().StringVar(&request.Role, "role", "user", "what it may do: user, operator or admin")
	cmd.Flags().StringVar(&expires, "expires", spanText(30*grid.Day), "how long it is good, 1m to 366d")
	addActFlags(cmd, &l)
	return cmd
}

func newTokenList(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens of this site",
		Example: "  gridnode token list\n  gridnode token list -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Tokens(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, tokenColumns, reply.Tokens)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

func newTokenRevoke(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a token at once",
		Example: "  gridnode token revoke 5f02c1d9a3be",
		Args:    exactArgs(1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := root.client().RevokeToken(cmd.Context(), args[0])
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), token, []fact{{"id", token.ID}, {"user", token.User}}, func() {
				fmt.Fprintf(cmd.OutOrStdout(), "token %s of %s is good no longer\n", token.ID, cellText(token.User))
			})
		},
	}
	addActFlags(cmd, &l)
	return cmd
}
