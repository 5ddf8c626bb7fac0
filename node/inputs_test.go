package node

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/site"
)

// addData registers a file at a host as a data set.
func addData(t *testing.T, h *Host, name, text string, share bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.txt")
	write(t, path, text)
	set, err := run.Measure(t.Context(), name, path)
	if err != nil {
		t.Fatal(err)
	}
	set.Shared = share
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &dataset.Hold{Token: token, Set: set} })
	if err != nil || answer.(*dataset.Held).Err != nil {
		t.Fatalf("%v, %+v", err, answer)
	}
	return path
}

// holdersOf asks the federation who holds a data set.
func holdersOf(t *testing.T, h *Host, name string) []dataset.Holder {
	t.Helper()
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &dataset.Find{Token: token, Name: name} })
	if err != nil {
		t.Fatal(err)
	}
	return answer.(*dataset.Found).Holders
}

// awaitHolders waits until a host knows as many holders.
func awaitHolders(t *testing.T, h *Host, name string, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%s finds %d holders of %s", h.cfg.Site.Name, n, name), func() bool { return len(holdersOf(t, h, name)) == n })
}

// readingJob is a job of one component anywhere that prints what it reads and where.
func readingJob(h *Host, n uint64, policy string, inputs ...string) *grid.Job {
	j := scriptJob(h, n, `cat "$GRIDNODE_INPUT_0"; echo " at $GRIDNODE_SITE of $GRIDNODE_INPUTS"`)
	j.Coallocate = &grid.Coallocation{Count: "1", Policy: policy, CCR: -1}
	for _, name := range inputs {
		j.Inputs = append(j.Inputs, grid.DataSet{Name: name, Size: grid.SizeUnknown})
	}
	return j
}

// runs submits a job, waits for its end and returns what it was and what it wrote.
func runs(t *testing.T, h *Host, j *grid.Job) (site.View, string) {
	t.Helper()
	submitJob(t, h, j)
	until(t, "it is over", func() bool { return stateOf(t, h, j).State.Terminal() })
	v := stateOf(t, h, j)
	if v.State == site.Refused || v.Result.ExitCode == pilot.ExitNoStart {
		return v, ""
	}
	return v, readOutput(t, h, j, run.Stdout)
}

// TestCloseToFiles: by cf a job goes where its input is, also if another site has more
// room, which is where it goes by wf; there it is copied, if its holder allows that.
func TestCloseToFiles(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 8, 4)
	home, wide, holder := hosts[0], hosts[1], hosts[2]
	for _, h := range hosts {
		h.bring.most = 1 << 20
	}
	addData(t, holder, "open", "text", true)
	addData(t, holder, "closed", "secret", false)
	for _, h := range hosts {
		awaitHolders(t, h, "open", 1)
		awaitHolders(t, h, "closed", 1)
	}
	for i, tt := range []struct {
		policy, input string
		site          *Host
		output        string
	}{
		{"cf", "open", holder, "text at site-3 of 1\n"},
		{"", "open", holder, "text at site-3 of 1\n"},
		{"wf", "open", wide, "text at site-2 of 1\n"},
		{"cf", "closed", holder, "secret at site-3 of 1\n"},
		{"wf", "closed", wide, ""},
		{"cf", "missing", wide, ""},
	} {
		j := readingJob(home, uint64(i+1), tt.policy, tt.input)
		v, output := runs(t, home, j)
		if len(v.Gang.Parts) != 1 || v.Gang.Parts[0].Site != tt.site.ID() || output != tt.output {
			t.Errorf("%s by %q: %v (%s) at %v with %q, want %q at %s", tt.input, tt.policy, v.State, v.Reason, v.Gang.Parts, output, tt.output, tt.site.cfg.Site.Name)
		}
		if tt.output == "" && (v.Result.ExitCode != pilot.ExitNoStart || !strings.Contains(v.Reason+v.Result.Reason, "input "+tt.input+" is not here: no site that holds it lets others copy it")) {
			t.Errorf("%s by %q: %v, exit code %d, %q", tt.input, tt.policy, v.State, v.Result.ExitCode, v.Result.Reason)
		}
		said := fmt.Sprint(v.Verdicts)
		if want := map[string]string{"open": "holds open", "closed": "closed cannot be brought here", "missing": "no site is known to hold missing"}[tt.input]; !strings.Contains(said, want) {
			t.Errorf("%s: verdicts %s, want %q", tt.input, said, want)
		}
	}
	nothingLeft(t, hosts...)
	for _, h := range hosts {
		for _, dir := range []string{"tasks", "pilots"} {
			until(t, "no copy is left", func() bool {
				copies, _ := filepath.Glob(filepath.Join(h.cfg.Home, dir, "*inputs*"))
				deeper, _ := filepath.Glob(filepath.Join(h.cfg.Home, dir, "*", "*inputs*"))
				return len(copies)+len(deeper) == 0
			})
		}
	}
}

