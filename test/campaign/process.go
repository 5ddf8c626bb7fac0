package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is one of a world's: of a daemon, a watcher or a job.
type process struct {
	pid  int
	what string // daemon, shim or job
	job  string // ID
}

func (p process) kill() { _ = syscall.Kill(p.pid, syscall.SIGKILL) }

// processes returns those of a site, by its name, or of all.
func (w *world) processes(name string) (list []process) {
	root := []byte(w.plan.dir + "/")
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if !bytes.Contains(env, root) && !bytes.Contains(line, root) {
			continue
		}
		p := process{pid: pid, what: "job", job: setting(env, "GRIDNODE_JOB_ID")}
		site := setting(env, "GRIDNODE_SITE")
		if p.job == "" {
			site = siteIn(string(root), string(env)+string(line))
			switch words := bytes.Split(line, []byte{0}); {
			case contains(words, "start"):
				p.what = "daemon"
			case contains(words, "shim"):
				p.what = "shim"
			default:
				continue // a client
			}
		}
		if name == "" || site == name {
			list = append(list, p)
		}
	}
	return list
}

// setting returns the value of a variable of an environment.
func setting(env []byte, name string) string {
	for text := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(text, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// siteIn returns the name of the site whose home is named in a text.
func siteIn(root, text string) string {
	_, rest, _ := strings.Cut(text, root)
	end := strings.IndexAny(rest, "/\x00")
	if end < 0 {
		return rest
	}
	return rest[:end]
}

func contains(words [][]byte, word string) bool {
	for _, w := range words {
		if string(w) == word {
			return true
		}
	}
	return false
}
