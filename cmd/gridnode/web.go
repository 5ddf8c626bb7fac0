package main

import (
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"
)

func newWeb(root *options) *cobra.Command {
	var l listing
	var open bool
	var at string
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Print the address of this site's page, for a browser",
		Long: `Print an address for a browser on this machine. The page shows the federation, jobs and
their output, prices, what the site's processors do, guests and money; it submits and ends
jobs. For twelve hours it acts for you, with your role, so give the address to nobody.

The page is at web.listen if that is set, or else at a port of this machine that is free. For
the daemon of another machine, carry the port to yours:
  ssh -L 7533:127.0.0.1:7533 HOST        with web.listen 127.0.0.1:7533 there

With --at it is the page of another site of the federation, where you are a visitor: you see
the federation as that site does, and can change nothing. Its owner says whether members may
(web.members), and this site's membership vouches for you.`,
		Example: `  gridnode web
  gridnode web --open
  gridnode web --at beta
  firefox "$(gridnode web)"`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			page, err := root.client().OpenPage(cmd.Context(), at)
			if err != nil {
				return apiError(err)
			}
			err = l.act(cmd.OutOrStdout(), page, []fact{{"url", page.URL}}, func() { fmt.Fprintln(cmd.OutOrStdout(), page.URL) })
			if err != nil || !open {
				return err
			}
			if err := exec.CommandContext(cmd.Context(), "xdg-open", page.URL).Run(); err != nil {
				return fmt.Errorf("no browser could be opened: %w: open the address yourself", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the page of this `SITE` of the federation, by name or ID")
	cmd.Flags().BoolVar(&open, "open", false, "open it in a browser, too")
	addActFlags(cmd, &l)
	return cmd
}