// TestInputsAtSeveralSites: each task of a job reads its own site's copy, the holder's
// tasks the data set itself.
func TestInputsAtSeveralSites(t *testing.T) {
	t.Parallel()
	hosts := team(t, 2, 2, 2)
	for _, h := range hosts {
		h.bring.most = 1 << 20
	}
	name, _, err := run.DigestOf(t.Context(), strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	path := addData(t, hosts[1], "", "content", true)
	awaitHolders(t, hosts[0], name, 1)
	awaitHolders(t, hosts[2], name, 1)
	j := dividedJob(hosts, 1, `echo $GRIDNODE_RANK $(cat $GRIDNODE_INPUT_0) $GRIDNODE_INPUT_0`, 1, 1, 2)
	j.Inputs = []grid.DataSet{{Name: name, Size: 7}}
	v, output := runs(t, hosts[0], j)
	lines := strings.Fields(output)
	if v.State != site.Done || len(lines) != 12 || strings.Count(output, " content ") != 4 || strings.Count(output, path) != 1 || strings.Count(output, name[7:]) != 3 {
		t.Errorf("%v (%s): %s", v.State, v.Reason, output)
	}
	nothingLeft(t, hosts...)
}

// TestDataSetOutlivesRestart: what a site holds it holds after a restart, unless it is
// taken out; a file that has changed is not what was announced.
func TestDataSetOutlivesRestart(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 2, 4)
	home, holder := hosts[0], hosts[1]
	path := addData(t, holder, "kept", "text", false)
	addData(t, holder, "dropped", "text", false)
	awaitHolders(t, home, "kept", 1)
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	early := readingJob(home, 9, "", "kept") // there is no quote of the holder any more
	submitJob(t, home, early)
	until(t, "it looks for more sites", func() bool { return strings.Contains(stateOf(t, home, early).Reason, "looks for more sites") })
	cfg := holder.cfg
	cfg.Join = home.Addrs()
	holder = startHost(t, cfg)
	t.Cleanup(func() { holder.Close() })
	until(t, "it is over", func() bool { return stateOf(t, home, early).State.Terminal() })
	if v := stateOf(t, home, early); v.State != site.Done || v.Gang.Parts[0].Site != holder.ID() {
		t.Errorf("a job that came while the holder was away: %v (%s)", v.State, v.Reason)
	}
	awaitQuotes(t, home, 3)
	awaitHolders(t, home, "kept", 1)
	awaitHolders(t, home, "dropped", 1)
	if v, output := runs(t, home, readingJob(home, 1, "", "kept")); output != "text at site-2 of 1\n" {
		t.Errorf("after a restart: %v (%s), %q", v.State, v.Reason, output)
	}
	answer, err := holder.Ask(t.Context(), func(token uint64) grid.Input { return &dataset.Drop{Token: token, Name: "dropped"} })
	if err != nil || answer.(*dataset.Held).Err != nil {
		t.Fatalf("%v, %+v", err, answer)
	}
	awaitHolders(t, home, "dropped", 0)
	v, _ := runs(t, home, readingJob(home, 2, "", "dropped"))
	if v.Result.ExitCode != pilot.ExitNoStart || v.Gang.Parts[0].Site != hosts[2].ID() {
		t.Errorf("after it was dropped: %v, exit code %d (%s) at %v", v.State, v.Result.ExitCode, v.Result.Reason, v.Gang.Parts)
	}
	if err := os.WriteFile(path, []byte("another text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, _ = runs(t, home, readingJob(home, 3, "", "kept")); !strings.Contains(v.Result.Reason, "has changed since it was added") {
		t.Errorf("after the file was changed: %v, exit code %d (%s)", v.State, v.Result.ExitCode, v.Result.Reason)
	}
}

// TestCoallocatorRestartsWhileCopying: the daemon of a job's home goes down while its
// input is being copied there; the copy is made anew, and the job starts.
func TestCoallocatorRestartsWhileCopying(t *testing.T) {
	t.Parallel()
	hosts, configs := longTeam(t, grid.Minute, 2)
	hosts[0].bring.most, configs[0].FetchMax = 1<<20, 1<<20
	path := addData(t, hosts[1], "x", "text", true)
	awaitHolders(t, hosts[0], "x", 1)
	asked := make(chan struct{}, 10)
	var stall atomic.Bool
	stall.Store(true)
	holder := hosts[1]
	holder.net.Handle(dataProtocol, func(from grid.SiteID, s network.Stream) error {
		asked <- struct{}{}
		if stall.Load() {
			_, err := io.Copy(io.Discard, s) // until who asks is gone
			return err
		}
		return holder.filer.serve(from, s)
	})
	j := dividedJob(hosts, 1, `cat $GRIDNODE_INPUT_0; echo`, 1, 1)
	j.Inputs = []grid.DataSet{{Name: "x", Size: 4}}
	submitJob(t, hosts[0], j)
	<-asked
	before := stateOf(t, hosts[0], j)
	hosts[0].Kill()
	stall.Store(false)
	hosts[0] = realHost(t, configs[0])
	until(t, "it is over", func() bool { return stateOf(t, hosts[0], j).State.Terminal() })
	v := stateOf(t, hosts[0], j)
	if output := readOutput(t, hosts[0], j, run.Stdout); v.State != site.Done || v.Epoch != 1 || output != "text\ntext\n" {
		t.Errorf("%v in execution %d (%s): %q", v.State, v.Epoch, v.Reason, output)
	}
	if said := fmt.Sprint(v.Verdicts); said != fmt.Sprint(before.Verdicts) || !strings.Contains(said, "holds x") {
		t.Errorf("verdicts %s, before the restart %v", said, before.Verdicts)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	nothingLeft(t, hosts...)
}
