package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/site"
)

// drainedFile says in the home that the site takes no new work: the owner's wish outlives
// the daemon.
const drainedFile = "drained"

// Drain has the site take no new work, of its users and of others, or take it again. What it
// has goes on. It returns once that is durable.
func (h *Host) Drain(ctx context.Context, undo bool) error {
	if h.cfg.Home != "" {
		if err := rememberDrain(h.cfg.Home, undo); err != nil {
			return err
		}
	}
	_, err := h.Ask(ctx, func(token uint64) grid.Input { return &site.Drain{Token: token, Back: undo} })
	return err
}

func rememberDrain(home string, undo bool) error {
	path := filepath.Join(home, drainedFile)
	var err error
	if undo {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	} else {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		err = atomicfile.SyncDir(home)
	}
	if err != nil {
		return fmt.Errorf("remember that the site is drained: %w", err)
	}
	return nil
}

// stayDrained has a site that was drained before it started take no new work.
func stayDrained(h *Host, now grid.Time) {
	if h.cfg.Home == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(h.cfg.Home, drainedFile)); err == nil {
		h.log.Warn("the site is being drained: it takes no new work until 'gridnode drain --undo'")
		h.loop.step(now, &site.Drain{})
	}
}
