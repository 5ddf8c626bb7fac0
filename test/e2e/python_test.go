package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// TestPythonClient runs the tests of clients/python against a daemon.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	alpha := newSite(t, "alpha").start()
	tests := exec.CommandContext(t.Context(), python, "-B", "-W", "error::SyntaxWarning", "-m", "unittest", "-v")
	tests.Dir = "../../clients/python"
	tests.Env = append(os.Environ(), "GRIDNODE_HOME="+alpha.home)
	if b, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}
