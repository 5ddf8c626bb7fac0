package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/node/sandbox"
)

// Pages whose commands are run as they stand there: the tutorial and the how-to guides. How
// their blocks are written says CONTRIBUTING.md.
var triedPages = []string{"../../docs/tutorial/*.md", "../../docs/howto/*.md"}

// needs are programs without which a page is left out, and who has to have them.
var needs = map[string][]string{
	"howto/snakemake.md": {"snakemake", "GRIDNODE_SNAKEMAKE", "make workflows"},
	"howto/mpi.md":       {"mpicc", "GRIDNODE_MPI", "Debian: openmpi-bin, libopenmpi-dev"},
}

// block is a fenced block of a page.
type block struct {
	line     int // of its first line of text, from 1
	language string
	info     string // what stands behind the language
	text     []string
}

// blocksOf returns the fenced blocks of a page.
func blocksOf(text string) (list []block) {
	var b *block
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && b == nil:
			language, more, _ := strings.Cut(info, " ")
			b = &block{line: i + 2, language: language, info: more}
		case fence:
			list, b = append(list, *b), nil
		case b != nil:
			b.text = append(b.text, line)
		}
	}
	return list
}

// step is a command of a block and what it is to print.
type step struct {
	line     int
	shell    string // before the prompt
	command  string
	want     []string
	wantCode string // as printed, several with " or "; empty: 0
}

var prompt = regexp.MustCompile(`^([a-z]*)\$ (.*)$`)

