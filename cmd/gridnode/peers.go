package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

func newPeers(root *options) *cobra.Command {
	var l listing
	var self, banned bool
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "List the nodes this one is connected to, and those it has banned",
		Long: `List the nodes this one is connected to, with the round trip measured to each, and how
they are connected: by quic or tcp, punched if through a hole in NATs, or relayed through
another member. With --self this node's own addresses, which other sites can join. With
--banned the peers and addresses of which it takes no connection for a while, as they went on
asking for more than anybody may: until when, why, how often before, and how often they came
meanwhile. 'gridnode peers unban' lifts a ban.`,
		Example: "  gridnode peers -o wide\n  gridnode peers --banned\n  gridnode init --home b --join $(gridnode peers --self -o name | paste -sd,)",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := root.client()
			if self {
				info, err := client.Node(cmd.Context())
				if err != nil {
					return apiError(err)
				}
				return printList(cmd.OutOrStdout(), l, []column[string]{{head: "ADDRESS", text: func(a string) string { return a }}}, info.Addresses)
			}
			bans, err := client.Bans(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			if banned {
				return printList(cmd.OutOrStdout(), l, banColumns, bans.Bans)
			}
			reply, err := client.Peers(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			if len(bans.Bans) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d peers or addresses are banned: see 'gridnode peers --banned'\n", len(bans.Bans))
			}
			return printList(cmd.OutOrStdout(), l, peerColumns, reply.Peers)
		},
	}
	cmd.Flags().BoolVar(&self, "self", false, "this node's own addresses instead")
	cmd.Flags().BoolVar(&banned, "banned", false, "the peers and addresses that are banned instead")
	cmd.MarkFlagsMutuallyExclusive("self", "banned")
	addListingFlags(cmd, &l)
	unban := newUnban(root)
	unban.DisableFlagsInUseLine = true
	cmd.AddCommand(unban)
	return cmd
}

func newUnban(root *options) *cobra.Command {
	return &cobra.Command{
		Use:   "unban PEER",
		Short: "Let a banned peer or address connect again",
		Long: `Lift the ban of a peer, named by its ID, the end of it, or the name of its site, or that of
an address. Its earlier bans are forgotten, too: another one would last as long as the first.`,
		Example: "  gridnode peers unban hill\n  gridnode peers unban 192.0.2.7",
		Args:    exactArgs(1, "a peer or an address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().Unban(cmd.Context(), args[0])
			if err != nil {
				return apiError(err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s may connect again\n", cmp.Or(reply.Ban.Name, reply.Ban.Peer, reply.Ban.Address))
			return nil
		},
	}
}

var banColumns = []column[api.Ban]{
	{head: "PEER", text: func(b api.Ban) string { return idEnd(b.Peer) }, full: func(b api.Ban) string { return b.Peer }},
	{head: "SITE", text: func(b api.Ban) string { return b.Name }},
	{head: "ADDRESS", text: func(b api.Ban) string { return b.Address }},
	{head: "BANNED-UNTIL", text: func(b api.Ban) string { return formatInstant(b.Until) }},
	{head: "TIMES", text: func(b api.Ban) string { return strconv.Itoa(b.Times) }},
	{head: "REFUSED", text: func(b api.Ban) string { return strconv.FormatInt(b.Refused, 10) }},
	{head: "WHY", text: func(b api.Ban) string { return b.Why }},
}

// idEnd returns what tells an ID apart from others, empty for none.
func idEnd(id string) string {
	if id == "" {
		return ""
	}
	return "…" + id[max(len(id)-8, 0):]
}

var peerColumns = []column[api.Peer]{
	{head: "ID", text: func(p api.Peer) string { return idEnd(p.ID) }, full: func(p api.Peer) string { return p.ID }},
	{head: "SITE", text: func(p api.Peer) string { return p.Name }},
	{head: "LATENCY", text: func(p api.Peer) string { return latencyText(p.Latency) }},
	{head: "BY", text: func(p api.Peer) string { return connectionText(p.Kind, p.Punched) }},
	{head: "ADDRESS", text: func(p api.Peer) string { return addressText(p.Address) }, full: func(p api.Peer) string { return p.Address }},
	{head: "DIALLED-BY", wide: true, text: func(p api.Peer) string {
		if p.Inbound {
			return "them"
		}
		return "us"
	}},
	{head: "SINCE", text: func(p api.Peer) string { return formatInstant(p.Since) }},
	{head: "AGENT", text: func(p api.Peer) string { return p.Agent }},
	{head: "MESSAGES", wide: true, text: func(p api.Peer) string { return strconv.FormatInt(p.Messages, 10) }},
	{head: "HELD", wide: true, text: func(p api.Peer) string { return strconv.FormatInt(p.Held, 10) }},
	{head: "MEMBER", wide: true, text: func(p api.Peer) string { return strconv.FormatBool(p.Member) }},
}

// connectionText says how a peer is connected.
func connectionText(kind string, punched bool) string {
	if punched {
		return kind + ", punched"
	}
	return kind
}

// addressText shortens the address of a relayed connection to that of the relay.
func addressText(address string) string {
	short, _, _ := strings.Cut(address, "/p2p/")
	return short
}

func latencyText(s api.Seconds) string {
	if s == 0 {
		return ""
	}
	return grid.Time(s).Duration().String()
}
