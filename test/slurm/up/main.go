// Up starts two real Slurm clusters on loopback and keeps them until it is interrupted:
// a of two processors, and b of sixteen that keeps accounts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"gridnode/test/slurm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := keep(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "slurm:", err)
		os.Exit(1)
	}
}

func keep(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "slurm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, cfg := range []slurm.Config{
		{Name: "a", Processors: 2},
		{Name: "b", Nodes: 2, Processors: 8, Accounting: true, Extra: "AccountingStorageEnforce=associations"},
	} {
		cfg.Folder = filepath.Join(folder, cfg.Name)
		if err := os.MkdirAll(cfg.Folder, 0o755); err != nil {
			return err
		}
		c, err := slurm.Up(ctx, cfg)
		if err != nil {
			return err
		}
		defer c.Down()
		fmt.Printf("cluster %s: %d processors\n  export %s\n", c.Name, c.Nodes*c.Processors, c.Env())
	}
	fmt.Println("both run until Ctrl-C; set one of the two variables to use sbatch, squeue, or a site with engine: slurm")
	<-ctx.Done()
	return nil
}
