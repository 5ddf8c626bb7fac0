//go:build !client

package main

import (
	"github.com/spf13/cobra"

	"gridnode/testnet/scenario/hostile"
)

func newRunHostile() *cobra.Command {
	cfg, l := hostile.Default(), listing{}
	cmd := &cobra.Command{
		Use:   "hostile [flags]",
		Short: "A federation of which some members lie and forge",
		Long: `A federation with real keys and certificates, of whose members a share is hostile. As
holders of the directory they drop quotes, leave holes, give stale ones, replay answers,
change prices, make up members, send others to cells that there are not, or say nothing.
Besides, they forge messages, cheques, receipts and revocations, or send again what was
good once; what they say passes the encoders and decoders of real nodes. Some of them are
revoked halfway.

It is measured which of the live quotes honest sites find. The run ends with exit code 1
if that is less than 99 %, or as soon as anything forged has an effect, money is lost, or
anything of a revoked member is there after a minute.`,
		Example: `  gridnode testnet run hostile --sites 30 --hours 0.2
  gridnode testnet run hostile --share 0.1 --hours 0.1 -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := hostile.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&cfg.Sites, "sites", cfg.Sites, "number of members, 10 to 500")
	f.Float64Var(&cfg.Hours, "hours", cfg.Hours, "virtual hours of submissions and lies, more than 0, at most 1000")
	f.Float64Var(&cfg.Share, "share", cfg.Share, "share of the members that are hostile, 0 to 0.5")
	f.IntVar(&cfg.Revoke, "revoke", cfg.Revoke, "hostile members whose certificates are taken back halfway; their quotes must be gone within a minute")
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}
