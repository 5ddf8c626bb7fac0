package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"gridnode/grid"
	"gridnode/node/run"
)

// launches is the file of what this site has launched in a pilot of its own: a line before
// each launch, durable before the pilot hears of it, and one once its end is durable
// elsewhere. By it a restarted daemon knows what may be running, whether the pilot answers or not.
//
//   - NAME NODE PROCESSORS ORDERED HOME
//   - NAME
type launches struct {
	path string

	mu   sync.Mutex // not held while the disk is waited for
	file *os.File
	text []byte // not written yet
}

// tasksEnd is how the names of these files end.
const tasksEnd = ".tasks"

// launch adds a line; sync makes all of them durable.
func (l *launches) launch(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = fmt.Appendf(l.text, "+ %s %d %d %d %s\n", j.name, j.chair[0].node, j.note.Processor, int64(j.note.Ordered), j.note.Home)
}

func (l *launches) sync() error {
	l.mu.Lock()
	file, err := l.flush()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return file.Sync()
}

// flush writes what was added. The caller holds l.mu.
func (l *launches) flush() (file *os.File, err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
	}
	_, err = l.file.Write(l.text)
	l.text = l.text[:0]
	return l.file, err
}

// over adds a line of what is over. It need not be durable: it is asked for again, in vain.
func (l *launches) over(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = fmt.Appendf(l.text, "- %s\n", name)
	_, err := l.flush()
	return err
}

func (l *launches) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// launchesMax bounds the file that is read: a pilot's life at some hundred jobs a second.
const launchesMax = 256 << 20

// openLaunches reads what was launched and is not over. A last line that was cut short was never
// acted upon.
func openLaunches(path string) (l *launches, open []*job, err error) {
	l = &launches{path: path}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > launchesMax {
		return nil, nil, fmt.Errorf("%s has more than %d bytes (%w)", path, launchesMax, err)
	}
	found := make(map[string]*job)
	var order []string
	r := bufio.NewReader(file)
	for good := int64(0); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			if err := os.Truncate(path, good); err != nil { // else the next line would go on with it
				return nil, nil, err
			}
			break
		}
		good += int64(len(line))
		if name, yes := strings.CutPrefix(line, "- "); yes {
			delete(found, strings.TrimSuffix(name, "\n"))
			continue
		}
		j, err := readLaunch(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		found[j.name] = j
		order = append(order, j.name)
	}
	for _, name := range order {
		if j := found[name]; j != nil {
			open = append(open, j)
			delete(found, name)
		}
	}
	return l, open, nil
}

// readLaunch reads a line of a launch.
func readLaunch(line string) (*job, error) {
	f := strings.Split(line, " ")
	if len(f) != 6 || f[0] != "+" {
		return nil, fmt.Errorf("%.100q is no launch", line)
	}
	x, err := run.ExecutionOf(f[1])
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", line, err)
	}
	node, err1 := strconv.ParseUint(f[2], 10, 12)
	processors, err2 := strconv.ParseUint(f[3], 10, 24)
	ordered, err3 := strconv.ParseInt(f[4], 10, 63)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%.100q: %w", line, err)
	}
	n := int64(processors)
	return &job{
		process: x, name: f[1], launched: true, inside: true, chair: []share{{int(node), n}},
		note: note{Home: grid.SiteID(f[5]), Ordered: grid.Time(ordered), Processor: n, Tasks: 1, Each: n},
	}, nil
}
