package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClientIsSmall: the client is built of little besides Go's library, so that starting it
// costs little. A package that is missing here belongs behind the constraint !client, unless
// its initialization costs next to nothing.
func TestClientIsSmall(t *testing.T) {
	small := []string{
		"gridnode/cmd/gridnode", "gridnode/cmd/gridnode/slurm", "gridnode/grid", "gridnode/internal/atomicfile", "gridnode/node/api", "gridnode/node/console",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys/unix", "golang.org/x/term",
		// Of the shim, which clusters start twice for each job.
		"gridnode/node/shim", "gridnode/node/shim/link", "gridnode/internal/footprint", "gridnode/node/kept", "gridnode/node/sandbox", "gridnode/node/sandbox/cgroup", "gridnode/node/store/journal",
		"github.com/creack/pty", "github.com/elastic/go-seccomp-bpf", "github.com/elastic/go-seccomp-bpf/arch", "github.com/elastic/go-seccomp-bpf/internal/unix", "golang.org/x/net/bpf",
	}
	list := exec.Command("go", "list", "-deps", "-tags", "client", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	said, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(said))
	for _, dep := range deps {
		if !slices.Contains(small, dep) {
			t.Errorf("the client has %s", dep)
		}
	}
	if len(deps) < 5 {
		t.Errorf("saw only %d packages: %q", len(deps), deps)
	}
}
