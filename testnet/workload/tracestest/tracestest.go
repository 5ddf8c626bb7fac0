// Package tracestest tells tests where the real workload traces are.
package tracestest

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder of the traces: GRIDNODE_TRACES, or shared/traces beside the
// module if that is not set. It need not exist: then what needs it skips.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("GRIDNODE_TRACES"); dir != "" {
		return dir
	}
	root, err := os.Getwd() // of the package that is tested
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "..", "shared", "traces")
		}
		above := filepath.Dir(root)
		if above == root {
			t.Fatal("the test runs outside the module: there is no go.mod above its folder")
		}
		root = above
	}
}