// steps returns the commands of a block of a console.
func (b block) steps() (list []step) {
	for i, line := range b.text {
		if m := prompt.FindStringSubmatch(line); m != nil {
			s := step{line: b.line + i, shell: m[1], command: m[2]}
			if command, code, found := strings.Cut(s.command, "   # exit code "); found {
				s.command, s.wantCode = command, code
			}
			list = append(list, s)
			continue
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if more, found := strings.CutPrefix(line, "> "); found && len(last.want) == 0 {
			last.command += "\n" + more
		} else {
			last.want = append(last.want, line)
		}
	}
	return list
}

// printed returns the expression that what a step printed has to match: words as they stand,
// spaces as many as there are, "…" for anything in a line, and a line of it for any lines.
func printed(want []string) *regexp.Regexp {
	if len(want) == 0 {
		return regexp.MustCompile(`(?s).*`)
	}
	var b strings.Builder
	b.WriteString(`^`)
	for _, line := range want {
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(.*\n)*?`)
			continue
		}
		for i, word := range strings.Fields(line) {
			if i > 0 {
				b.WriteString(` `)
			}
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(word), "…", `.*`))
		}
		b.WriteString(`\n`)
	}
	return regexp.MustCompile(b.String() + `$`)
}

// said makes what was printed comparable.
func said(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

// console is a shell with a home of its own.
type console struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	line chan string // what it prints, closed at its end
}

// reading is a page and the shells that its commands are typed into.
type reading struct {
	*testing.T
	path   string
	dir    string
	env    map[string][]string // settings besides what all shells have, by shell
	enter  map[string][]string // command by which a shell is somewhere else, by shell
	shells map[string]*console
	ports  map[string]string // addresses of the page, by those that the test has free
	kept   map[string]string // placeholders and what stands for them
}

var listens = regexp.MustCompile(`\b(?:192\.0\.2\.\d+|127\.0\.0\.1):\d{4,5}\b`)

// own replaces what is not the same for every reader.
func (r *reading) own(text string) string {
	for name, by := range r.kept {
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(text, by)
	}
	for _, address := range listens.FindAllString(text, -1) {
		if r.ports[address] == "" {
			r.ports[address] = fmt.Sprintf("127.0.0.1:%d", freePort(r))
		}
	}
	for _, shared := range []string{"/opt/", "/shared/"} {
		text = strings.ReplaceAll(text, shared, r.dir+shared)
	}
	for address, by := range r.ports {
		text = strings.ReplaceAll(text, address, by)
		text = strings.ReplaceAll(text, multiaddress(address), multiaddress(by))
	}
	return text
}

// multiaddress returns how daemons print an address.
func multiaddress(address string) string {
	return "/ip4/" + strings.Replace(address, ":", "/tcp/", 1)
}

func (r *reading) shell(name string) *console {
	if s := r.shells[name]; s != nil {
		return s
	}
	home := filepath.Join(r.dir, cmp.Or(name, "home"))
	if err := os.MkdirAll(home, 0o755); err != nil {
		r.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "GRIDNODE_SOURCES=" + repository,
		"GRIDNODE_USERS_ROOT=allow", "GRIDNODE_GUESTS_ACCOUNT=nobody", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	// Which site is the cheapest would depend on how busy the machine is when each measures.
	cmd.Env = append(cmd.Env, "GRIDNODE_SITE_SPEED=1000")
	for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOROOT", "GOTOOLCHAIN"} {
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(out)))
		}
	}
	cmd.Env = append(cmd.Env, r.env[name]...)
	if enter := r.enter[name]; enter != nil { // nothing of this environment is there
		cmd = exec.Command(enter[0], append(enter[1:len(enter):len(enter)], cmd.Args...)...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s := &console{cmd: cmd, line: make(chan string, 1024)}
	if s.in, err = cmd.StdinPipe(); err != nil {
		r.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		defer close(s.line)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			s.line <- line
		}
	}()
	r.shells[name] = s
	return s
}

// endOfStep is what a shell prints behind what a command has printed, and its exit code.
const endOfStep = "-- the command has ended with "

// do types a command and returns what it prints and its exit code.
func (r *reading) do(s step) (text, code string) {
	shell := r.shell(s.shell)
	if _, err := fmt.Fprintf(shell.in, "{ %s\n} </dev/null; printf '\\n%s%%d\\n' $?\n", r.own(s.command), endOfStep); err != nil {
		r.Fatalf("%s:%d: %v", r.path, s.line, err)
	}
	limit := time.After(5 * patience) // programs are compiled, too
	for {
		select {
		case line, more := <-shell.line:
			if !more {
				r.Fatalf("%s:%d: the shell has ended after %q", r.path, s.line, text)
			}
			if code, found := strings.CutPrefix(line, endOfStep); found {
				return strings.TrimSuffix(text, "\n"), strings.TrimSpace(code)
			}
			text += line
		case <-limit:
			r.Fatalf("%s:%d: %s is not done after %v; it has printed\n%s%s", r.path, s.line, s.command, 5*patience, text, r.logs())
		}
	}
}

// homes are those of sites that the page has made.
func (r *reading) homes() (list []string) {
	_ = filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "key" {
			list = append(list, filepath.Dir(path))
		}
		return nil
	})
	return list
}

func (r *reading) logs() (text string) {
	for _, home := range r.homes() {
		log, _ := os.ReadFile(filepath.Join(home, "log"))
		text += fmt.Sprintf("\nlog of %s: …%s", home, log[max(len(log)-3000, 0):])
	}
	return text
}

// close ends what the page has started.
func (r *reading) close() {
	for _, home := range r.homes() {
		out, err := exec.Command(program, "--home", home, "stop").CombinedOutput()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 3) { // 3: there is no daemon
			r.Errorf("stop %s: %v: %s", home, err, out)
		}
	}
	for _, s := range r.shells {
		_ = s.in.Close()
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(r.dir)
}

// TestManual does what the tutorial and the how-to guides say, and compares what is printed
// with what they show.
func TestManual(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, pattern := range triedPages {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages at %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	// Some pages at a time, so that their daemons get on with their work.
	turn := make(chan bool, 3)
	for _, path := range paths {
		name := strings.TrimPrefix(path, "../../docs/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn <- true
			defer func() { <-turn }()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sandbox.Find().Walls(sandbox.Auto); err != nil {
				t.Skipf("left out: %v", err)
			}
			if n := needs[name]; n != nil {
				if _, err := exec.LookPath(n[0]); err != nil {
					if os.Getenv(n[1]) == "must" {
						t.Fatalf("%v: %s", err, n[2])
					}
					t.Skipf("%v: %s", err, n[2])
				}
			}
			follow(t, name, string(text))
		})
	}
}

// follow does what a page says.
func follow(t *testing.T, name, text string) {
	dir, err := os.MkdirTemp("", "manual") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // guests' accounts pass through
		t.Fatal(err)
	}
	r := &reading{T: t, path: "docs/" + name, dir: dir, shells: map[string]*console{}, ports: map[string]string{}, kept: map[string]string{}}
	defer r.close()
	commands := 0
	for _, b := range blocksOf(text) {
		if file, found := strings.CutPrefix(b.info, "file "); found {
			r.write(b, file)
			continue
		}
		if b.language != "console" || strings.HasPrefix(b.info, "left out: ") {
			continue
		}
		words := strings.Fields(b.info)
		keep := ""
		if at := slices.Index(words, "keep"); at >= 0 && at+1 < len(words) {
			keep = words[at+1]
		}
		soon := slices.Contains(words, "soon")
		for _, s := range b.steps() {
			commands++
			last := r.try(s, soon)
			if keep != "" {
				r.kept[keep] = last
			}
		}
	}
	if commands == 0 {
		t.Errorf("%s has no command that can be tried", r.path)
	}
}

// try does a step, again and again if it is to be so soon, and returns the last line of what
// it printed that is one word.
func (r *reading) try(s step, soon bool) string {
	r.Helper()
	word, complaint := r.attempt(s, soon)
	if complaint != "" {
		r.Fatal(complaint)
	}
	return word
}

// attempt is try, and returns what is wrong.
func (r *reading) attempt(s step, soon bool) (word, complaint string) {
	r.Helper()
	var want []string
	for _, line := range s.want {
		want = append(want, r.own(line))
	}
	fits := printed(want)
	for deadline := time.Now().Add(2 * patience); ; <-time.After(200 * time.Millisecond) {
		text, code := r.do(s)
		switch {
		case slices.Contains(strings.Split(cmp.Or(s.wantCode, "0"), " or "), code) && fits.MatchString(said(text)):
			for line := range strings.Lines(text) { // data, beside which there may be talk
				if words := strings.Fields(line); len(words) == 1 {
					word = words[0]
				}
			}
			return word, ""
		case !soon || time.Now().After(deadline):
			return "", fmt.Sprintf("%s:%d: %s\nends with %s and prints\n%s\nwant %s and\n%s\n%s", r.path, s.line, s.command, code, text,
				cmp.Or(s.wantCode, "0"), strings.Join(want, "\n"), r.logs())
		}
	}
}

// write makes the file that a block shows, of a shell as in alpha:job.sh, where that shell is.
func (r *reading) write(b block, file string) {
	r.Helper()
	name, path, found := strings.Cut(file, ":")
	if !found {
		name, path = "", file
	}
	text := r.own(strings.Join(b.text, "\n")) + "\n"
	s := step{line: b.line, shell: name, command: fmt.Sprintf("mkdir -p \"$(dirname %[1]s)\" && cat >%[1]s <<'END OF FILE'\n%[2]sEND OF FILE\n", path, text)}
	if strings.HasPrefix(text, "#!") {
		s.command += "chmod +x " + path
	}
	if said, code := r.do(s); code != "0" {
		r.Fatalf("%s:%d: write %s: %s", r.path, b.line, path, said)
	}
}

// TestManualLeavesNothingUntried: whatever looks like a command on those pages is in a block
// that is tried, or that says why it is not.
func TestManualLeavesNothingUntried(t *testing.T) {
	for _, pattern := range triedPages {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, complaint := range untried(string(text)) {
				t.Errorf("%s:%s", path, complaint)
			}
		}
	}
	for text, want := range map[string]bool{
		"```\ngridnode start\n```":                                         true,
		"```sh\n$ make build\n```":                                         true,
		"```console\ngridnode start\n```":                                  true,
		"```console left out:\nalpha$ reboot\n```":                         true,
		"```console sometimes\nalpha$ gridnode start\n```":                 true,
		"```console left out: it restarts a machine\nalpha$ reboot\n```":   false,
		"```console keep TOKEN\nalpha$ gridnode invite\na\n```":            false,
		"```sh file alpha:job.sh\n#!/bin/sh\ngridnode submit -- true\n```": false,
		"```\na picture\n```":                                              false,
	} {
		if got := untried(text); (len(got) > 0) != want {
			t.Errorf("%q: %v, want a complaint: %v", text, got, want)
		}
	}
}

var consoleInfo = regexp.MustCompile(`^(soon ?)?(keep [A-Z]+)?$|^left out: \S.*`)

func untried(text string) (complaints []string) {
	for _, b := range blocksOf(text) {
		if strings.HasPrefix(b.info, "file ") {
			continue
		}
		if b.language == "console" {
			if !consoleInfo.MatchString(b.info) {
				complaints = append(complaints, fmt.Sprintf("%d: %q is not known behind console", b.line-1, b.info))
			}
			if len(b.text) == 0 || !prompt.MatchString(b.text[0]) {
				complaints = append(complaints, fmt.Sprintf("%d: does not begin with a prompt", b.line))
			}
			continue
		}
		for i, line := range b.text {
			if strings.HasPrefix(line, "gridnode ") || strings.HasPrefix(line, "make ") || prompt.MatchString(line) {
				complaints = append(complaints, fmt.Sprintf("%d: %q is not tried: make the block a console", b.line+i, line))
			}
		}
	}
	return complaints
}

// TestStepsAreCompared: what a page shows is what has to be printed.
func TestStepsAreCompared(t *testing.T) {
	steps := blocksOf("```console\nalpha$ one \\\n> two\nSITE  FREE\nbeta  …\n$ three   # exit code 5\n```")[0].steps()
	if len(steps) != 2 || steps[0].shell != "alpha" || steps[0].command != "one \\\ntwo" || len(steps[0].want) != 2 || steps[1].wantCode != "5" || steps[1].command != "three" {
		t.Fatalf("steps %+v", steps)
	}
	for text, want := range map[string]bool{
		"SITE      FREE\nbeta      4\n":   true,
		"SITE FREE\nbeta 4 of 7\n":        true,
		"SITE FREE\nalpha 4\n":            false,
		"SITE FREE\nbeta 4\ngamma 1\n":    false,
		"SITE\nbeta 4\n":                  false,
		"":                                false,
		"NAME SITE FREE\nbeta 4\n":        false,
		"SITE FREE\nbeta 4\nSITE FREE 2 ": false,
	} {
		if got := printed(steps[0].want).MatchString(said(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if !printed([]string{"a", "…", "z"}).MatchString("a\nb\nc\nz\n") || printed([]string{"a", "…", "z"}).MatchString("a\nb\n") {
		t.Error("a line of … is any lines")
	}
}
