package gridfederation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
)

// TestBadOptions: errors name the flag.
func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		change func(*reproduce.Options)
		want   string
	}{
		{func(o *reproduce.Options) { o.Windows = 0 }, "--windows"},
		{func(o *reproduce.Options) { o.Workers = -1 }, "--jobs"},
		{func(o *reproduce.Options) { o.Windows = reproduce.WindowsMax + 1 }, "--windows"},
		{func(o *reproduce.Options) { o.Traces = t.TempDir() }, "--traces"},
		{func(o *reproduce.Options) { o.Traces = "/does/not/exist" }, "--traces"},
	} {
		o := small()
		tt.change(&o)
		if _, err := reproduce.Reproduce(context.Background(), Paper, o); !errors.Is(err, reproduce.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one about %s", err, tt.want)
		}
	}
}
