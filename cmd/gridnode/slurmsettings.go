//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/run/slurm"
)

// engineSettings are the keys about what runs jobs.
var engineSettings = []setting{
	{key: "site.engine", value: "process", usage: "what runs jobs: process (this machine), or slurm (a Slurm cluster, whose user this account is)",
		set: oneOf(map[string]bool{"process": false, "slurm": true}, func(s *settings) *bool { return &s.onSlurm })},
	{key: "slurm.partition", value: "", usage: "partition of the cluster that jobs go to; empty: the cluster's default",
		set: func(s *settings, v string) error { s.slurm.Partition = v; return nil }},
	{key: "slurm.account", value: "", usage: "account that jobs are charged to; empty: the user's default",
		set: func(s *settings, v string) error { s.slurm.Account = v; return nil }},
	{key: "slurm.qos", value: "", usage: "quality of service that jobs ask for; empty: the cluster's default",
		set: func(s *settings, v string) error { s.slurm.QOS = v; return nil }},
	{key: "slurm.options", value: "", list: true, usage: "further options of sbatch for all jobs, as --name or --name=value, such as --constraint=ib",
		set: func(s *settings, v string) error {
			for o := range strings.SplitSeq(v, ",") {
				if o = strings.TrimSpace(o); o != "" {
					s.slurm.Options = append(s.slurm.Options, o)
				}
			}
			return nil
		}},
	{key: "slurm.workdir", value: "", usage: "directory of what jobs read and write, on a file system that the compute nodes see under the same path; empty: work in the home directory",
		set: func(s *settings, v string) error { s.slurm.Work = v; return nil }},
	{key: "slurm.pilots", value: "0", usage: "processors of the cluster that are kept for small jobs, which then start at once, 0 to 16777216; 0: none",
		set: func(s *settings, v string) (err error) { s.slurm.Pilots, err = intBetween(v, 0, 1<<24); return err }},
	{key: "slurm.pilot-time", value: "1h", usage: "for how long the cluster is asked for them at a time, 2m to 30d; jobs that may run longer than half of it go to the cluster's queue",
		set: func(s *settings, v string) (err error) {
			s.slurm.PilotTime, err = parseSpan(v)
			if err == nil && (s.slurm.PilotTime < 2*grid.Minute || s.slurm.PilotTime > 30*grid.Day) {
				err = fmt.Errorf("%q: want 2m to 30d", v)
			}
			return err
		}},
	{key: "slurm.pilot-idle", value: "30m", usage: "after how long without a small job they are given back, until there is one, or never",
		set: func(s *settings, v string) (err error) {
			if v != "never" {
				s.slurm.PilotIdle, err = parseSpan(v)
			}
			return err
		}},
	{key: "slurm.listen", value: auto, usage: "address of this machine that compute nodes reach, where pilots call; auto: that from which it reaches the cluster's controller",
		set: func(s *settings, v string) error {
			if v == auto {
				return nil
			}
			if net.ParseIP(v) == nil {
				return fmt.Errorf("%q: want an address such as 10.0.0.1", v)
			}
			s.slurm.Listen = v
			return nil
		}},
}

// useSlurm has the site run its jobs on its cluster, once that has said what there is. thin is the
// path of the thinProgram.
func useSlurm(ctx context.Context, cfg *node.HostConfig, s *settings, home, thin string, log *slog.Logger) error {
	if !s.onSlurm {
		return nil
	}
	c := s.slurm
	c.Program = thin
	if c.Work == "" {
		var err error
		if c.Work, err = filepath.Abs(filepath.Join(home, "work")); err != nil {
			return fmt.Errorf("slurm.workdir: %w", err)
		}
	}
	if err := c.Check(); err != nil {
		return usagef("%w", err)
	}
	id, err := peer.IDFromPrivateKey(cfg.Key)
	if err != nil {
		return fmt.Errorf("identity of the node: %w", err)
	}
	c.Work = filepath.Join(c.Work, id.String()) // several sites may share the directory
	n, err := slurm.Probe(ctx, c)
	down := errors.Is(err, slurm.ErrDown)
	if down && s.processorsAuto {
		n = slurm.Remembered(c)
		s.processors = n
	}
	switch {
	case down && s.processorsAuto && n == 0:
		return fmt.Errorf("site.processors: auto takes the number from the cluster, but %w; try 'sinfo', or say a number to start without it", err)
	case down:
		log.Warn("the cluster does not answer: jobs wait until it does", "error", err)
	case err != nil:
		return fmt.Errorf("engine: slurm: %w", err)
	case s.processorsAuto:
		s.processors = n
	case s.processors > n:
		return usagef("site.processors: %d, but the cluster has %d", s.processors, n)
	}
	if c.Pilots > s.processors {
		return usagef("slurm.pilots: %d, but the site has %d processors", c.Pilots, s.processors)
	}
	cfg.Site.Market.Unleased = true
	cfg.Engine, cfg.Work = slurm.Open(c, s.processors), c.Work
	cfg.Site.Processors, cfg.Site.Memory = s.processors, 0
	if !s.memoryAuto && s.processors > 0 {
		cfg.Site.Memory = s.memory / s.processors
	}
	return nil
}
