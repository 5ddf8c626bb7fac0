package slurm

import (
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a,b": "a b", "n[1-3,07]": "n1 n2 n3 n07", "r[1-2]n[08-10]x,b": "r1n08x r1n09x r1n10x r2n08x r2n09x r2n10x b",
	} {
		if got, err := Hosts(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", list, got, err, want)
		}
	}
	for _, bad := range []string{"n[1-", "n[3-1]", "n[a-b]", "n[0-99999999]"} {
		if got, err := Hosts(bad); err == nil {
			t.Errorf("%q gives %d hosts", bad, len(got))
		}
	}
}
