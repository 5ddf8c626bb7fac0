package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

func newDiagNet(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "net",
		Short: "Say how other sites reach this one, and what to do where they do not",
		Long: `Say how other sites reach this one: what it listens on, whether others were able to
connect, which relays it uses or is, which holes were punched into NATs, and how each peer
is connected and by how much its clock differs. Each peer is asked, which takes up to ten
seconds. For what does not work there is a line that says what to do.

The exit code is 1 if others cannot reach this site, or if nobody is connected.`,
		Example: `  gridnode diag net
  gridnode diag net -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Net(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			if l.format == formatJSON {
				err = printJSON(cmd.OutOrStdout(), reply)
			} else {
				err = printNet(cmd.OutOrStdout(), l, reply)
			}
			if err == nil && !reply.OK {
				return exitStatus(exitFailed)
			}
			return err
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// reachText says what reachability means.
var reachText = map[string]string{
	"public":   "public: others can connect to this node",
	"private":  "private: others cannot connect to this node by themselves",
	"local":    "local: no NAT is in sight; nobody from outside has tried",
	"loopback": "loopback: only this machine can connect to this node",
	"unknown":  "unknown: nobody has tried yet",
}

// printNet prints the table of peers, and around it what is not about one peer.
func printNet(w io.Writer, l listing, n *api.Net) error {
	if l.format == formatTable || l.format == formatWide {
		printNetHead(w, n)
	}
	names := make(map[string]string)
	for _, p := range n.Peers {
		names[p.ID] = p.Name
	}
	err := printList(w, l, []column[api.NetPeer]{
		{head: "PEER", text: func(p api.NetPeer) string { return endOfID(p.ID) }, full: func(p api.NetPeer) string { return p.ID }},
		{head: "SITE", text: func(p api.NetPeer) string { return p.Name }},
		{head: "BY", text: func(p api.NetPeer) string { return connectionText(p.Kind, p.Punched) }},
		{head: "RELAY", text: func(p api.NetPeer) string { return relayText(p.Relay, names) }, full: func(p api.NetPeer) string { return p.Relay }},
		{head: "LATENCY", text: func(p api.NetPeer) string { return latencyText(p.Latency) }},
		{head: "CLOCK", text: func(p api.NetPeer) string { return clockText(p.Offset) }},
		{head: "ADDRESS", wide: true, text: func(p api.NetPeer) string { return p.Address }},
	}, n.Peers)
	if l.format != formatTable && l.format != formatWide {
		return err
	}
	for _, p := range n.Problems {
		fmt.Fprintf(w, "\n%s\n  %s\n", p.What, p.Do)
	}
	return err
}

func printNetHead(w io.Writer, n *api.Net) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(name string, values ...string) {
		if text := strings.Join(values, " "); text != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, text)
		}
	}
	line("reachability", reachText[n.Reachability])
	line("listening on", n.Listen...)
	line("announced", n.Announced...)
	line("others connect to", n.Reachable...)
	line("others cannot connect to", n.Unreachable...)
	line("not tried yet", n.Unchecked...)
	line("others see", n.Observed...)
	if n.NAT {
		line("NAT", "between this machine and some peers")
	}
	line("relays", n.Relays...)
	if n.Serving {
		line("is a relay", fmt.Sprintf("of %d connections now", n.Circuits))
	}
	if n.Punched+n.InVain > 0 {
		line("holes punched", fmt.Sprintf("%d; attempts that failed: %d", n.Punched, n.InVain))
	}
	_ = tw.Flush()
	fmt.Fprintln(w)
}

// endOfID returns the end of an ID, which tells more than its beginning.
func endOfID(id string) string { return "…" + id[max(len(id)-8, 0):] }

// relayText returns the name of a relay if it is known, else the end of its ID.
func relayText(id string, names map[string]string) string {
	switch {
	case id == "":
		return ""
	case names[id] != "":
		return names[id]
	}
	return endOfID(id)
}

// clockText says by how much another clock is ahead: less than the unit is nothing.
func clockText(offset *api.Seconds) string {
	if offset == nil {
		return ""
	}
	d := grid.Time(*offset).Duration().Round(time.Millisecond)
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
