package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

var guestColumns = []column[api.Guest]{
	{head: "ID", text: func(g api.Guest) string { return shortGuest(&g) }, full: func(g api.Guest) string { return g.ID }},
	{head: "KIND", text: func(g api.Guest) string { return g.Kind }},
	{head: "SITE", text: func(g api.Guest) string { return g.Name }},
	{head: "SITE-ID", wide: true, text: func(g api.Guest) string { return g.Site }},
	{head: "ORG", text: func(g api.Guest) string { return g.Organisation }},
	{head: "USER", text: func(g api.Guest) string { return g.User }},
	{head: "NAME", wide: true, text: func(g api.Guest) string { return g.Job }},
	{head: "CPUS", text: func(g api.Guest) string { return strconv.FormatInt(g.Processors, 10) }},
	{head: "STATE", text: func(g api.Guest) string { return g.State }},
	{head: "SINCE", text: func(g api.Guest) string { return formatInstant(g.Since) }},
	{head: "UNTIL", wide: true, text: func(g api.Guest) string { return formatInstant(g.Until) }},
	{head: "CPU-TIME", text: func(g api.Guest) string { return formatSpan(grid.Time(g.Used)) }},
	{head: "PRICE", text: func(g api.Guest) string { return g.Price.String() }},
	{head: "REASON", text: func(g api.Guest) string { return g.Reason }},
}

func shortGuest(g *api.Guest) string {
	if g.Kind == "job" {
		return shortID(g.ID)
	}
	return g.ID
}

var guestBanColumns = []column[api.GuestBan]{
	{head: "SITE", text: func(b api.GuestBan) string { return b.Site }},
	{head: "ORG", text: func(b api.GuestBan) string { return b.Organisation }},
	{head: "SINCE", text: func(b api.GuestBan) string { return formatInstant(b.Since) }},
	{head: "UNTIL", text: func(b api.GuestBan) string { return formatInstant(b.Until) }},
	{head: "REASON", text: func(b api.GuestBan) string { return b.Reason }},
}

var refusalColumns = []column[api.Refusals]{
	{head: "SITE", text: func(r api.Refusals) string { return r.Name }},
	{head: "SITE-ID", wide: true, text: func(r api.Refusals) string { return r.Site }},
	{head: "REFUSED", text: func(r api.Refusals) string { return strconv.FormatInt(r.Count, 10) }},
	{head: "LAST-BY", text: func(r api.Refusals) string { return r.Last }},
	{head: "AT", text: func(r api.Refusals) string { return formatInstant(r.At) }},
}

func newGuests(root *options) *cobra.Command {
	var l listing
	var bans, refused bool
	cmd := &cobra.Command{
		Use:   "guests",
		Short: "List and end what other sites run here; ban sites",
		Long: `List what other sites have here: their jobs, running or waiting, and processors lent to
them; since when, for whom, and how much processor time it has taken. --bans lists who is
banned, --refused what the rules of guests: in config.yaml have refused since the start.`,
		Example: "  gridnode guests\n  gridnode guests --refused\n  gridnode guests ban gamma --for 1d --reason 'forks without end'",
		Args:    noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if bans && refused {
				return usagef("--bans and --refused exclude each other")
			}
			reply, err := root.client().Guests(cmd.Context())
			switch w := cmd.OutOrStdout(); {
			case err != nil:
				return apiError(err)
			case bans:
				return printList(w, l, guestBanColumns, reply.Bans)
			case refused:
				return printList(w, l, refusalColumns, reply.Refusals)
			default:
				if err := printList(w, l, guestColumns, reply.Guests); err != nil || l.format != formatTable {
					return err
				}
				sayRefused(cmd, reply.Refused)
				return nil
			}
		},
	}
	cmd.Flags().BoolVar(&bans, "bans", false, "list who is banned instead")
	cmd.Flags().BoolVar(&refused, "refused", false, "list to whom something was refused by rule instead")
	addListingFlags(cmd, &l)
	for _, verb := range []*cobra.Command{
		newGuestsChange(root, api.CancelGuests), newGuestsChange(root, api.HoldGuests), newGuestsChange(root, api.ReleaseGuests),
		newGuestsBan(root), newGuestsUnban(root),
	} {
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	return cmd
}

// sayRefused says how often which rules have refused something.
func sayRefused(cmd *cobra.Command, refused map[string]int64) {
	var all int64
	var causes []string
	for cause, n := range refused {
		all += n
		causes = append(causes, cause)
	}
	if all == 0 {
		return
	}
	slices.SortFunc(causes, func(a, b string) int { return cmp.Or(cmp.Compare(refused[b], refused[a]), cmp.Compare(a, b)) })
	text := fmt.Sprintf("refused by rule since the start: %d", all)
	for i, cause := range causes {
		separator := ", "
		if i == 0 {
			separator = " ("
		}
		text += fmt.Sprintf("%s%s %d", separator, cause, refused[cause])
	}
	fmt.Fprintln(cmd.ErrOrStderr(), text+")")
}

