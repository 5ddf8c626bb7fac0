package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

var userColumns = []column[api.User]{
	{head: "USER", text: func(u api.User) string { return u.User }},
	{head: "JOBS", text: func(u api.User) string { return ofMost(u.Jobs, u.MaxJobs) }, full: func(u api.User) string { return whole(u.Jobs) }},
	{head: "RUNNING", text: func(u api.User) string { return ofMost(u.Running, u.MaxRunning) }, full: func(u api.User) string { return whole(u.Running) }},
	{head: "CPUS", text: func(u api.User) string { return ofMost(u.Processors, u.MaxProcessors) }, full: func(u api.User) string { return whole(u.Processors) }},
	{head: "MAY-COST", text: func(u api.User) string { return u.MayCost.String() }},
	{head: "SPENT", text: spentOf, full: func(u api.User) string { return u.Spent.String() }},
	{head: "TOTAL", text: func(u api.User) string { return u.Total.String() }},
	{head: "LATELY", wide: true, text: func(u api.User) string { return formatSpan(grid.Time(u.Lately)) },
		full: func(u api.User) string { return strconv.FormatFloat(grid.Time(u.Lately).Seconds(), 'f', -1, 64) }},
	{head: "SHARE", wide: true, text: func(u api.User) string { return whole(u.Share) }},
	{head: "MAX-JOBS", wide: true, text: func(u api.User) string { return bound(u.MaxJobs) }},
	{head: "MAX-RUNNING", wide: true, text: func(u api.User) string { return bound(u.MaxRunning) }},
	{head: "MAX-CPUS", wide: true, text: func(u api.User) string { return bound(u.MaxProcessors) }},
	{head: "MAX-SPEND", wide: true, text: func(u api.User) string {
		if u.MaxSpend == nil {
			return ""
		}
		return u.MaxSpend.String()
	}},
	{head: "SPAN", wide: true, text: func(u api.User) string {
		if u.SpendSpan == 0 {
			return ""
		}
		return formatSpan(grid.Time(u.SpendSpan))
	}},
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// bound prints a limit, nothing if there is none.
func bound(n int64) string {
	if n == 0 {
		return ""
	}
	return whole(n)
}

// ofMost prints a number, and of how many at most.
func ofMost(n, most int64) string {
	if most == 0 {
		return whole(n)
	}
	return whole(n) + "/" + whole(most)
}

func spentOf(u api.User) string {
	if u.MaxSpend == nil {
		return u.Spent.String()
	}
	return u.Spent.String() + "/" + u.MaxSpend.String()
}

func newUsers(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "users",
		Short: "List what users of this site have, may have and have spent",
		Long: `List the users of this site: their jobs that wait or run, how many of those are placed or
run and on how many processors, what they may cost, and what the user has spent: within the
span of his limit, without one within 30 days, and ever. Behind a slash stands the limit.
Users see themselves, operators and admins all. Limits are set in config.yaml below
users.everyone and users.accounts, and count at 'gridnode reload'.`,
		Example: "  gridnode users\n  gridnode users -o wide\n  gridnode users -o csv",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := api.Users(cmd.Context(), root.client())
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, userColumns, reply.Users)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}
