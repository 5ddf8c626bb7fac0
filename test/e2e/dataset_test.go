package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataSets: a job goes where its input is, or the input to the job; the holder may
// die and come back, and give the data set up.
func TestDataSets(t *testing.T) {
	t.Parallel()
	sites := lenders(t, "20s", 1, 8, 4)
	home, wide, holder := sites[0], sites[1], sites[2]
	file := filepath.Join(t.TempDir(), "genome.txt")
	text := strings.Repeat("GATTACA\n", 100_000) // more than one message holds
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, file, 0o644) // its owner lets everybody read it
	if got := strings.TrimSpace(holder.ok("dataset", "add", "--share", "genome:v1", file)); got != "genome:v1" {
		t.Errorf("dataset add prints %q", got)
	}
	digest := strings.TrimSpace(holder.ok("dataset", "add", file))
	if !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("dataset add without a name prints %q", digest)
	}
	var held []struct {
		Name   string `json:"name"`
		Size   int64  `json:"size"`
		Path   string `json:"path"`
		Shared bool   `json:"shared"`
	}
	holder.json(&held, "datasets")
	if len(held) != 2 || held[0].Name != "genome:v1" || held[0].Size != int64(len(text)) || held[0].Path != file || !held[0].Shared || held[1].Shared {
		t.Errorf("datasets: %+v", held)
	}
	for _, s := range sites {
		s.eventually("everybody finds the holder", func() bool {
			return s.run("dataset", "find", "genome:v1").code == 0 && s.run("dataset", "find", digest).code == 0
		})
	}
	read := []string{"--", "sh", "-c", `wc -c <"$GRIDNODE_INPUT_0"; echo at $GRIDNODE_SITE`}
	submit := func(code int, flags ...string) (id, output string) {
		id = strings.TrimSpace(home.code(code, append(append([]string{"submit", "-W", "-q"}, flags...), read...)...).stdout)
		if code == 0 {
			output = strings.Join(strings.Fields(home.ok("logs", id)), " ")
		}
		return id, output
	}
	for _, tt := range []struct{ flags, want string }{
		{"-n 1 --coalloc 1 --input genome:v1", "800000 at site2"},
		{"-n 1 --coalloc 1 --input " + digest, "800000 at site2"},
		{"-n 1 --coalloc 1 --input genome:v1=800000 --placement wf", "800000 at site1"},
		{"--components 1@site1 --input genome:v1", "800000 at site1"},
		{"--components 1@site0 --input genome:v1", "800000 at site0"},
	} {
		id, got := submit(0, strings.Fields(tt.flags)...)
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.flags, got, tt.want)
		}
		var jobs []struct {
			Inputs []struct {
				Name string `json:"name"`
			} `json:"inputs"`
		}
		home.json(&jobs, "status", id)
		if len(jobs) != 1 || len(jobs[0].Inputs) != 1 || !strings.Contains(tt.flags, jobs[0].Inputs[0].Name) {
			t.Errorf("%s: status shows %+v", tt.flags, jobs)
		}
		if why := home.ok("why", id); !strings.Contains(why, "holds "+jobs[0].Inputs[0].Name) || !strings.Contains(why, "input") && strings.Contains(tt.flags, "genome") {
			t.Errorf("%s: why says\n%s", tt.flags, why)
		}
	}
	// The digest is of a data set that nobody may copy: elsewhere the job does not run.
	id, _ := submit(125, "--components", "1@site1", "--input", digest)
	if why := home.ok("why", id); !strings.Contains(why, "is not here") || !strings.Contains(why, "cannot be brought here") {
		t.Errorf("why says\n%s", why)
	}
	if dry := home.ok("submit", "--dry-run", "--coalloc", "1", "--input", digest, "--", "true"); !strings.Contains(dry, "component 0: 1 processors; holds "+digest) {
		t.Errorf("dry run:\n%s", dry)
	}

	holder.kill()
	holder.start()
	if _, got := submit(0, "-n", "1", "--coalloc", "1", "--input", "genome:v1"); got != "800000 at site2" {
		t.Errorf("after the holder has come back: %q", got)
	}
	holder.ok("dataset", "remove", "genome:v1")
	home.eventually("nobody holds it", func() bool { return home.run("dataset", "find", "genome:v1").code == 4 })
	id, _ = submit(125, "-n", "1", "--coalloc", "1", "--input", "genome:v1")
	if why := home.ok("why", id); !strings.Contains(why, "no site is known to hold genome:v1") || !strings.Contains(why, "input genome:v1 is not here") {
		t.Errorf("why says\n%s", why)
	}
	for i, s := range sites {
		s.allFree([]int64{1, 8, 4}[i])
	}
	for _, s := range []*site{home, wide} {
		for _, pattern := range []string{"tasks/*.inputs", "pilots/*/inputs"} {
			s.eventually("no copies are left", func() bool {
				left, _ := filepath.Glob(filepath.Join(s.home, pattern))
				return len(left) == 0
			})
		}
	}
}

// TestBadInputs: what cannot be is refused with the reason.
func TestBadInputs(t *testing.T) {
	t.Parallel()
	home := newSite(t, "site0", "--processors", "2").start()
	for _, tt := range []struct {
		code int
		word string
		args string
	}{
		{2, "--coalloc 1 places a job", "submit --input x -- true"},
		{2, "is no name of a data set", "submit --coalloc 1 --input x,y -- true"},
		{2, "is not a size", "submit --coalloc 1 --input x=many -- true"},
		{2, "stands there twice", "submit --coalloc 1 --input x --input x=1 -- true"},
		{2, "64 hexadecimal digits", "submit --coalloc 1 --input sha256:12 -- true"},
		{2, "at most 32", "submit --coalloc 1" + strings.Repeat(" --input x", 33) + " -- true"},
		{2, "no such file", "dataset add x /no/such/file"},
		{2, "has no digest", "dataset add " + home.home},
		{5, "cannot be copied", "dataset add --share x " + home.home},
		{2, "is no name of a data set", "dataset add x*y " + home.home},
		{2, "wants a PATH", "dataset add"},
		{4, "no such data set", "dataset remove x"},
		{4, "no site holds x", "dataset find x"},
	} {
		if r := home.code(tt.code, strings.Fields(tt.args)...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("%s: %v, want %q", tt.args, r, tt.word)
		}
	}
	home.ok("dataset", "add", "here", home.home)
	if text := home.ok("datasets", "--no-headers"); !strings.Contains(text, "here") || !strings.Contains(text, "none") {
		t.Errorf("datasets:\n%s", text)
	}
}
