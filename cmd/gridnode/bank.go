package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

func newBank(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bank",
		Short: "Show and move credits",
		Long: `A site whose bank.site names a bank pays for its jobs at other sites: the price is
held there before a job leaves, the executing site is paid once the job has ended, and
the rest goes back. Amounts are settled (at the owner's disposal), in flight (cheques
made out to the account) and committed (held for jobs that are under way).

Any site may keep a bank (bank.offer). Its owner issues credits with "bank grant",
which also opens accounts. See docs/bank.md.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBankBalance(root), newBankStatement(root), newBankTransfer(root), newBankGrant(root))
	return cmd
}

func newBankBalance(root *options) *cobra.Command {
	var l listing
	var all bool
	cmd := &cobra.Command{
		Use:   "balance [ACCOUNT]",
		Short: "Print what is in this site's account",
		Long: `Print what is in this site's account: settled, in flight and committed. Where the bank
is kept, another site's account can be named (name or ID), or --all.`,
		Example: "  gridnode bank balance\n  gridnode bank balance --all -o json",
		Args:    atMostOne("account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if all {
				query.Set("all", "true")
			}
			if len(args) > 0 {
				if all {
					return usagef("--all and an account exclude each other")
				}
				query.Set("account", args[0])
			}
			reply, err := root.client().BankBalance(cmd.Context(), query)
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, accountColumns, reply.Accounts)
		},
	}
	addListingFlags(cmd, &l)
	cmd.Flags().BoolVar(&all, "all", false, "every account of the bank kept here, the issuer's included")
	return cmd
}

// atMostOne checks for no argument or one.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("takes one %s, got %q as well", what, args[1])
		}
		return nil
	}
}

var accountColumns = []column[api.BankAccount]{
	{head: "ACCOUNT", text: func(a api.BankAccount) string { return siteText(a.Name, a.Account) }, full: func(a api.BankAccount) string { return a.Account }},
	{head: "SETTLED", text: func(a api.BankAccount) string { return a.Settled.String() }},
	{head: "IN-FLIGHT", text: func(a api.BankAccount) string { return a.InFlight.String() }},
	{head: "COMMITTED", text: func(a api.BankAccount) string { return a.Committed.String() }},
	{head: "BANK", text: func(a api.BankAccount) string { return siteText(a.BankName, a.Bank) }, full: func(a api.BankAccount) string { return a.Bank }},
}

// siteText names a site for people.
func siteText(name, id string) string {
	switch {
	case name != "":
		return name
	case len(id) > 16:
		return "…" + id[len(id)-8:]
	}
	return id
}

// peerText names a site for people whose name may be its ID, if nobody knows another.
func peerText(name string, ids ...string) string {
	if slices.Contains(ids, name) {
		return siteText("", name)
	}
	return name
}

func newBankStatement(root *options) *cobra.Command {
	var l listing
	var limit int64
	cmd := &cobra.Command{
		Use:   "statement [ACCOUNT]",
		Short: "Print the newest transactions of this site's account",
		Long: `Print the newest transactions of this site's account, newest first: what each added to
what is settled and to what is committed, and for which job or lease. Where the bank is kept, another site's account
can be named.`,
		Example: "  gridnode bank statement\n  gridnode bank statement --limit 100 -o csv",
		Args:    atMostOne("account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 100 {
				return usagef("--limit: %d: want 1 to 100", limit)
			}
			query := url.Values{"limit": {strconv.FormatInt(limit, 10)}}
			if len(args) > 0 {
				query.Set("account", args[0])
			}
			reply, err := root.client().BankStatement(cmd.Context(), query)
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, entryColumns, reply.Entries)
		},
	}
	addListingFlags(cmd, &l)
	cmd.Flags().Int64Var(&limit, "limit", 20, "print at most so many, 1 to 100")
	return cmd
}

