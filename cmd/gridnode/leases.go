package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

// leaseColumns are the columns of leases.
func leaseColumns(now time.Time) []column[api.Lease] {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	left := func(at api.Instant) string {
		if at == 0 {
			return ""
		}
		return formatSpan(max(grid.Time(at-api.InstantOf(now)), 0))
	}
	return []column[api.Lease]{
		{head: "LEASE", text: func(l api.Lease) string { return strconv.FormatUint(l.Number, 10) }},
		{head: "DIRECTION", text: func(l api.Lease) string { return l.Direction }},
		{head: "SITE", text: func(l api.Lease) string { return peerText(l.Peer, l.Borrower, l.Lender) }, full: func(l api.Lease) string { return l.Peer }},
		{head: "BORROWER", wide: true, text: func(l api.Lease) string { return l.Borrower }},
		{head: "LENDER", wide: true, text: func(l api.Lease) string { return l.Lender }},
		{head: "CPUS", text: func(l api.Lease) string { return number(l.Processors) }},
		{head: "USED", text: func(l api.Lease) string { return usedText(&l) }},
		{head: "STATE", text: func(l api.Lease) string { return l.State }},
		{head: "LEFT", text: func(l api.Lease) string { return left(l.Limit) }},
		{head: "PRICE", text: func(l api.Lease) string { return priceText(l.Price) }},
		{head: "COST", text: func(l api.Lease) string { return priceText(l.Ceiling) }},
		{head: "TERM", wide: true, text: func(l api.Lease) string { return left(l.End) }},
		{head: "HOPS", wide: true, text: func(l api.Lease) string { return number(int64(l.Hops)) }},
	}
}

// usedText prints how many borrowed processors run jobs; of what is lent only the
// borrower knows.
func usedText(l *api.Lease) string {
	if l.Direction == "out" {
		return ""
	}
	return strconv.FormatInt(l.Used, 10)
}

// priceText prints an amount, nothing for a lease that is free.
func priceText(a api.Amount) string {
	if a == 0 {
		return ""
	}
	return a.String()
}

func newLeases(root *options) *cobra.Command {
	var l listing
	var in, out bool
	cmd := &cobra.Command{
		Use:   "leases",
		Short: "List the processors borrowed from other sites and lent to them",
		Long: `List the processors that this site has borrowed from other sites (direction in) and lent
to them (out): how many, how many of them run jobs of this site, and how much time is
left until the lease ends at the latest. PRICE is credits per processor-hour, COST the
most that it can cost; what it has cost is in 'gridnode bank statement' once it is over.`,
		Example: "  gridnode leases\n  gridnode leases --in -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			direction := ""
			switch {
			case in && !out:
				direction = "in"
			case out && !in:
				direction = "out"
			}
			reply, err := root.client().Leases(cmd.Context(), direction)
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, leaseColumns(time.Now()), reply.Leases)
		},
	}
	cmd.Flags().BoolVar(&in, "in", false, "only what is borrowed")
	cmd.Flags().BoolVar(&out, "out", false, "only what is lent")
	addListingFlags(cmd, &l)
	return cmd
}

