package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"gridnode/internal/checkout"
)

// surroundings is what every page begins with.
type surroundings struct {
	commit string // with a remark if files were changed since
	date   time.Time
	cpu    string
	cores  int
	memory string
	system string // operating system and architecture
	golang string
}

// seed is that of every command, unless a table says otherwise.
const seed = "--seed 1"

// look finds out commit and machine. The date is set when a page is begun.
func look(ctx context.Context) (surroundings, error) {
	at := surroundings{
		cpu: field("/proc/cpuinfo", "model name"), cores: runtime.NumCPU(), memory: memory(),
		system: runtime.GOOS + "/" + runtime.GOARCH, golang: runtime.Version(),
	}
	var err error
	if at.commit, err = checkout.Commit(ctx, ".", "HEAD"); err != nil {
		return at, err
	}
	changed, err := checkout.Git(ctx, ".", "status", "--porcelain", "--", ".", ":!docs")
	if err != nil {
		return at, err
	}
	if changed != "" {
		at.commit += ", with changes not committed"
	}
	return at, nil
}

// field returns the value of the first line of a file that has that key, as files
// below /proc have them; "unknown" if there is none.
func field(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// memory returns how much the machine has.
func memory() string {
	var kib int64
	if _, err := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &kib); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
}
