package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/member"
	"gridnode/test/realsite"
	"gridnode/test/slurm"
)

// world is a federation of sites on this machine, some in front of Slurm clusters.
type world struct {
	program  string
	dir      string
	keep     bool     // leave dir behind
	env      []string // besides what every site has, of those made from now on
	home     *member.Household
	sites    []*site
	clusters []*slurm.Cluster
}

// newWorld makes one without sites.
func newWorld(program string) (*world, error) {
	path, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("-gridnode: %w: make build makes it", err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	home, err := member.NewHousehold(rand.Reader, key, "measure", grid.Time(time.Now().UnixMicro()), grid.Day)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slurm-measure-")
	if err != nil {
		return nil, err
	}
	w := &world{program: filepath.Join(dir, "gridnode"), dir: dir, home: home}
	// What is built meanwhile is another one. The client starts the whole program, if it is beside it.
	for _, name := range []string{filepath.Base(path), "gridnoded"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if errors.Is(err, fs.ErrNotExist) && name == "gridnoded" {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name != "gridnoded" {
			name = "gridnode"
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// written makes an empty file that jobs write to: those of another site, too, which run as
// another account if this is root.
func (w *world) written(path string) error {
	return errors.Join(os.Chmod(w.dir, 0o711), os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
}

// close ends everything and removes what it left.
func (w *world) close() {
	for _, s := range w.sites {
		s.kill()
	}
	for _, c := range w.clusters {
		c.Down()
	}
	if w.keep {
		fmt.Fprintln(os.Stderr, w.dir)
		return
	}
	_ = os.RemoveAll(w.dir)
}

// cluster starts a cluster.
func (w *world) cluster(ctx context.Context, cfg slurm.Config) (*slurm.Cluster, error) {
	cfg.Folder = filepath.Join(w.dir, "slurm-"+cfg.Name)
	if err := os.Mkdir(cfg.Folder, 0o755); err != nil {
		return nil, err
	}
	c, err := slurm.Up(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w.clusters = append(w.clusters, c)
	return c, nil
}

// site is a home, and its daemon while one runs.
type site struct {
	w          *world
	name, home string
	addr       string
	env        []string
	daemon     *exec.Cmd
	client     *api.Client
}

// site makes a site and starts its daemon; c is its cluster, nil: it runs processes.
func (w *world) site(ctx context.Context, name string, c *slurm.Cluster, flags ...string) (*site, error) {
	s := &site{w: w, name: name, home: filepath.Join(w.dir, name)}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GRIDNODE_HOME=" + s.home, "GRIDNODE_USERS_ROOT=allow", "GRIDNODE_SANDBOX_WALLS=none", "GRIDNODE_GUESTS_ACCOUNT=nobody"}
	s.env = append(s.env, w.env...)
	if c != nil {
		work := filepath.Join(w.dir, name+"-work")
		if err := os.Mkdir(work, 0o700); err != nil {
			return nil, err
		}
		s.env = append(s.env, "GRIDNODE_SITE_ENGINE=slurm", "GRIDNODE_SLURM_WORKDIR="+work, c.Env())
	}
	if err := os.Mkdir(s.home, 0o700); err != nil {
		return nil, err
	}
	port, err := realsite.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"init", "--site", name, "--listen", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port), "--speed", "1000", "--federation", "measure", "--foreign", "allow"}
	if len(w.sites) > 0 {
		args = append(args, "--join", w.sites[0].addr)
	}
	if out, err := s.command(ctx, append(args, flags...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("init %s: %w: %s", name, err, out)
	}
	if err := realsite.Enrol(s.home, w.home, s.name); err != nil {
		return nil, err
	}
	w.sites = append(w.sites, s)
	s.client = api.NewClient(s.home)
	return s, s.start()
}

// command is the program about to run for this site.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.w.program, args...)
	cmd.Env, cmd.Dir = s.env, s.home
	return cmd
}

// start starts the daemon and returns once it is ready.
func (s *site) start() error {
	cmd := s.command(context.Background(), "start")
	ready, err := realsite.Start(cmd, filepath.Join(s.home, "daemon.log"))
	if err != nil {
		return fmt.Errorf("site %s: %w", s.name, err)
	}
	s.daemon, s.addr = cmd, ready.Address
	return nil
}

// kill ends the daemon as a crash does.
func (s *site) kill() {
	if s.daemon != nil {
		_ = s.daemon.Process.Signal(syscall.SIGKILL)
		_ = s.daemon.Wait()
		s.daemon = nil
	}
}

// sees returns once the site's directory lists so many sites.
func (s *site) sees(ctx context.Context, n int) error { return realsite.Sees(ctx, s.client, n) }

// untilPause is as exact as anything here is measured that is waited for.
const untilPause = 20 * time.Millisecond