func newLease(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Borrow processors, and give them back or take them back",
		Long: `Borrow processors of another site for a time: they run the jobs of this site's queue,
which stay this site's in every respect. A lease ends by itself; until then the site
renews it as long as it lives.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{newLeaseRequest(root), newLeaseRenew(root), newLeaseRelease(root), newLeaseRevoke(root)} {
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	return cmd
}

func newLeaseRequest(root *options) *cobra.Command {
	var l listing
	request, span, most := api.LeaseRequest{}, "", ""
	cmd := &cobra.Command{
		Use:   "request SITE -n COUNT -t TIME [flags]",
		Short: "Borrow processors of a site",
		Long: `Borrow processors of a site, named by name or ID, and wait until they can be used or the
site refuses (exit code 5). Jobs that wait in this site's queue start on them; a job
runs on the processors of one lease, and only if it ends within its time. A lease with a
price is paid for from this site's bank before it can be used: the price of the whole time
is held, and what was not used goes back when it ends.`,
		Example: "  gridnode lease request hill -n 16 -t 2:00:00\n  gridnode lease request hill -n 16 -t 2h --max-price 0.5\n  gridnode lease request hill -n 1 -t 30m -o json",
		Args:    exactArgs(1, "SITE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Site = args[0]
			if err := leaseSpan(span, &request.Time); err != nil {
				return err
			}
			if request.Processors < 1 {
				return usagef("--processors: %d: want at least 1", request.Processors)
			}
			if most != "" {
				price, err := parsePrice(most)
				if err != nil {
					return usagef("--max-price: %w", err)
				}
				request.MaxPrice = api.Amount(price)
			}
			reply, err := root.client().RequestLease(cmd.Context(), request)
			if err != nil {
				return apiError(err)
			}
			return printLease(cmd, l, reply, "borrowed")
		},
	}
	cmd.Flags().Int64VarP(&request.Processors, "processors", "n", 0, "how many processors to borrow, at least 1")
	cmd.Flags().StringVarP(&span, "time", "t", "", "for how long: minutes, [d-]hh:mm:ss, or a duration as 90s or 2h")
	cmd.Flags().StringVar(&most, "max-price", "", "most `CREDITS` to be paid for a processor-hour (default: leases.pay of the settings)")
	addActFlags(cmd, &l)
	return cmd
}

func newLeaseRenew(root *options) *cobra.Command {
	var l listing
	span := ""
	cmd := &cobra.Command{
		Use:   "renew LEASE -t TIME",
		Short: "Ask for a borrowed lease to last longer",
		Long: `Ask the lender to let a lease last until TIME from now. The command returns once the
wish is on its way; 'gridnode leases' shows what was granted. A lease with a price is paid
for until its end: it is refused (exit code 5).`,
		Example: "  gridnode lease renew 1763640000000000 -t 1:00:00",
		Args:    exactArgs(1, "LEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var change api.LeaseChangeRequest
			if err := leaseSpan(span, &change.Time); err != nil {
				return err
			}
			return changeLease(cmd, root, l, args[0], change, api.RenewLease, "asked to be renewed")
		},
	}
	cmd.Flags().StringVarP(&span, "time", "t", "", "from now: minutes, [d-]hh:mm:ss, or a duration as 90s or 2h")
	addActFlags(cmd, &l)
	return cmd
}

func newLeaseRelease(root *options) *cobra.Command {
	var l listing
	var change api.LeaseChangeRequest
	cmd := &cobra.Command{
		Use:   "release LEASE",
		Short: "Give borrowed processors back",
		Long: `Give borrowed processors back before their time. It is refused (exit code 5) while jobs
run there: cancel them or wait for their end. With --force they are ended, and start again
here or elsewhere. If the lender cannot be reached, or never comes back, they start again
once nothing of them can be alive there any more, which is two terms and ten seconds after
its last word; the lease ends by itself on both sides then.`,
		Example: "  gridnode lease release 1763640000000000\n  gridnode lease release 1763640000000000 --force",
		Args:    exactArgs(1, "LEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeLease(cmd, root, l, args[0], change, api.ReleaseLease, "released")
		},
	}
	cmd.Flags().BoolVar(&change.Force, "force", false, "end the jobs that run there; they start again")
	addActFlags(cmd, &l)
	return cmd
}

func newLeaseRevoke(root *options) *cobra.Command {
	var l listing
	var change api.LeaseChangeRequest
	cmd := &cobra.Command{
		Use:   "revoke LEASE",
		Short: "Take lent processors back",
		Long: `Take lent processors back: the lease is not renewed any more and ends within its term,
so that jobs may end before. With --force it ends now: what runs there is killed, and
its borrower starts it again elsewhere.`,
		Example: "  gridnode lease revoke 1763640000000000\n  gridnode lease revoke 1763640000000000 --force",
		Args:    exactArgs(1, "LEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeLease(cmd, root, l, args[0], change, api.RevokeLease, "revoked")
		},
	}
	cmd.Flags().BoolVar(&change.Force, "force", false, "kill what runs there, now")
	cmd.Flags().StringVar(&change.Borrower, "borrower", "", "name or ID of the `SITE` that has it, if several have a lease of that number")
	addActFlags(cmd, &l)
	return cmd
}

// leaseSpan reads a span that must be given.
func leaseSpan(text string, into *api.Seconds) error {
	if text == "" {
		return usagef("--time is missing: say for how long, as -t 2:00:00")
	}
	span, err := parseSpan(text)
	if err != nil {
		return usagef("--time: %w", err)
	}
	*into = api.Seconds(span)
	return nil
}

func changeLease(cmd *cobra.Command, root *options, l listing, lease string, change api.LeaseChangeRequest, what api.LeaseChange, done string) error {
	number, err := strconv.ParseUint(lease, 10, 64)
	if err != nil || number == 0 {
		return usagef("%q is no number of a lease: 'gridnode leases' lists them", lease)
	}
	change.Number = number
	reply, err := root.client().ChangeLease(cmd.Context(), what, change)
	if err != nil {
		return apiError(err)
	}
	return printLease(cmd, l, reply, done)
}

// printLease prints a lease in l's format, or says in a line what became of it.
func printLease(cmd *cobra.Command, l listing, reply *api.LeaseReply, done string) error {
	if l.format != formatTable {
		return printOne(cmd.OutOrStdout(), l, leaseColumns(time.Now()), reply.Lease)
	}
	if reply.Lease.Ceiling > 0 {
		done += fmt.Sprintf(", for %s credits a processor-hour, at most %s", reply.Lease.Price, reply.Lease.Ceiling)
	}
	with := "from"
	if reply.Lease.Direction == "out" {
		with = "lent to"
	}
	_, err := io.WriteString(cmd.OutOrStdout(), fmt.Sprintf("lease %d: %d processors %s %s: %s\n",
		reply.Lease.Number, reply.Lease.Processors, with, cellText(reply.Lease.Peer), done))
	return err
}