var entryColumns = []column[api.BankEntry]{
	{head: "NUMBER", text: func(e api.BankEntry) string { return strconv.FormatUint(e.Sequence, 10) }},
	{head: "TIME", text: func(e api.BankEntry) string { return formatInstant(e.At) }},
	{head: "KIND", text: func(e api.BankEntry) string { return e.Kind }},
	{head: "SETTLED", text: func(e api.BankEntry) string { return signed(e.Settled) }},
	{head: "COMMITTED", text: func(e api.BankEntry) string { return signed(e.Committed) }},
	{head: "WITH", text: func(e api.BankEntry) string { return siteText(e.Name, e.Other) }, full: func(e api.BankEntry) string { return e.Other }},
	{head: "JOB", text: func(e api.BankEntry) string { return e.Job[:min(len(e.Job), 8)] }, full: func(e api.BankEntry) string { return e.Job }},
	{head: "LEASE", text: func(e api.BankEntry) string { return leaseText(e.Lease) }},
	{head: "ID", wide: true, text: func(e api.BankEntry) string { return e.ID }},
}

// leaseText prints the number of a lease, nothing for none.
func leaseText(number uint64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatUint(number, 10)
}

// signed prints what was added with its sign.
func signed(a api.Amount) string {
	if a > 0 {
		return "+" + a.String()
	}
	return a.String()
}

func newBankTransfer(root *options) *cobra.Command {
	return newBankMove(root, bankMove{
		verb: "transfer", short: "Move credits of this site's account to another site's",
		long: `Move credits of this site's account to that of another site at the same bank (name or
ID), and print what is left. What is committed cannot be moved. The command can be
repeated safely with --id: the same ID moves credits once.`,
		done: "moved %v credits to %s, as transfer %s",
		move: func(c *api.Client, cmd *cobra.Command, m api.BankMove) (*api.BankReply, error) {
			return c.BankTransfer(cmd.Context(), m)
		},
	})
}

func newBankGrant(root *options) *cobra.Command {
	return newBankMove(root, bankMove{
		verb: "grant", short: "Issue credits of the bank kept here",
		long: `Issue credits of the bank that is kept here (bank.offer) to a site, which need not be
known yet if its ID is given, and print what it has now. A site's first grant opens its
account. The credits come from the issuer's account, which is negative by all that was
ever issued. The same --id grants once.`,
		done: "granted %v credits to %s, as grant %s",
		move: func(c *api.Client, cmd *cobra.Command, m api.BankMove) (*api.BankReply, error) {
			return c.BankGrant(cmd.Context(), m)
		},
	})
}

// bankMove is a verb that moves credits.
type bankMove struct {
	verb, short, long, done string
	move                    func(*api.Client, *cobra.Command, api.BankMove) (*api.BankReply, error)
}

func newBankMove(root *options, verb bankMove) *cobra.Command {
	var l listing
	var id string
	cmd := &cobra.Command{
		Use:     verb.verb + " SITE CREDITS",
		Short:   verb.short,
		Long:    verb.long,
		Example: fmt.Sprintf("  gridnode bank %s physics 12.5\n  gridnode bank %s physics 12.5 --id 0123456789abcdefghjkmnpqrs", verb.verb, verb.verb),
		Args:    exactArgs(2, "a site and an amount"),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := grid.ParseCredits(args[1])
			if err == nil && amount == 0 {
				err = fmt.Errorf("%q: want more than 0", args[1])
			}
			if err != nil {
				return usagef("amount: %w", err)
			}
			if id == "" {
				id = newJobID().String()
			} else if _, err := grid.ParseJobID(id); err != nil {
				return usagef("--id: %q: want 26 characters, as 'submit' prints them", id)
			}
			reply, err := verb.move(root.client(), cmd, api.BankMove{ID: id, To: args[0], Amount: api.Amount(amount)})
			if err != nil {
				return apiError(err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), verb.done+"\n", amount, args[0], id)
			return printList(cmd.OutOrStdout(), l, accountColumns, reply.Accounts)
		},
	}
	addListingFlags(cmd, &l)
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the "+verb.verb+", 26 characters, so that it can be repeated safely (default: drawn at random)")
	return cmd
}
