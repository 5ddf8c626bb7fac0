package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// linkColumns are the columns of links.
var linkColumns = []column[api.SiteLink]{
	{head: "SITE", text: func(l api.SiteLink) string { return peerText(l.Peer, l.Site) }, full: func(l api.SiteLink) string { return l.Peer }},
	{head: "ID", wide: true, text: func(l api.SiteLink) string { return l.Site }},
	{head: "RELATION", text: func(l api.SiteLink) string { return l.Relation }},
	{head: "STANDING", text: func(l api.SiteLink) string { return l.Standing }},
	{head: "BY", text: func(l api.SiteLink) string { return l.Origin }},
	{head: "REASON", text: func(l api.SiteLink) string { return l.Reason }},
}

func newLinks(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "links",
		Short: "List the sites that this one borrows from by itself",
		Long: `List the links of this site in the hierarchy of delegation: its siblings, its children
and its parent, how each link stands, and whether it comes from the configuration
(delegation.links) or from an invitation. Invitations that wait for 'link accept' have
the standing offered. A link that would make a site its own ancestor is suspended.`,
		Example: "  gridnode links\n  gridnode links -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Links(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, linkColumns, reply.Links)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

func newLink(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Invite sites to borrow from each other, and answer invitations",
		Long: `Invite sites to be children of this one, answer such invitations, and undo links. Parent
and children ask each other for processors when they are full, as far as
delegation.threshold and leases.lend of each allow it; so do the children of one parent.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{
		newLinkVerb(root, api.InviteLink, "invite SITE", "Invite a site to be a child of this one",
			`Invite a site, named by name or ID, to be a child of this one. Its users accept with
'gridnode link accept', unless its configuration (delegation.invitations, or this site as
parent in delegation.links) has decided. The command returns with the site's first word:
linked, waiting for its users, or declined (exit code 5); without a word after ten seconds
the invitation goes on. It stands for a week.`),
		newLinkVerb(root, api.AcceptLink, "accept SITE", "Become a child of a site that has invited this one",
			`Accept the invitation of a site: it is this site's parent from then on, and its other
children are siblings. A site has one parent at most, and may not be above itself.`),
		newLinkVerb(root, api.DropLink, "drop SITE", "Decline or withdraw an invitation, leave a parent, part with a child",
			`Undo a link that was made by invitation: decline an invitation, withdraw one, leave the
parent, or part with a child. Leases that are under way go on. Links of the configuration
are undone there.`),
	} {
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	return cmd
}

func newLinkVerb(root *options, change api.LinkChange, use, short, long string) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: exactArgs(1, "SITE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().ChangeLink(cmd.Context(), change, args[0])
			if err != nil {
				return apiError(err)
			}
			if l.format != formatTable {
				return printOne(cmd.OutOrStdout(), l, linkColumns, reply.Link)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), linkText(change, &reply.Link)+"\n")
			return err
		},
	}
	cmd.Example = "  gridnode link " + cmd.Name() + " hill"
	addActFlags(cmd, &l)
	return cmd
}

// linkText says what has become of a link.
func linkText(change api.LinkChange, l *api.SiteLink) string {
	name := cellText(l.Peer)
	switch {
	case change == api.DropLink && l.Standing == "leaving":
		return fmt.Sprintf("%s: no link any more; it is being told", name)
	case change == api.DropLink:
		return fmt.Sprintf("%s: no link any more", name)
	case l.Standing == "invited":
		return fmt.Sprintf("%s: invited; it is linked once its users accept", name)
	}
	return fmt.Sprintf("%s: %s as %s", name, l.Standing, l.Relation)
}
