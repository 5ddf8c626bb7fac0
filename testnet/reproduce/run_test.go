package reproduce

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

// TestRunAll: the first error ends it, and a cancelled context.
func TestRunAll(t *testing.T) {
	broken := errors.New("broken")
	var lock sync.Mutex
	var made []string
	run := func(name string, weight int64, err error) Run {
		return Run{Name: name, Weight: weight, Do: func(context.Context) error {
			lock.Lock()
			defer lock.Unlock()
			made = append(made, name)
			return err
		}}
	}
	runs := []Run{run("light", 1, nil), run("heavy", 9, nil), run("middle", 5, broken)}
	if err := (&Options{Workers: 1}).RunAll(context.Background(), runs); !errors.Is(err, broken) || !strings.Contains(err.Error(), "middle") {
		t.Errorf("error %v, want that of the run in the middle", err)
	}
	if strings.Join(made, " ") != "heavy middle" {
		t.Errorf("made were %v, want the heaviest first and none after the error", made)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := (&Options{Workers: 2}).RunAll(ctx, runs); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
