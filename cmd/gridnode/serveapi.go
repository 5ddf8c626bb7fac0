//go:build !client

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/api/server"
	"gridnode/node/metrics"
	engine "gridnode/node/run" // run is what this program does
	"gridnode/node/sandbox"
)

// tokensFile is the file of tokens in the home directory. It has hashes only.
const tokensFile = "tokens.json"

// pagesFile is the file of the keys of pages there.
const pagesFile = "pages.json"

// front is what answers users.
type front struct {
	server *server.Server
	health *http.Server // of metrics.listen; nil: there is none
	served chan error   // what ended one of the listeners
	ways   []func() error
}

// openFront opens the daemon's ways for users. Serve answers them.
func openFront(home string, s *settings, host *node.Host, cfg server.Config) (*front, error) {
	log, numbers := cfg.Logger, cfg.Metrics
	tokens, err := access.OpenTokens(filepath.Join(home, tokensFile))
	if err != nil {
		return nil, err
	}
	pages, err := access.OpenTokens(filepath.Join(home, pagesFile))
	if err != nil {
		return nil, err
	}
	cfg.Rating, cfg.Defaults = s.rating, server.Defaults{Estimate: s.estimate, Goal: s.goal, Packs: len(s.pack.Members) > 0}
	cfg.Federation, cfg.Version = s.federation, version
	cfg.People, cfg.Tokens, cfg.Pages, cfg.Visits = s.peopleHere(), tokens, pages, s.doors.visits
	var pair *keyPair
	if s.doors.listen != "" || s.doors.pageIsOpen() {
		if pair, err = openKeyPair(s.doors.certificate, s.doors.key, log); err != nil {
			return nil, err
		}
		cfg.Hosts = pair.names
	}
	f := &front{server: server.New(host, cfg), served: make(chan error, 5)}
	if err := errors.Join(f.open(home, s, pair), f.openHealth(s, numbers, log)); err != nil {
		return nil, errors.Join(err, f.server.Close(context.Background()))
	}
	f.say(s, cfg.People, log)
	return f, nil
}

// peopleHere returns who is what to a daemon of this process's account.
func (s *settings) peopleHere() *access.People {
	people := s.people
	people.Own, people.Alone = uint32(os.Geteuid()), s.onSlurm
	return &people
}

// open opens the listeners.
func (f *front) open(home string, s *settings, pair *keyPair) error {
	own, err := api.ListenAPI(home)
	if err != nil {
		return err
	}
	f.ways = append(f.ways, func() error { return f.server.Serve(own) })
	if s.doors.socket != "" {
		group := -1
		if s.doors.group != "" {
			gid, err := access.Machine.Group(s.doors.group)
			if err != nil {
				return fmt.Errorf("api.group: %w", err)
			}
			group = int(gid)
		}
		shared, err := api.ListenShared(s.doors.socket, s.doors.mode, group)
		if err != nil {
			return err
		}
		f.ways = append(f.ways, func() error { return f.server.Serve(shared) })
	}
	if s.doors.listen != "" {
		port, err := net.Listen("tcp", s.doors.listen)
		if err != nil {
			return fmt.Errorf("api.listen: %w", err)
		}
		f.ways = append(f.ways, func() error { return f.server.ServeTLS(port, pair.config()) })
	}
	return f.openPage(s, pair)
}

// openPage opens the listener of the page, if it has one that was set.
func (f *front) openPage(s *settings, pair *keyPair) error {
	if s.doors.page == "" {
		return nil
	}
	port, err := net.Listen("tcp", s.doors.page)
	if err != nil {
		return fmt.Errorf("web.listen: %w", err)
	}
	var config *tls.Config
	name := ""
	if s.doors.pageIsOpen() {
		config, name = pair.config(), pair.name()
	}
	f.ways = append(f.ways, func() error { return f.server.ServePage(port, name, config) })
	return nil
}

// openHealth opens the port for monitoring on this machine.
func (f *front) openHealth(s *settings, numbers *metrics.Metrics, log *slog.Logger) error {
	if s.doors.metrics == "" {
		return nil
	}
	port, err := net.Listen("tcp", s.doors.metrics)
	if err != nil {
		return fmt.Errorf("metrics.listen: %w", err)
	}
	f.health = numbers.Server()
	f.ways = append(f.ways, func() error {
		if err := f.health.Serve(port); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("metrics.listen: %w", err)
		}
		return nil
	})
	log.Info("monitoring is answered", "address", port.Addr())
	return nil
}

// close ends what answers.
func (f *front) close(ctx context.Context) {
	if f.health != nil {
		_ = f.health.Close()
	}
	_ = f.server.Close(ctx) // requests that are not done by then learn it from their connection
}

// serve answers users until the server is closed.
func (f *front) serve() {
	for _, way := range f.ways {
		go func() { f.served <- way() }()
	}
}

// say tells the log whose jobs run, and as whom.
func (f *front) say(s *settings, people *access.People, log *slog.Logger) {
	own := access.Machine.Account(people.Own)
	others := s.doors.socket != "" || s.doors.listen != ""
	switch {
	case people.Own != 0 && others:
		log.Warn("jobs run as the daemon's account, and only that account may submit: to run each job as its user, start the daemon as root", "account", own)
	case people.Own != 0:
		log.Info("jobs run as the daemon's account, and only that account may submit", "account", own)
	case people.Root:
		log.Warn("each job runs as the account that submits it, and root's as root (users.root: allow)")
	default:
		log.Info("each job runs as the account that submits it; root's are refused (users.root: deny)")
	}
	if others {
		log.Info("open to others", "socket", s.doors.socket, "listen", s.doors.listen)
	}
}

// accountsOfJobs returns whom jobs run as: each as who submitted it. A job that was taken
// before the settings changed is looked at again.
func (s *settings) accountsOfJobs() engine.Accounts {
	people := s.peopleHere()
	accounts := engine.Accounts{}
	if os.Geteuid() == 0 && s.sandbox.Walls == sandbox.None {
		accounts.Guests = s.guestAccount
	}
	accounts.Own = func(user string) (*engine.Account, error) {
		account, err := access.Find(user)
		if err == nil {
			err = people.MayRun(account.UID)
		}
		if err != nil || account.UID == people.Own {
			return nil, err
		}
		return &engine.Account{
			Account: sandbox.Account{User: account.UID, Group: account.GID, Groups: account.Groups},
			Name:    account.Name, Home: account.Home,
		}, nil
	}
	return accounts
}

// scratchOf returns the directory of what jobs of other accounts have; empty if there are none.
func (s *settings) scratchOf(home string) string {
	if os.Geteuid() != 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(home))
	return cmp.Or(s.doors.scratch, "/var/tmp/gridnode-"+hex.EncodeToString(sum[:8]))
}
