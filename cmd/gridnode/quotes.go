package main

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
)

func newQuotes(root *options) *cobra.Command {
	var (
		l                  listing
		maxPrice, order    string
		gpus               string
		minSpeed, cpus     int64
		minFree, limitRows int64
	)
	cmd := &cobra.Command{
		Use:   "quotes",
		Short: "Ask the directory for quotes in a range",
		Long: `Ask the federation's directory for the quotes within a range of price, speed and
processors. A quote says what a site offered when it was issued; nothing is promised.
They come cheapest first, or in the order asked for. A line on stderr says if some may be
missing, as just after sites that keep a part of the directory have died.`,
		Example: `  gridnode quotes --max-price 0.5
  gridnode quotes --min-speed 2000 --cpus 64 --sort speed
  gridnode quotes --gpus a100:2
  gridnode quotes --free 16 -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"sort": {order}}
			if maxPrice != "" {
				if _, err := grid.ParseCredits(maxPrice); err != nil {
					return usagef("--max-price: %w", err)
				}
				query.Set("maxPrice", maxPrice)
			}
			if gpus != "" {
				need, err := grid.ParseGPUs(gpus)
				if err != nil {
					return usagef("--gpus: %w", err)
				}
				query.Set("gpus", need.String())
			}
			for _, p := range []struct {
				flag, key string
				value     int64
			}{{"min-speed", "minSpeed", minSpeed}, {"cpus", "cpus", cpus}, {"free", "free", minFree}, {"limit", "limit", limitRows}} {
				if p.value < 0 {
					return usagef("--%s: %d: want at least 0", p.flag, p.value)
				}
				if p.value > 0 {
					query.Set(p.key, strconv.FormatInt(p.value, 10))
				}
			}
			if order != "price" && order != "speed" && order != "free" {
				return usagef("--sort: %q: want price, speed or free", order)
			}
			reply, err := root.client().Quotes(cmd.Context(), query)
			if err != nil {
				return apiError(err)
			}
			if err := printList(cmd.OutOrStdout(), l, siteColumns(time.Now(), reply.Sites), reply.Sites); err != nil {
				return err
			}
			noteMissing(cmd, reply.Certain)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&maxPrice, "max-price", "", "only prices up to these `CREDITS` per processor-hour")
	f.Int64Var(&minSpeed, "min-speed", 0, "only speeds from this `MIPS` rating on")
	f.Int64Var(&cpus, "cpus", 0, "only sites with at least `COUNT` processors")
	f.Int64Var(&minFree, "free", 0, "only sites with at least `COUNT` free processors")
	f.StringVar(&gpus, "gpus", "", "only sites with so many GPUs, free or not: a number, or a `TYPE:NUMBER` such as a100:2")
	f.Int64Var(&limitRows, "limit", 0, "at most `COUNT` quotes (default: all, up to 10000)")
	f.StringVarP(&order, "sort", "S", "price", "order by `KEY`: price (lowest first), speed (highest first) or free (most first)")
	addListingFlags(cmd, &l)
	return cmd
}
