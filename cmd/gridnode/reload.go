//go:build !client

package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/logging"
	"gridnode/node/site"
)

// reloader reads the settings of a running daemon again.
type reloader struct {
	home  string
	flags *pflag.FlagSet
	host  *node.Host
	log   *slog.Logger
	level *logging.Levels

	mu     sync.Mutex
	values []effective // as they count now
}

// reloads reports whether a setting can change while the daemon runs.
func reloads(key string) bool {
	return strings.HasPrefix(key, "guests.") && key != "guests.account" || key == "site.price" || key == "users.half-life" ||
		key == "log.level" || key == "log.levels" ||
		strings.HasPrefix(key, quotaEveryone+".") || strings.HasPrefix(key, quotaAccounts+".")
}

// reload reads the settings and has those count that can. If anything in the file is wrong
// nothing changes.
func (r *reloader) reload(ctx context.Context) ([]api.SettingChange, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, values, err := loadSettings(r.home, r.flags)
	if err != nil {
		return nil, &api.Error{Code: api.CodeUsage, Message: "nothing has changed: " + err.Error()}
	}
	if err := r.notePrice(ctx); err != nil {
		return nil, err
	}
	changes := changedSettings(r.values, values)
	for _, c := range changes {
		if c.Key != "site.price" {
			continue
		}
		if _, err := r.host.Ask(ctx, func(token uint64) grid.Input { return &site.SetPrice{Token: token, Price: s.price} }); err != nil {
			return nil, err
		}
	}
	if err := r.host.Govern(ctx, s.guests); err != nil {
		return nil, err
	}
	if _, err := r.host.Ask(ctx, func(token uint64) grid.Input { return &site.ConfigureUsers{Token: token, Config: s.quotas} }); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(changes, func(c api.SettingChange) bool { return c.Key == "log.level" || c.Key == "log.levels" }) {
		r.level.Configure(s.logLevel, s.logOwn)
	}
	kept := slices.DeleteFunc(slices.Clone(r.values), func(e effective) bool { return reloads(e.Key) })
	r.values = append(kept, slices.DeleteFunc(values, func(e effective) bool { return !reloads(e.Key) })...)
	for _, c := range changes {
		r.log.Info("a setting was changed", "key", c.Key, "before", c.Before, "after", c.After, "restart", c.Restart)
	}
	return changes, nil
}

// notePrice puts the price that counts in the place of the one that was read last, as 'config
// set' may have changed it since.
func (r *reloader) notePrice(ctx context.Context) error {
	var price grid.Price
	var fixed bool
	err := r.host.Do(ctx, func(s *site.Site) { price, fixed = s.Price(), s.Pricing() == market.PricingFixed })
	if err != nil || !fixed {
		return err
	}
	r.values = slices.Clone(r.values)
	for i := range r.values {
		e := &r.values[i]
		if e.Key != "site.price" {
			continue
		}
		if read, err := parsePrice(e.Value); err == nil && read != price {
			e.Value = price.String()
		}
	}
	return nil
}

// changedSettings returns what differs, by key.
func changedSettings(before, after []effective) (changes []api.SettingChange) {
	was := make(map[string]string)
	for _, e := range before {
		was[e.Key] = e.Value
	}
	for _, e := range after {
		old, there := was[e.Key]
		delete(was, e.Key)
		if !there || old != e.Value {
			changes = append(changes, api.SettingChange{Key: e.Key, Before: old, After: e.Value, Restart: !reloads(e.Key)})
		}
	}
	for key, old := range was {
		changes = append(changes, api.SettingChange{Key: key, Before: old, Restart: !reloads(key)})
	}
	slices.SortFunc(changes, func(a, b api.SettingChange) int { return cmp.Compare(a.Key, b.Key) })
	return changes
}

// onHangup reloads at every SIGHUP until ctx ends.
func (r *reloader) onHangup(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-hangups:
			changes, err := r.reload(ctx)
			if err != nil {
				r.log.Error("SIGHUP: the settings are not read again", "error", err)
			} else if len(changes) == 0 {
				r.log.Info("SIGHUP: no setting has changed")
			}
		case <-ctx.Done():
			return
		}
	}
}

func newReload(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its settings again",
		Long: `Have the daemon read config.yaml again, as SIGHUP does, and print what has changed. The
rules for guests, the limits of users and the price count at once; of everything else it says that the daemon
has to be started anew. If anything in the file is wrong nothing changes. What guests run
already goes on: 'gridnode guests' lists and ends it.`,
		Example: "  gridnode reload\n  gridnode reload -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := root.client().Reload(cmd.Context())
			if err != nil {
				return apiError(err)
			}
			if len(reply.Changes) == 0 && l.format == formatTable {
				fmt.Fprintln(cmd.ErrOrStderr(), "no setting has changed")
				return nil
			}
			return printList(cmd.OutOrStdout(), l, changeColumns, reply.Changes)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

var changeColumns = []column[api.SettingChange]{
	{head: "KEY", text: func(c api.SettingChange) string { return c.Key }},
	{head: "BEFORE", text: func(c api.SettingChange) string { return c.Before }},
	{head: "AFTER", text: func(c api.SettingChange) string { return c.After }},
	{head: "COUNTS", text: func(c api.SettingChange) string {
		if c.Restart {
			return "after a restart"
		}
		return "now"
	}},
}
