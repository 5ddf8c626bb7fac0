//go:build !client

package main

import "github.com/spf13/cobra"

// newDiag returns the verbs that try out what works here.
func newDiag(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diag",
		Short: "Try out what works here, and say what to do about the rest",
		Long:  "Try out what works here: the sandbox of this machine, and the ways to other sites.",
		Args:  noVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDiagSandbox(), newDiagNet(root))
	return cmd
}
