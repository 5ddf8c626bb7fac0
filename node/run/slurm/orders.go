package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// What the work directory has of a job, under the name of its execution:
//
//	WORK/slurm/NAME.order   what to run, and what a restarted daemon must know
//	WORK/slurm/NAME.go      until the task is begun, or taken back
//	WORK/slurm/NAME.gone.N  from then on; N is the number of the run that began it
//	WORK/slurm/NAME.id      the number that sbatch answered
//	WORK/slurm/NAME.log     what the batch script says itself: nothing, if all is well
//	WORK/slurm/NAME.end     how the task ended, by the shim
//	WORK/slurm/NAME.home    of a pilot: the records of its shims
//	WORK/slurm/NAME.way.T   of a pilot: where others find its task T, which is on another machine
//	WORK/slurm/NAME.tasks   of a pilot of this site's own: what was launched there
//	WORK/slurm/NAME.final   how the job ended, as it is reported until it is acknowledged
const ordersDir = "slurm"

// orderMax bounds the files that are read here.
const orderMax = 1 << 20

// note is what is kept of a job besides its order.
type note struct {
	Home      grid.SiteID
	Partner   string    `json:",omitempty"` // as the configuration calls that site
	Ordered   grid.Time // when the site started it
	Limit     grid.Time
	Until     grid.Time // 0 for none
	Tasks     int64     // --ntasks
	Together  bool      `json:",omitempty"` // they are on one node
	Each      int64     // --cpus-per-task
	Memory    int64     // MB per processor; 0: not said
	Processor int64     // all
	Nice      int32     `json:",omitempty"` // --nice
	Pilot     *keeps    `json:",omitempty"` // of a pilot; else nil
}

// written is the file of an order.
type written struct {
	shim.Order
	Note note
}

// orders is the directory of what is known of jobs.
type orders struct{ dir string }

func (o orders) path(name, end string) string { return filepath.Join(o.dir, name+end) }

// write makes an order and its go file durable.
func (o orders) write(name string, w *written) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return o.writeText(name, text)
}

// writeText is write of what was encoded. The go file comes first: what makes the order durable
// makes it so, too.
func (o orders) writeText(name string, text []byte) error {
	if err := os.WriteFile(o.path(name, ".go"), nil, 0o600); err != nil {
		return err
	}
	return o.put(name, ".order", text)
}

// put writes a file, whole or not at all, and makes it durable.
func (o orders) put(name, end string, text []byte) error {
	return o.fill(name, end, text, (*os.File).Sync)
}

// note is put of what need not outlive a power cut: it is not waited for the disk.
func (o orders) note(name, end string, text []byte) error {
	return o.fill(name, end, text, func(*os.File) error { return nil })
}

func (o orders) fill(name, end string, text []byte, sync func(*os.File) error) error {
	path := o.path(name, end)
	file, err := os.OpenFile(path+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, sync(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// read returns the text of a file; it is nil if there is none.
func (o orders) read(name, end string) ([]byte, error) {
	path := o.path(name, end)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > orderMax {
		return nil, fmt.Errorf("%s has %d bytes", path, info.Size())
	}
	return os.ReadFile(path)
}

// end returns what the shim wrote, nil if nothing is there.
func (o orders) end(name string) (*shim.Ended, error) {
	return shim.ReadEnd(o.path(name, ".end"))
}

// takeBack takes an order back, and reports whether it had not begun.
func (o orders) takeBack(name string) bool {
	return os.Rename(o.path(name, ".go"), o.path(name, ".gone.0")) == nil
}

// began returns the number of the run that began an order, empty if none did.
func (o orders) began(name string) string {
	return shim.BeganBy(o.path(name, ".gone."+shim.RunWord))
}

// ran reports whether the run of that number began an order. It costs less than began.
func (o orders) ran(name, id string) bool {
	_, err := os.Stat(o.path(name, ".gone."+id))
	return err == nil
}

// refresh has a network file system look anew at the directory, which this machine changes.
func (o orders) refresh() {
	if file, err := os.CreateTemp(o.dir, ".look-*"); err == nil {
		file.Close()
		_ = os.Remove(file.Name()) // left behind, it harms nobody
	}
}

// alive reports whether the shim that began an order has touched it of late.
func (o orders) alive(name string) bool {
	began := o.began(name)
	return began != "" && shim.Alive(o.path(name, ".gone."+began))
}

// forget removes all that is kept of a job, the order last: what has none is nothing.
func (o orders) forget(name string) error {
	found, _ := filepath.Glob(o.path(name, ".*"))
	order := o.path(name, ".order")
	var errs []error
	for _, path := range found {
		if path != order {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	if err := os.Remove(order); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// all returns the names of all orders, in order.
func (o orders) all() (names []string, err error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, found := strings.CutSuffix(e.Name(), ".order"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// load reads a job of an earlier daemon.
func (o orders) load(name string, now grid.Time) (*job, error) {
	x, err := run.ExecutionOf(name)
	if err != nil {
		return nil, err
	}
	text, err := o.read(name, ".order")
	if err != nil {
		return nil, err
	}
	w := new(written)
	if err := json.Unmarshal(text, w); err != nil {
		return nil, fmt.Errorf("%s: %w", o.path(name, ".order"), err)
	}
	id, err := o.read(name, ".id")
	if err != nil {
		return nil, err
	}
	j := &job{process: x, name: name, note: w.Note, id: string(id)}
	if j.id != "" && !isNumber(j.id) {
		return nil, fmt.Errorf("%s holds no number", o.path(name, ".id"))
	}
	final, err := o.read(name, ".final")
	if err != nil {
		return nil, err
	}
	if final == nil {
		end, err := o.end(name)
		if err == nil && j.note.Pilot == nil && j.id != "" && saysAll(end, &j.note, now) {
			o := outcomeOf(end)
			j.final = &o
		}
		return j, err
	}
	j.final = new(outcome)
	if err := json.Unmarshal(final, j.final); err != nil {
		return nil, fmt.Errorf("%s: %w", o.path(name, ".final"), err)
	}
	return j, nil
}
