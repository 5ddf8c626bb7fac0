package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/spf13/cobra"

	"gridnode/coalloc"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/api/server"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/store"
)

// closeMax is how long a stopping daemon lets requests finish.
const closeMax = 5 * time.Second

func newStart(root *options) *cobra.Command {
	var detach bool
	var readyFD int
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the daemon of this home",
		Long: `Run the daemon of this home in the foreground, as a service manager likes it. When it
is ready it prints one line: the site's name, its ID and its addresses, which other
sites can join. SIGTERM, SIGINT and 'gridnode stop' end it; jobs that run go on and are
taken up again at the next start.

With --detach it goes to the background; the command returns when it is ready, and the
log is written to the file log in the home directory. Flags count before
the settings in config.yaml and are not written there.`,
		Example: `  gridnode start
  gridnode start --detach
  gridnode start --price 0.25 --foreign allow`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detach {
				return startDetached(cmd, root.home)
			}
			return serve(cmd, root.home, readyFD)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "go to the background once ready")
	cmd.Flags().IntVar(&readyFD, "ready-fd", 0, "")
	_ = cmd.Flags().MarkHidden("ready-fd")
	addSettingFlags(cmd)
	return cmd
}

// serve runs the daemon until it is told to stop. On readyFD, if not 0, the process
// that started this one waits for the line that says that it is ready.
func serve(cmd *cobra.Command, home string, readyFD int) (err error) {
	ready := newReadiness(readyFD)
	defer func() { ready.failed(err) }()
	s, _, err := loadSettings(home, cmd.Flags())
	if err != nil {
		return settingsError(err)
	}
	unlock, err := lockHome(home)
	if err != nil {
		return err
	}
	defer unlock()
	log, err := openLog(home, s, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	cfg, err := hostConfig(home, s, log)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	host, err := node.Start(ctx, cfg)
	switch {
	case errors.Is(err, p2p.ErrListen):
		return fmt.Errorf("start site %s: %w: end what listens there, or choose another address with --listen or network.listen, e.g. /ip4/127.0.0.1/tcp/0 for any free port", s.name, err)
	case err != nil:
		return fmt.Errorf("start site %s: %w", s.name, err)
	}
	listener, err := api.ListenAPI(home)
	if err != nil {
		return errors.Join(err, host.Close())
	}
	api := server.New(host, server.Config{
		Rating: s.rating, Defaults: server.Defaults{Estimate: s.estimate, Goal: s.goal, Packs: len(s.pack.Members) > 0},
		Federation: s.federation, Version: version, Logger: log, Stop: cancel,
	})
	served := make(chan error, 1)
	go func() { served <- api.Serve(listener) }()
	ready.line(cmd.OutOrStdout(), fmt.Sprintf("%s %s %s", s.name, host.ID(), strings.Join(host.Addrs(), " ")))
	log.Info("ready", "site", s.name, "id", host.ID(), "addresses", host.Addrs(), "version", version)

	select {
	case <-ctx.Done():
		cancel() // a second signal ends the process at once
		log.Info("stopping")
	case <-host.Done():
	case err = <-served:
	}
	closing, done := context.WithTimeout(context.Background(), closeMax)
	defer done()
	_ = api.Close(closing) // requests that are not done by then learn it from their connection
	err = errors.Join(err, host.Close())
	log.Info("stopped")
	return err
}

// hostConfig turns settings into what the node is told.
func hostConfig(home string, s *settings, log *slog.Logger) (node.HostConfig, error) {
	key, err := loadKey(home)
	if err != nil {
		return node.HostConfig{}, err
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return node.HostConfig{}, fmt.Errorf("identity of the node: %w", err)
	}
	own := grid.SiteID(id.String())
	if err := lease.CheckLinks(own, s.delegate.Links); err != nil {
		return node.HostConfig{}, usagef("delegation.links: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return node.HostConfig{}, fmt.Errorf("find this program: %w", err)
	}
	cfg := node.HostConfig{
		Home: home, Key: key, Federation: s.federation, Listen: s.listen, Join: s.join, Version: version, Logger: log,
		Store: store.Options{Check: []string{self, checkVerb}}, FetchMax: s.fetchMax,
		Site: site.Config{
			Name: s.name, Resources: grid.Resources{Processors: s.processors}, Rating: s.rating,
			Price: s.price, Cost: s.cost, Foreign: s.foreign, Discipline: s.discipline, Weights: s.weights,
			Siblings:     sibling.Config{Authority: s.authority},
			Survey:       coalloc.SurveyConfig{Within: s.latency},
			Lease:        site.LeaseConfig{Lend: s.lend, Most: s.lendMost, Term: s.leaseTerm, Span: s.leaseLongest, Match: s.delegate, Consent: s.invitations},
			Coallocation: coalloc.CoordinatorConfig{Queue: coalloc.QueueConfig{Policy: s.placement}}, Radius: s.radius,
			Limits: site.Limits{Jobs: int(s.jobs), PerUser: int(s.perUser), Finished: int(s.finished), Retention: s.retention},
		},
	}
	if s.processors > 0 {
		cfg.Site.Memory = s.memory / s.processors
	}
	if cfg.Site.Bank, err = bankConfig(s, own); err != nil {
		return node.HostConfig{}, err
	}
	cfg.Join = append(append(slices.Clone(cfg.Join), s.bankJoin...), s.muscleJoin...)
	if slices.Contains(s.pack.Members, string(self)) {
		return node.HostConfig{}, usagef("muscle.members: a site does not head itself; its own processors take part anyway")
	}
	if s.packHead == string(own) {
		return node.HostConfig{}, usagef("muscle.head: a site is not its own head")
	}
	cfg.Site.Heads, cfg.Site.Head = s.pack, grid.SiteID(s.packHead)
	cfg.Site.Market.Pricing, cfg.Site.Market.Demand, cfg.Site.Market.Placement = s.pricing, s.demand, s.marketPlacement
	return cfg, nil
}

// bankConfig turns settings into what the site is told about banks.
func bankConfig(s *settings, self grid.SiteID) (bank.Config, error) {
	site := func(text string) grid.SiteID {
		if text == bankSelf {
			return self
		}
		return grid.SiteID(text)
	}
	c := bank.Config{Offer: s.bankOffer, Bank: site(s.bankSite)}
	for _, text := range s.bankAccept {
		c.Accept = append(c.Accept, site(text))
	}
	if c.Bank == self && !c.Offer {
		return c, usagef("bank.site: this site keeps no bank: set bank.offer to true, or name another site")
	}
	return c, nil
}

// openLog returns the daemon's log.
func openLog(home string, s *settings, stderr io.Writer) (*slog.Logger, error) {
	w := stderr
	if s.logFile != "" {
		path := s.logFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(home, path)
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("log.file: %w", err)
		}
		w = file
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
