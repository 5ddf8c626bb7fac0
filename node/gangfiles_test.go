package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/site"
)

// filesBelow returns the files below a directory and what is in them, in order.
func filesBelow(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found = append(found, name+"="+strings.TrimSpace(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// leftovers returns what of jobs' files lies at sites that nobody fetched.
func leftovers(t *testing.T, hosts ...*Host) (left []string) {
	t.Helper()
	for _, h := range hosts {
		for _, pattern := range []string{"foreign/*/*", "tasks/*.results", "tasks/*.scratch", "output/*.ran"} {
			found, err := filepath.Glob(filepath.Join(h.cfg.Home, pattern))
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, found...)
		}
	}
	return left
}

// brings runs a job until its files are home, and returns what has become of them.
func brings(t *testing.T, h *Host, j *grid.Job) *Brought {
	t.Helper()
	submitJob(t, h, j)
	until(t, "it is over", func() bool { return stateOf(t, h, j).State.Terminal() })
	b, _, err := h.JobFiles(t.Context(), j.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFilesOfDividedJobs: what its tasks leave at three sites is at home afterwards, in a folder
// for each rank, and nowhere else; also when one of them fails.
func TestFilesOfDividedJobs(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 2, 2)
	home := hosts[0]
	script := "mkdir plots; echo $GRIDNODE_RANK >plots/me; echo loose >note; "
	for i, tt := range []struct {
		name string
		out  []string
		end  string // of the script
		want []string
	}{
		{"all", []string{"**"}, "true", []string{
			"rank-0/note=loose", "rank-0/plots/me=0", "rank-1/note=loose", "rank-1/plots/me=1",
			"rank-2/note=loose", "rank-2/plots/me=2", "rank-3/note=loose", "rank-3/plots/me=3",
		}},
		{"some", []string{"plots/*"}, "true", []string{"rank-0/plots/me=0", "rank-1/plots/me=1", "rank-2/plots/me=2", "rank-3/plots/me=3"}},
		{"failed", []string{"plots"}, "[ $GRIDNODE_RANK != 2 ] && exec sleep 1000; exit 3", []string{"rank-2/plots/me=2"}},
	} {
		j := dividedJob(hosts, uint64(i+1), script+tt.end, 1, 2, 1)
		dir := t.TempDir()
		j.Command.Files = &grid.Files{Out: tt.out, Dir: dir}
		b := brings(t, home, j)
		got := filesBelow(t, dir)
		if tt.name == "failed" { // the others may have been ended before they wrote
			got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(tt.want, s) })
		}
		if b.State != FilesBrought || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, %q; want %q", tt.name, b, got, tt.want)
		}
	}
	until(t, "nothing lies about", func() bool { return len(leftovers(t, hosts...)) == 0 })
	nothingLeft(t, hosts...)
}

