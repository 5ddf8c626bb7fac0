package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

func newPeers(root *options) *cobra.Command {
	var l listing
	var self bool
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "List the nodes this one is connected to",
		Long: `List the nodes this one is connected to, with the round trip measured to each. With
--self this node's own addresses, which other sites can join.`,
		Example: "  gridnode peers -o wide\n  gridnode init --home b --join $(gridnode peers --self -o name | paste -sd,)",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := api.NewClient(root.home)
			if self {
				info, err := client.Node(cmd.Context())
				if err != nil {
					return apiError(err)
				}
				return printList(cmd.OutOrStdout(), l, []column[string]{{head: "ADDRESS", text: func(a string) string { return a }}}, info.Addresses)
			}
			reply, err := client.Peers(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			return printList(cmd.OutOrStdout(), l, peerColumns, reply.Peers)
		},
	}
	cmd.Flags().BoolVar(&self, "self", false, "this node's own addresses instead")
	addListingFlags(cmd, &l)
	return cmd
}

var peerColumns = []column[api.Peer]{
	{head: "ID", text: func(p api.Peer) string { return "…" + p.ID[max(len(p.ID)-8, 0):] }, full: func(p api.Peer) string { return p.ID }},
	{head: "SITE", text: func(p api.Peer) string { return p.Name }},
	{head: "LATENCY", text: func(p api.Peer) string { return latencyText(p.Latency) }},
	{head: "ADDRESS", text: func(p api.Peer) string { return p.Address }},
	{head: "DIALLED-BY", wide: true, text: func(p api.Peer) string {
		if p.Inbound {
			return "them"
		}
		return "us"
	}},
	{head: "SINCE", text: func(p api.Peer) string { return formatInstant(p.Since) }},
	{head: "AGENT", text: func(p api.Peer) string { return p.Agent }},
	{head: "MEMBER", wide: true, text: func(p api.Peer) string { return strconv.FormatBool(p.Member) }},
}

func latencyText(s api.Seconds) string {
	if s == 0 {
		return ""
	}
	return grid.Time(s).Duration().String()
}
