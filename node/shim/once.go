package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
)

// Order is a task that a shim runs alone, where no daemon reaches it: on a compute node of
// a cluster, from files of a file system that the daemon sees, too.
type Order struct {
	Spec Spec

	// Go and Gone are paths of one file before and after the task is begun. Of everybody who
	// renames it one succeeds, so the task is begun once at most, whatever queues the order
	// twice or starts it again; and who takes the file away has taken the order back. In Gone,
	// RunWord stands for the number by which the cluster knows this run. A run that finds the
	// task begun waits for its end and has the same exit code: it may be what the cluster counts.
	Go, Gone string
	gone     string // as it was given

	End string // path of the file that says how the task ended, an Ended as JSON

	Until grid.Time // nothing of it may be alive from then on, by the wall clock; 0 if that does not matter
}

// RunWord stands for what ClusterEnv says in Order.Gone.
const RunWord = "{RUN}"

// ClusterEnv names the variable in which the cluster tells the number of a run.
const ClusterEnv = "SLURM_JOB_ID"

// inherited begin the names of variables that a task without walls has of the cluster, in place
// of those of its site.
const inherited = "SLURM"

// athome are those among them that home alone can tell: the cluster calls the job as the site does,
// which has submitted it.
var athome = []string{"SLURM_JOB_NAME", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST"}

// ofCluster returns which settings a task without walls has of the cluster.
func ofCluster(settings []string) []string {
	return slices.DeleteFunc(settings, func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return !strings.HasPrefix(name, inherited) || slices.Contains(athome, name)
	})
}

// orderMax bounds the file of an order.
const orderMax = 2 * frameMax

// Once carries out the order in a file and returns the exit code, which is the task's. It
// is the main program of the process, which is the shim's guard first (see Main).
func Once(path string) int {
	keepDescriptors()
	if !guarded() {
		code, err := guard()
		if err != nil {
			fmt.Fprintf(os.Stderr, "gridnode shim: %v\n", err)
		}
		return code
	}
	code, err := once(path)
	if err != nil {
		fmt.Fprintf(os.Stderr, "gridnode shim: %v\n", err)
	}
	return code
}

func once(path string) (code int, err error) {
	o, err := readOrder(path)
	if err != nil {
		return exitNoStart, err
	}
	if err := os.Rename(o.Go, o.Gone); errors.Is(err, fs.ErrNotExist) {
		return o.follow()
	} else if err != nil {
		return exitNoStart, err
	}
	stop := beat(o.Gone)
	e, err := o.run()
	stop()
	if err != nil {
		now := wall(time.Now())
		e = &Ended{ID: o.Spec.ID, ExitCode: exitNoStart, Cause: CauseStart, Reason: shorten(err.Error()), Start: now, End: now}
	}
	if err := writeEnd(o.End, e); err != nil {
		return int(e.ExitCode), fmt.Errorf("task %s: %w", e.ID, err)
	}
	return int(e.ExitCode), nil
}

// takenBack is in the place of a number in the Gone file of an order that nobody carries out.
const takenBack = "0"

// BeganBy returns the number of the run that began an order, by its Gone path, which ends in
// RunWord; empty if none did.
func BeganBy(gone string) string {
	before, _, _ := strings.Cut(filepath.Base(gone), RunWord)
	entries, _ := os.ReadDir(filepath.Dir(gone)) // none: nothing has begun
	for _, entry := range entries {
		if run, found := strings.CutPrefix(entry.Name(), before); found && run != takenBack {
			return run
		}
	}
	return ""
}

// followPause is how often a run looks whether the one that it follows is over.
const followPause = 200 * time.Millisecond

// follow waits for the end of a run that has begun the order before, and returns its exit code.
// The cluster may have begun the same run again, having forgotten that it was there, or another
// one whose submission was repeated.
func (o *Order) follow() (code int, err error) {
	run := BeganBy(o.gone)
	if run == "" {
		fmt.Fprintf(os.Stderr, "gridnode shim: task %s was taken back\n", o.Spec.ID)
		return 0, nil
	}
	fmt.Fprintf(os.Stderr, "gridnode shim: task %s has begun as %s: this run has its end\n", o.Spec.ID, run)
	for {
		alive := Alive(strings.ReplaceAll(o.gone, RunWord, run))
		e, err := ReadEnd(o.End) // after that: what is dead writes nothing more
		switch {
		case err != nil:
			return exitNoStart, err
		case e != nil:
			return int(e.ExitCode), nil
		case !alive:
			return exitNoStart, fmt.Errorf("task %s: run %s was killed", o.Spec.ID, run)
		}
		time.Sleep(followPause)
	}
}