// TestFilesThatAreHomeAndStay: what a daemon that died has not removed of files that were home already is
// removed by the next; what is not home stays.
func TestFilesThatAreHomeAndStay(t *testing.T) {
	t.Parallel()
	h := team(t, 1)[0]
	j := scriptJob(h, 1, "echo plot >a.png")
	j.Command.Dir, j.Command.Files = t.TempDir(), &grid.Files{Out: []string{"*.png"}}
	if b := brings(t, h, j); b.State != FilesBrought {
		t.Fatalf("%+v", b)
	}
	until(t, "nothing lies about", func() bool { return len(leftovers(t, h)) == 0 })
	again := h.files.Task(h.ID(), grid.TaskID{Job: j.ID, Epoch: 1}) + run.ResultsSuffix
	other := h.files.Task(h.ID(), grid.TaskID{Job: grid.JobID{Hi: 9}, Epoch: 1}) + run.ResultsSuffix
	if err := errors.Join(os.Mkdir(again, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	h.filer.home.recover()
	if left := leftovers(t, h); !slices.Equal(left, []string{other}) {
		t.Errorf("it has left %q, want %q", left, other)
	}
}

// TestFilesOfLeasedJobs: a job that runs on processors of another site brings its files home from
// there, whether it names them or not.
func TestFilesOfLeasedJobs(t *testing.T) {
	t.Parallel()
	hosts := team(t, 1, 2)
	home := hosts[0]
	blocker := scriptJob(home, 1, "sleep 1000")
	submitJob(t, home, blocker)
	if a := borrowFrom(t, home, hosts[1], 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	for i, files := range []*grid.Files{nil, {Out: []string{"*.png"}}, {Drop: true}} {
		j := scriptJob(home, uint64(i+2), "echo plot >a.png; echo text >b.txt")
		j.Command.Dir, j.Command.Files = t.TempDir(), files
		b := brings(t, home, j)
		if v := stateOf(t, home, j); v.State != site.Done {
			t.Fatalf("%v: %s", v.State, v.Reason)
		}
		want := [][]string{{"a.png=plot", "b.txt=text"}, {"a.png=plot"}, nil}[i]
		if got := filesBelow(t, j.Command.Dir); !slices.Equal(got, want) || (b.State == FilesBrought) != (want != nil) {
			t.Errorf("%+v: %+v, %q; want %q", files, b, got, want)
		}
	}
	cancel1(t, home, blocker)
	until(t, "nothing lies about", func() bool { return len(leftovers(t, hosts...)) == 0 })
}

// broughtFromLender returns a job that ran on processors lent to its home, and whose file b.txt was
// brought there.
func broughtFromLender(t *testing.T) (home *Host, j *grid.Job) {
	t.Helper()
	hosts := team(t, 1, 2)
	home = hosts[0]
	submitJob(t, home, scriptJob(home, 1, "sleep 1000"))
	if a := borrowFrom(t, home, hosts[1], 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	j = scriptJob(home, 2, "echo text >b.txt")
	j.Command.Dir = t.TempDir()
	if b := brings(t, home, j); b.State != FilesBrought {
		t.Fatalf("%+v", b)
	}
	return home, j
}

// TestFilesInTheStoreAreBrought: the files of a leased job come to its owner once they are in the store,
// though its lender was told to forget them before they were laid.
func TestFilesInTheStoreAreBrought(t *testing.T) {
	t.Parallel()
	home, j := broughtFromLender(t)
	m := home.filer.home
	until(t, "the lender is told", func() bool { _, err := os.Stat(m.path(j.ID, ranSuffix)); return err != nil })
	for _, path := range []string{m.path(j.ID, broughtSuffix), filepath.Join(j.Command.Dir, "b.txt")} { // as before they were laid
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if b, _, err := home.JobFiles(t.Context(), j.ID, false); err != nil || b.State != FilesComing {
		t.Errorf("%+v, %v; want them to be coming", b, err)
	}
	m.bring(t.Context(), j.ID)
	if got := filesBelow(t, j.Command.Dir); !slices.Equal(got, []string{"b.txt=text"}) {
		t.Errorf("brought are %q", got)
	}
}

// TestDamagedNoteAboutFiles: whoever asks for files of which the note is damaged is told so at once, and
// nothing that its owner has now is written over.
func TestDamagedNoteAboutFiles(t *testing.T) {
	t.Parallel()
	h, j := broughtFromLender(t)
	m, mine := h.filer.home, filepath.Join(j.Command.Dir, "b.txt")
	for path, text := range map[string]string{m.path(j.ID, broughtSuffix): "{", mine: "edited"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.recover()
	m.bring(t.Context(), j.ID)
	if b, tree, err := h.JobFiles(t.Context(), j.ID, true); err != nil || b.State != FilesFailed || b.Why == "" || tree == nil {
		t.Errorf("%+v, %v, %v; want it said that the note is damaged, and which files there are", b, tree, err)
	}
	if got := filesBelow(t, j.Command.Dir); !slices.Equal(got, []string{"b.txt=edited"}) {
		t.Errorf("its owner has %q", got)
	}
	m.recover()
	if needed := m.unbrought(); len(needed) != 1 {
		t.Errorf("%d trees are kept for those who ask, want 1", len(needed))
	}
}
