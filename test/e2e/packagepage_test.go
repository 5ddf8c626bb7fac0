package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// packagePage is the page that TestPackagePage tries.
const packagePage = "docs/install.md"

// cleanRoot is a directory with a Debian that has systemd and little else, which `make cleanroot`
// makes, and the tool that packages are made with.
const (
	cleanRoot  = "../../bin/cleanroot"
	packager   = "../../bin/nfpm"
	stepsToJob = 6 // commands from the package to the first job at another site, at most
)

var packageOf = regexp.MustCompile(`gridnode_([0-9.]+)_linux`)

// versions of the package that is installed, and of the one that comes next.
var versions = map[string]string{"VERSION": "1.2.3", "NEXT": "1.2.4"}

// TestPackagePage does what the page on installing says, in a clean Debian that systemd has
// booted: install, join, run a job elsewhere, look after the site, update, back up, purge, restore.
func TestPackagePage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short: it boots a system")
	}
	if _, err := os.Stat(cleanRoot + "/usr/bin/apt"); err != nil {
		if os.Getenv("GRIDNODE_CLEANROOT") == "must" {
			t.Fatal(err)
		}
		t.Skip("left out: make cleanroot makes the system that it wants")
	}
	text, err := os.ReadFile("../../" + packagePage)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "package") // a socket's path has to be short
	if err == nil {
		err = os.Chmod(dir, 0o755) // guests' accounts pass through
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{T: t, path: packagePage, dir: dir, shells: map[string]*console{}, ports: map[string]string{}, kept: map[string]string{}}
	defer r.close()
	packages := os.Getenv("GRIDNODE_PACKAGES") // where some lie that were made already
	if packages == "" {
		packages = makePackages(t, dir)
	}
	r.enter = map[string][]string{"beta": boot(t, packages, dir)}
	r.kept["TOKEN"] = r.try(step{shell: "alpha", command: "gridnode init --site alpha --create physics --foreign allow --listen 192.0.2.1:7531 >id && " +
		"gridnode start --detach && gridnode invite --site beta"}, false)
	r.shows("beta", "cd && cp /media/* .")
	defer func() {
		if t.Failed() {
			said, _ := r.do(step{shell: "beta", command: "journalctl --no-pager -o cat -u gridnode -n 60"})
			t.Logf("journal of beta: %s", said)
		}
	}()
	asked, count := time.Now(), 0
	for _, b := range blocksOf(string(text)) {
		if b.language != "console" {
			continue
		}
		b.text = strings.Split(namePackages(strings.Join(b.text, "\n")), "\n")
		soon, keep := strings.HasPrefix(b.info, "soon"), strings.TrimPrefix(b.info, "keep ")
		for _, s := range b.steps() {
			if last := r.try(s, soon); keep != b.info {
				r.kept[keep] = last
			}
			if version := packageOf.FindStringSubmatch(s.command); version != nil {
				r.shows("beta", "dpkg-query --show gridnode", "gridnode "+version[1])
			}
			if count++; strings.Contains(s.command, "submit --site alpha -W") && !asked.IsZero() {
				t.Logf("the first job at another site after %d commands and %v", count, time.Since(asked).Round(time.Millisecond))
				if count > stepsToJob {
					t.Errorf("%d commands to the first job at another site, want at most %d", count, stepsToJob)
				}
				asked = time.Time{}
			}
		}
	}
	if !asked.IsZero() {
		t.Errorf("%s has no job at another site", packagePage)
	}
}

// namePackages puts versions and architecture where the page has words for them.
func namePackages(text string) string {
	for word, version := range versions {
		text = strings.NewReplacer("gridnode_"+word+"_linux_amd64.deb", "gridnode_"+version+"_linux_"+runtime.GOARCH+".deb", "gridnode "+word, "gridnode …").Replace(text)
	}
	return text
}

// makePackages packs the program under test twice, and returns where the packages are.
func makePackages(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(dir, "packages")
	for _, version := range versions {
		cmd := exec.Command("go", "run", "gridnode/internal/dist", "-root", "../..", "-nfpm", packager, "-archs", runtime.GOARCH, "-formats", "deb",
			"-version", version, "-built", program, "-out", to)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return to
}

// boot starts the clean system, with its changes in memory, until the test is over, and returns
// what enters it. It is on the network of this machine.
func boot(t *testing.T, media, dir string) (enter []string) {
	t.Helper()
	system := exec.Command("systemd-nspawn", "--quiet", "--directory="+cleanRoot, "--volatile=overlay", "--bind-ro="+media+":/media",
		"--machine="+filepath.Base(dir), "--register=no", "--keep-unit", "--boot")
	said, err := os.Create(filepath.Join(dir, "boot.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	system.Stdout, system.Stderr = said, said
	if err := system.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- system.Wait() }()
	first := 0
	t.Cleanup(func() {
		if first > 0 {
			_ = exec.Command("kill", "-KILL", strconv.Itoa(first)).Run() // what it is the first process of goes with it
		} else {
			_ = system.Process.Kill()
		}
		<-ended
	})
	pid := system.Process.Pid
	for deadline := time.Now().Add(2 * patience); ; {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if first, _ = strconv.Atoi(strings.TrimSpace(string(children))); first > 0 {
			enter = []string{"nsenter", "--all", "--target=" + strconv.Itoa(first), "env", "-i", "HOME=/root", "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
			if state, _ := exec.Command(enter[0], append(enter[1:], "systemctl", "is-system-running")...).Output(); strings.TrimSpace(string(state)) == "running" {
				return enter
			}
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("the system has ended: %v\n%s", err, text)
		case <-time.After(200 * time.Millisecond):
			if time.Now().After(deadline) {
				text, _ := os.ReadFile(said.Name())
				t.Fatalf("the system does not come up: %s", text)
			}
		}
	}
}