// ReadEnd returns what the file of an end says, nil if there is none.
func ReadEnd(path string) (*Ended, error) {
	e, err := readFile[Ended](path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if e.ExitCode < 0 || e.ExitCode > 255 || len(e.Reason) > 256 || e.Start < 0 || e.End < e.Start {
		return nil, fmt.Errorf("%s is out of bounds", path)
	}
	return e, nil
}

// silentMax is from when on a shim that has not touched its Gone file counts as dead.
const silentMax = 6 * Beat

// Alive reports whether the shim that began an order has touched its Gone file of late, by the
// clock of the file system. Of what cannot be told, it is not.
func Alive(gone string) bool {
	file, err := os.Open(gone) // opened, so that a network file system looks anew
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	clock, err := os.CreateTemp(filepath.Dir(gone), ".clock-*")
	if err != nil {
		return false
	}
	defer os.Remove(clock.Name())
	defer clock.Close()
	now, err := clock.Stat()
	return err == nil && now.ModTime().Sub(info.ModTime()) < silentMax
}

// Beat is how often a shim that carries out an order touches its Gone file, by the clock of
// the file system: where the cluster's controller does not know what has become of a task,
// that says whether it runs.
const Beat = 5 * time.Second

// beat touches a file until it is stopped.
func beat(path string) (stop func()) {
	touch := func() {
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0) // what is not touched for long counts as dead
	}
	touch()
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(Beat)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				touch()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// readOrder reads an order and checks it as one that comes from a daemon.
func readOrder(path string) (*Order, error) {
	o, err := readFile[Order](path)
	if err != nil {
		return nil, err
	}
	if err := o.Spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o.gone = o.Gone
	o.Gone, err = goneOf(o.Gone)
	return o, err
}

// readFile reads a file of JSON that lies where the cluster's machines see it.
func readFile[T any](path string) (*T, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > orderMax {
		return nil, fmt.Errorf("%s has %d bytes, at most %d", path, info.Size(), orderMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// goneOf returns the path of a Gone in this run.
func goneOf(gone string) (string, error) {
	run := os.Getenv(ClusterEnv)
	if strings.ContainsAny(run, "/\x00") {
		return "", fmt.Errorf("%s=%q is no number", ClusterEnv, run)
	}
	return strings.ReplaceAll(gone, RunWord, run), nil
}

// run runs the task under a shim in this process, which has a home of this machine's.
func (o *Order) run() (*Ended, error) {
	if o.Until != 0 && o.Until != grid.Never {
		left := o.Until - wall(time.Now())
		if left <= 0 {
			return nil, errors.New("it could not begin in time")
		}
		if o.Spec.Limit == 0 || left < o.Spec.Limit {
			o.Spec.Limit = left
		}
	}
	if !o.Spec.Plan.Walled() { // a guest's environment has nothing of the site
		o.Spec.Env = override(o.Spec.Env, ofCluster(os.Environ()))
	}
	home, err := os.MkdirTemp("", "gridnode-shim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	rename("gridnode-shim")
	s, err := newShim(Config{Home: home, Idle: IdleDefault, Grace: GraceDefault, journalMax: journalMax, brief: true})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go onThread(func() {
		defer close(done)
		s.only = o.Spec.ID
		s.inbox <- func() { s.startTask(&o.Spec) } // has room
		s.loop()
	})
	<-done
	e := s.results[o.Spec.ID]
	if err := s.close(); e == nil {
		return nil, errors.Join(errors.New("the shim lost it"), err)
	}
	return e, nil
}

// writeEnd writes how a task ended, whole or not at all. It can be seen before it is on disk, for
// which a busy disk takes its time: whoever acts on it makes durable what he does.
func writeEnd(path string, e *Ended) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Close()) // where the file system is another machine's, that has it now
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return err
	}
	if err := syncFile(path); errors.Is(err, fs.ErrNotExist) { // it was seen, and is not needed any more
		return nil
	} else if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
