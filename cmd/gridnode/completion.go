package main

import "github.com/spf13/cobra"

func newCompletion(*options) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Example: `  gridnode completion bash > /etc/bash_completion.d/gridnode
  source <(gridnode completion zsh)
  gridnode completion fish > ~/.config/fish/completions/gridnode.fish`,
		Args:      exactArgs(1, "bash, zsh or fish"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			}
			return usagef("no completion for %q: want bash, zsh or fish", args[0])
		},
	}
}

// namesOf returns the names of the values of an enum, from first to last.
func namesOf[T interface {
	~uint8
	String() string
}](first, last T) []string {
	var names []string
	for value := first; value <= last; value++ {
		names = append(names, value.String())
	}
	return names
}
