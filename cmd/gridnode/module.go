//go:build !client

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"gridnode/node/api"
	"gridnode/node/wasm"
)

// handModule gives the daemon the module of --wasm, and the job its digest.
func (s *submission) handModule(cmd *cobra.Command, client *api.Client, spec *api.JobSpec) error {
	module, err := readModule(s.wasm)
	if err != nil {
		return usagef("--wasm: %w", err)
	}
	reply, err := client.PutModule(cmd.Context(), module)
	if err != nil {
		return apiError(err)
	}
	spec.Module = reply.Module
	return nil
}

// readModule reads a module from a file.
func readModule(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	module, err := io.ReadAll(io.LimitReader(file, wasm.ModuleMax+1))
	if err != nil {
		return nil, err
	}
	if err := wasm.CheckModule(module); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return module, nil
}
