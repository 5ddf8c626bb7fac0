//go:build !client

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
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/spf13/cobra"

	"gridnode/coalloc"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/footprint"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
	"gridnode/node"
	"gridnode/node/api/server"
	"gridnode/node/logging"
	"gridnode/node/metrics"
	"gridnode/node/p2p"
	"gridnode/node/sandbox"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/wasm"
)

// closeMax is how long a stopping daemon lets requests finish.
const closeMax = 5 * time.Second

// serveGC has a daemon collect when its heap is half as large again as what lives, unless GOGC
// says otherwise: with Go's default, twice as large, a flood of submissions takes a quarter more
// memory, for some percent less processor time.
const serveGC = 50

func newStart(root *options) *cobra.Command {
	var detach bool
	var readyFD int
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the daemon of this home",
		Long: `Run the daemon of this home in the foreground, as a service manager likes it. When it
is ready it prints one line: the site's name, its ID and its addresses, which other
sites can join. SIGTERM, SIGINT and 'gridnode stop' end it; jobs that run go on and are
taken up again at the next start. At SIGHUP it reads config.yaml again, as at 'gridnode reload'.

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
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serveGC)
	}
	ready := newReadiness(readyFD)
	defer func() { ready.failed(err) }()
	manager, err := findServiceManager()
	if err != nil {
		return err
	}
	s, values, err := loadSettings(home, cmd.Flags())
	if err != nil {
		return settingsError(err)
	}
	if err := checkPrivate(home); err != nil {
		return err
	}
	unlock, err := lockHome(home)
	if err != nil {
		return err
	}
	defer unlock()
	log, levels, lines, err := openLog(home, s, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	cfg, err := hostConfig(home, s, log)
	if err != nil {
		return err
	}
	thin := thinProgram(cmd.Context())
	cfg.Shim.Program = heldOpen(thin)
	if err := useSlurm(cmd.Context(), &cfg, s, home, thin, log); err != nil {
		return err
	}
	ready.note(guard(&cfg, log))
	if err := trace(cmd.Context(), &cfg, s, log); err != nil {
		return err
	}
	numbers := metrics.New(version, thisBuild().Revision)
	cfg.Metrics = numbers.Registry
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	hangups := make(chan os.Signal, 1) // from now on SIGHUP does not end the process
	signal.Notify(hangups, syscall.SIGHUP)
	host, err := node.Start(ctx, cfg)
	switch {
	case errors.Is(err, p2p.ErrListen):
		return fmt.Errorf("start site %s: %w: end what listens there, or choose another address with --listen or network.listen, e.g. 127.0.0.1:0 for any free port", s.name, err)
	case err != nil:
		return fmt.Errorf("start site %s: %w", s.name, err)
	}
	settings := &reloader{home: home, flags: cmd.Flags(), host: host, log: log, level: levels, values: values}
	numbers.Watch(host)
	front, err := openFront(home, s, host, server.Config{
		Metrics: numbers, Logger: log.With(logging.PartKey, "api"), Levels: levels, Stop: cancel, Reload: settings.reload,
		Backup: backupOf(home, s, host), Lines: lines,
	})
	if err != nil {
		return errors.Join(err, host.Close())
	}
	go settings.onHangup(ctx, hangups)
	front.serve()
	announce(cmd.OutOrStdout(), s, host, ready, manager, log)
	go func() {
		if err := footprint.Keep(ctx); err != nil {
			log.Debug("pages of the program that are not used stay resident", "error", err)
		}
	}()
	go manager.keepAlive(ctx, func(ctx context.Context) error { return host.Do(ctx, func(*site.Site) {}) }, log)

	select {
	case <-ctx.Done():
		cancel() // a second signal ends the process at once
		log.Info("stopping")
	case <-host.Done():
	case err = <-front.served:
	}
	manager.stopping()
	closing, done := context.WithTimeout(context.Background(), closeMax)
	defer done()
	front.close(closing)
	err = errors.Join(err, host.Close())
	log.Info("stopped")
	return err
}

// announce says to whoever started the daemon that it answers.
func announce(stdout io.Writer, s *settings, host *node.Host, ready *readiness, manager serviceManager, log *slog.Logger) {
	ready.line(stdout, fmt.Sprintf("%s %s %s", s.name, host.ID(), strings.Join(host.Addrs(), " ")))
	manager.ready(fmt.Sprintf("site %s in federation %s", s.name, s.federation))
	if host.Membership() == nil {
		log.Warn("the federation is open: whoever knows an address takes part, so no job of another site runs here; 'gridnode federation create' makes one of members", "federation", s.federation)
	}
	log.Info("ready", "site", s.name, "id", host.ID(), "addresses", host.Addrs(), "version", version)
}

// guard finds out what this machine has to hold jobs of other sites with, if there may be
// some. Without a sandbox they are refused: the site does not offer itself. It returns why they
// are, for whoever starts the daemon.
func guard(cfg *node.HostConfig, log *slog.Logger) (refused string) {
	if !cfg.Site.Foreign && !cfg.Site.Lease.Lend && cfg.Site.Head == "" {
		return ""
	}
	if cfg.Sandbox.Walls == sandbox.None {
		return guardBare(cfg, os.Geteuid() == 0, log)
	}
	cfg.Means = sandbox.Find()
	kind, err := cfg.Means.Walls(cfg.Sandbox.Walls)
	cfg.Site.Modules = cfg.Site.Foreign && (cfg.Modules.Guests == wasm.GuestsAny || cfg.Modules.Guests == wasm.GuestsSandbox && err == nil)
	if err != nil {
		const text = "jobs of other sites are refused: this machine has no sandbox for them; see 'gridnode diag sandbox'"
		log.Error(text, "error", err)
		cfg.Site.Foreign, cfg.Site.Lease.Lend, cfg.Site.Head = false, false, ""
		if cfg.Site.Modules {
			log.Warn("modules of other sites run all the same, without a sandbox (wasm.guests: any)")
		}
		return fmt.Sprintf("%s: %v", text, err)
	}
	log.Info("jobs of other sites run in a sandbox", "walls", kind, "groups", cfg.Means.Groups)
	if cfg.Means.Groups == nil {
		log.Warn("limits of jobs are looked after now and then only, and processors not at all", "error", cfg.Means.NoGroups)
	}
	return ""
}

// guardBare says what becomes of jobs of other sites that nothing walls in. As root they
// never run: whoever sends one would have the machine. It returns what guard does.
func guardBare(cfg *node.HostConfig, root bool, log *slog.Logger) (refused string) {
	account := cfg.Accounts.Guests
	switch {
	case root && cfg.Engine == nil && account == nil:
		refused = "jobs of other sites are refused: they would run as root, without a sandbox (sandbox.walls: none): leave that setting out, or name an account for them that may do nothing special (guests.account)"
		log.Error(refused)
		cfg.Site.Foreign, cfg.Site.Lease.Lend, cfg.Site.Head, cfg.Site.Modules = false, false, "", false
		return refused
	case account != nil:
		log.Warn("jobs of other sites run without a sandbox (sandbox.walls: none), all as one account: they can read what it can, and end each other", "account", account.Name)
	default:
		log.Warn("jobs of other sites run as this account, without a sandbox (sandbox.walls: none): whoever sends one can read the site's key")
	}
	cfg.Site.Modules = cfg.Site.Foreign && (cfg.Modules.Guests == wasm.GuestsAny || !root && cfg.Modules.Guests != wasm.GuestsNone)
	return ""
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
	card, err := loadCard(home)
	if err != nil {
		return node.HostConfig{}, err
	}
	if card != nil && card.Federation.Name != s.federation {
		return node.HostConfig{}, usagef("federation: %s, but %s is of %s: say the same", s.federation, filepath.Join(home, rootsFile), card.Federation.Name)
	}
	cfg := node.HostConfig{
		Member: card, Renewed: func(c *node.Card) error { return saveCard(home, c) },
		Home: home, Key: key, Federation: s.federation, Listen: s.listen, Join: s.join, Version: version, Logger: log,
		Store: store.Options{Check: []string{self, checkVerb}}, History: s.history, FetchMax: s.fetchMax, Files: s.files,
		Site: site.Config{
			Numbers: true,
			Name:    s.name, Resources: grid.Resources{Processors: s.processors}, Rating: s.rating,
			Price: s.price, Cost: s.cost, Foreign: s.foreign, Discipline: s.discipline, Weights: s.weights,
			Guests:       s.guests,
			Users:        &s.quotas,
			Siblings:     sibling.Config{Authority: s.authority},
			Survey:       coalloc.SurveyConfig{Within: s.latency},
			Lease:        site.LeaseConfig{Lend: s.lend, Most: s.lendMost, Price: s.leasePrice, Pay: s.leasePay, Term: s.leaseTerm, Span: s.leaseLongest, Match: s.delegate, Consent: s.invitations},
			Coallocation: coalloc.CoordinatorConfig{Queue: coalloc.QueueConfig{Policy: s.placement}}, Radius: s.radius, Penalty: s.penalty,
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
	cfg.Sandbox, cfg.Reach = s.sandbox, s.reach
	cfg.Reach.Probe = true
	if !s.onSlurm { // those of a cluster are not this machine's to grant
		cfg.GPUs, cfg.Site.GPUs, cfg.Site.GPUWeight = s.gpus.visible, s.gpus.devices, s.gpuWeight
	}
	cfg.Modules = s.modules
	cfg.Modules.Shared = s.doors.socket != "" || s.doors.listen != ""
	cfg.Modules.Program = self
	cfg.Accounts, cfg.Shared = s.accountsOfJobs(), s.scratchOf(home)
	cfg.Site.Heads, cfg.Site.Head = s.pack, grid.SiteID(s.packHead)
	cfg.Site.Market.Lease = keepalive.Default
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

// openLog returns the daemon's log, which of it is written, and the last lines.
func openLog(home string, s *settings, stderr io.Writer) (*slog.Logger, *logging.Levels, *logging.Tail, error) {
	w := stderr
	if s.logFile != "" {
		path := s.logFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(home, path)
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("log.file: %w", err)
		}
		w = file
	}
	levels, lines := logging.NewLevels(s.logLevel, s.logOwn), new(logging.Tail)
	w = io.MultiWriter(lines, w)
	all := &slog.HandlerOptions{Level: slog.LevelDebug} // levels says what is too much
	var h slog.Handler = slog.NewTextHandler(w, all)
	if s.logJSON {
		h = slog.NewJSONHandler(w, all)
	}
	return slog.New(levels.Handler(h)), levels, lines, nil
}
