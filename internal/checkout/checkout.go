// Package checkout says what commit a tree is at: measurements say what they were made with.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Commit returns the commit that a name, such as HEAD, stands for in a tree, by twelve digits of its hash.
// It is an error if dir is no checkout, or has no such name.
func Commit(ctx context.Context, dir, name string) (string, error) {
	return Git(ctx, dir, "rev-parse", "--short=12", "--verify", name+"^{commit}")
}

// Git returns what git says of a tree, without the space around it. Its error has what git has complained of.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%q: %w", cmd.Args, err)
	}
	return strings.TrimSpace(string(out)), nil
}
