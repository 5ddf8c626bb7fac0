// Command flood measures what honest peers of a site see while others flood it. It starts
// two real daemons on loopback, and for each kind of flood a process with one or with
// twenty flooders, which are members of the same federation, or users of the site that is
// flooded. It prints a table, touches nothing but loopback, and stops by itself.
//
// The flooders run on the same processors as the daemons, and get what time is left there;
// what they take all the same is in the figures.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// floodersEnv tells the program that it is the process that floods.
const floodersEnv = "GRIDNODE_FLOODERS"

func main() {
	err := error(nil)
	if os.Getenv(floodersEnv) != "" {
		err = flooders(os.Stdin, os.Stdout)
	} else {
		err = measureAll()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(1)
	}
}

func measureAll() error {
	program := flag.String("gridnode", "bin/gridnode", "the program")
	only := flag.String("only", "", "floods, with commas; all if empty")
	counts := flag.String("peers", "1,20", "how many flooders, with commas")
	span := flag.Duration("span", 6*time.Second, "of each flood")
	format := flag.String("o", "table", "table or json")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	path, err := programPath(*program)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, path)
	if err != nil {
		return err
	}
	defer w.close()
	w.before = spare
	var rows []row
	for _, k := range kinds {
		if k.name == local && os.Geteuid() != 0 {
			fmt.Fprintln(os.Stderr, "left out, as only root can be several users:", k.name)
			continue
		}
		if *only != "" && !slices.Contains(strings.Split(*only, ","), k.name) {
			continue
		}
		for _, text := range strings.Split(*counts, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > floodersMax {
				return fmt.Errorf("-peers %q: want 1 to %d", text, floodersMax)
			}
			fmt.Fprintf(os.Stderr, "%s by %d\n", k.name, n)
			r, err := w.measure(ctx, k, n, *span)
			if err != nil {
				return fmt.Errorf("%s by %d: %w", k.name, n, err)
			}
			rows = append(rows, *r)
		}
	}
	if *format == "json" {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	return printRows(rows)
}

const floodersMax = 50

func programPath(program string) (string, error) {
	info, err := os.Stat(program)
	if err != nil || info.IsDir() {
		return "", fmt.Errorf("no program %s: build it with 'make build', or name it with -gridnode", program)
	}
	return filepath.Abs(program)
}

// world is the sites that are measured.
type world struct {
	program  string
	dir      string
	seed     []byte
	home, at *daemon // whose jobs run at the other
	probe    *probe
	flooded  int      // floods so far: each comes from addresses of its own
	before   []string // in front of the command of those that flood
}

func newWorld(ctx context.Context, program string) (*world, error) {
	w := &world{program: program, seed: make([]byte, 32)}
	if _, err := rand.Read(w.seed); err != nil {
		return nil, err
	}
	home, err := household(w.seed)
	if err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "gridnode-flood"); err != nil {
		return nil, err
	}
	if err = os.Chmod(w.dir, 0o711); err == nil {
		err = os.Mkdir(filepath.Join(w.dir, "doors"), 0o755)
	}
	if err != nil {
		return nil, err
	}
	if w.at, err = start(ctx, program, w.dir, "beta", home, ""); err == nil {
		w.home, err = start(ctx, program, w.dir, "alpha", home, w.at.addr)
	}
	if err == nil {
		w.probe, err = newProbe(ctx, w.at, home)
	}
	if err == nil {
		err = w.warmUp(ctx)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// warmUp returns once a job of the one site has run at the other.
func (w *world) warmUp(ctx context.Context) error {
	var last string
	for range 60 {
		out, err := w.home.run(ctx, w.program, "submit", "--site", w.at.id, "-W", "--", "true").CombinedOutput()
		if err == nil {
			return nil
		}
		if last = string(out); ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("no job runs at beta: %s", last)
}

func (w *world) close() {
	if w.probe != nil {
		_ = w.probe.t.host.Close()
	}
	w.home.stop()
	w.at.stop()
	_ = os.RemoveAll(w.dir)
}

func printRows(rows []row) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FLOOD\tPEERS\tSENT\tNEGOTIATE IDLE p50/p99\tUNDER p50/p99\tLOST\tJOBS IDLE p50/p99\tUNDER p50/p99\tLOST\tMEMORY\tIDLE AGAIN\tFLOODERS")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%d MiB\t%.1f s\t%s\n", r.Flood, r.Peers, r.Sent,
			pair(r.IdleP50, r.IdleP99), pair(r.FloodP50, r.FloodP99), r.Lost, pair(r.JobIdleP50, r.JobIdleP99), pair(r.JobFloodP50, r.JobFloodP99),
			r.JobsLost, r.MemoryPeak>>20, r.Recovery, r.Fate)
	}
	return t.Flush()
}

func pair(a, b float64) string { return fmt.Sprintf("%.1f/%.1f ms", a, b) }