// guestTexts are the helps of what can be done with guests.
var guestTexts = map[api.GuestChange]struct{ short, long, done string }{
	api.CancelGuests: {"End jobs of other sites", `End jobs of other sites that run or wait here, by their IDs, or all of a site or an
organisation, whose leases are revoked at once, too. Their homes are told why.`, "cancelled"},
	api.HoldGuests: {"Keep waiting jobs of other sites from starting", `Keep jobs of other sites that wait here from being started until they are released. What
runs already goes on. A job that could not end any more within what its home was promised
is given back: its home places it anew.`, "held"},
	api.ReleaseGuests: {"Let held jobs of other sites start", "Let jobs start that were held: as promised if that is still possible, else as soon as it is.", "released"},
}

func newGuestsChange(root *options, what api.GuestChange) *cobra.Command {
	var change api.GuestsChange
	var l listing
	text := guestTexts[what]
	cmd := &cobra.Command{
		Use:     string(what) + " [JOB...]",
		Short:   text.short,
		Long:    text.long,
		Example: fmt.Sprintf("  gridnode guests %s 7q3k\n  gridnode guests %s --site gamma", what, what),
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Jobs = args
			if err := oneOfThem(len(args) > 0, change.Site != "", change.Organisation != ""); err != nil {
				return err
			}
			done, err := root.client().ChangeGuests(cmd.Context(), what, change)
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), done, changedFacts(done), func() {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", amounts(done), text.done)
			})
		},
	}
	addActFlags(cmd, &l)
	addPartnerFlags(cmd, &change)
	if what == api.CancelGuests {
		cmd.Flags().StringVar(&change.Reason, "reason", "", "`TEXT` that their homes are told; at most 200 bytes")
	}
	return cmd
}

func addPartnerFlags(cmd *cobra.Command, change *api.GuestsChange) {
	cmd.Flags().StringVar(&change.Site, "site", "", "all of this `SITE`: name or ID")
	cmd.Flags().StringVar(&change.Organisation, "org", "", "all of the sites of this `ORGANISATION`")
}

func oneOfThem(named ...bool) error {
	n := 0
	for _, yes := range named {
		if yes {
			n++
		}
	}
	if n != 1 {
		return usagef("wants IDs of jobs, or --site, or --org")
	}
	return nil
}

// changedFacts is how much was changed.
func changedFacts(done *api.GuestsChanged) []fact {
	return []fact{{"jobs", strconv.Itoa(int(done.Jobs))}, {"leases", strconv.Itoa(int(done.Leases))}}
}

// amounts says how much was changed.
func amounts(done *api.GuestsChanged) string {
	text := fmt.Sprintf("%d jobs", done.Jobs)
	if done.Jobs == 1 {
		text = "1 job"
	}
	switch done.Leases {
	case 0:
	case 1:
		text += " and 1 lease"
	default:
		text += fmt.Sprintf(" and %d leases", done.Leases)
	}
	return text
}

// banned reads the partner of a ban: an argument, or --org.
func banned(change *api.GuestsChange, args []string) error {
	switch {
	case len(args) > 1:
		return usagef("takes one site only, got %q as well", args[1])
	case len(args) == 1:
		change.Site = args[0]
	}
	if (change.Site == "") == (change.Organisation == "") {
		return usagef("wants a site, by name or ID, or --org")
	}
	return nil
}

func newGuestsBan(root *options) *cobra.Command {
	var change api.GuestsChange
	var l listing
	span := ""
	cmd := &cobra.Command{
		Use:   "ban [SITE] [flags]",
		Short: "Take nothing more of a site or an organisation",
		Long: `Take nothing more of a site, or of all sites of an organisation, until the ban ends or is
lifted. It counts at once and outlives restarts. What waits here is given back, leases are
not renewed, and what runs ends by itself, or at once with guests.on-ban: cancel.`,
		Example: "  gridnode guests ban gamma\n  gridnode guests ban gamma --for 1d --reason 'forks without end'\n  gridnode guests ban --org 'Institute of Noise'",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := banned(&change, args); err != nil {
				return err
			}
			if span != "" {
				length, err := parseSpan(span)
				if err != nil || length <= 0 {
					return usagef("--for: %q: want a span such as 90m, 12h or 7d", span)
				}
				change.Span = api.Seconds(length)
			}
			done, err := root.client().ChangeGuests(cmd.Context(), api.BanGuests, change)
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), done, changedFacts(done), func() {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is banned; %s ended or to end\n", cmp.Or(change.Site, change.Organisation), amounts(done))
			})
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringVar(&change.Organisation, "org", "", "all sites of this `ORGANISATION`")
	cmd.Flags().StringVar(&span, "for", "", "for this `SPAN` only, such as 12h or 7d")
	cmd.Flags().StringVar(&change.Reason, "reason", "", "`TEXT` for yourself, shown by guests --bans; at most 200 bytes")
	return cmd
}

func newGuestsUnban(root *options) *cobra.Command {
	var change api.GuestsChange
	var l listing
	cmd := &cobra.Command{
		Use:     "unban [SITE] [flags]",
		Short:   "Lift a ban",
		Long:    "Lift a ban: what was banned is let in again, as far as the rules do.",
		Example: "  gridnode guests unban gamma\n  gridnode guests unban --org 'Institute of Noise'",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := banned(&change, args); err != nil {
				return err
			}
			done, err := root.client().ChangeGuests(cmd.Context(), api.UnbanGuests, change)
			if err != nil {
				return apiError(err)
			}
			return l.act(cmd.OutOrStdout(), done, changedFacts(done), func() {})
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringVar(&change.Organisation, "org", "", "this `ORGANISATION`")
	return cmd
}
