package testnet

import (
	"errors"
	"strings"
	"testing"
)

// TestPanicIsAViolation: a core that finds itself broken ends a run like a violated
// invariant, with an error.
func TestPanicIsAViolation(t *testing.T) {
	result, err := caught(func() (*Result, error) { panic("lease: a job runs twice") })
	if result != nil || err == nil || !strings.Contains(err.Error(), "lease: a job runs twice") {
		t.Errorf("result %v, error %v, want what was wrong", result, err)
	}
	want := errors.New("a job was lost")
	if _, err := caught(func() (*Result, error) { return nil, want }); err != want {
		t.Errorf("error %v, want it as it was", err)
	}
}
