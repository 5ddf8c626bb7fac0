package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpreadJobs: by the command line, between two daemons. A job that may be spread gets
// from the other site what its own lacks, its tasks find their numbers, it ends as the task
// that failed first, and it outlives restarts of both daemons. When it has ended nothing
// is leased.
func TestSpreadJobs(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"s-strd", "x-strd"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			hill := newSite(t, "hill", "--processors", "8").set("leases.lend", "allow", "leases.term", "40s").start()
			vale := newSite(t, "vale", "--processors", "3", "--join", hill.addr).
				set("leases.term", "40s", "delegation.policy", policy, "delegation.links", "sibling:"+hill.id).start()
			vale.sees(2)
			full := strings.TrimSpace(vale.ok("submit", "-n", "1", "-t", "1h", "--", "sleep", "1000"))
			vale.eventually("a processor is taken", func() bool { return vale.status(full).State == "running" })

			id := strings.TrimSpace(vale.ok("submit", "-W", "-q", "--spread", "-n", "3", "--", "sh", "-c", "echo rank $GRIDNODE_RANK of $GRIDNODE_NTASKS at $GRIDNODE_SITE"))
			text := vale.ok("logs", id)
			for _, want := range []string{"rank 0 of 3 at vale", "rank 1 of 3 at vale", "rank 2 of 3 at hill"} {
				if strings.Count(text, want) != 1 {
					t.Errorf("logs say %q, want once %q", text, want)
				}
			}

			out := vale.code(7, "submit", "-W", "--spread", "-n", "3", "--", "sh", "-c", "[ $GRIDNODE_RANK = 2 ] && exit 7; sleep 1000").String()
			if !strings.Contains(out, "task 2, of component 1 at hill, ended with exit code 7") {
				t.Errorf("it says %q, want which task has failed", out)
			}
			vale.eventually("nothing is leased", func() bool { return len(vale.leases())+len(hill.leases()) == 0 })

			flag := filepath.Join(t.TempDir(), "go")
			open(t, filepath.Dir(flag), 0o711)
			id = strings.TrimSpace(vale.ok("submit", "--spread", "-n", "3", "-t", "1h", "--", "sh", "-c",
				fmt.Sprintf("echo begun; while [ ! -e %s ]; do sleep 0.1; done; echo rank $GRIDNODE_RANK done", flag)))
			vale.eventually("its tasks run", func() bool { return strings.Count(vale.ok("logs", id), "begun") == 3 })
			for _, s := range []*site{hill, vale} {
				s.kill()
				s.start()
			}
			if err := os.WriteFile(flag, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			vale.eventually("it is done", func() bool { return vale.status(id).State == "done" })
			if text := vale.ok("logs", id); strings.Count(text, "begun") != 3 || strings.Count(text, "done") != 3 {
				t.Errorf("logs say %q, want each task to begin and end once", text)
			}
			if j := vale.status(id); j.Epoch != 1 {
				t.Errorf("it was done in execution %d, want its first", j.Epoch)
			}
			vale.ok("cancel", full)
			hill.allFree(8)
			vale.allFree(3)

			for _, tt := range []struct{ flags, want string }{
				{"-n 16385", "16385 tasks that may be spread, at most 16384 start together"},
				{"-n 2 --deadline 1h", "--spread excludes"},
			} {
				out := vale.code(2, append(append([]string{"submit", "--spread"}, strings.Fields(tt.flags)...), "--", "true")...).String()
				if !strings.Contains(out, tt.want) {
					t.Errorf("%s: %q, want %q", tt.flags, out, tt.want)
				}
			}
		})
	}
}
