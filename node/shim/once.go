package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/grid"
)

// Order is a task that a shim runs alone, where no daemon reaches it: on a compute node of
// a cluster, from files of a file system that the daemon sees, too.
type Order struct {
	Spec Spec

	// Go and Gone are paths of one file before and after the task is begun. Of everybody who
	// renames it one succeeds, so the task is begun once at most, whatever queues the order
	// twice or starts it again; and who takes the file away has taken the order back. In Gone,
	// RunWord stands for the number by which the cluster knows this run.
	Go, Gone string

	End string // path of the file that says how the task ended, an Ended as JSON

	Until grid.Time // nothing of it may be alive from then on, by the wall clock; 0 if that does not matter
}

// RunWord stands for what ClusterEnv says in Order.Gone.
const RunWord = "{RUN}"

// ClusterEnv names the variable in which the cluster tells the number of a run.
const ClusterEnv = "SLURM_JOB_ID"

// inherited begin the names of variables that a task without walls has of the cluster.
const inherited = "SLURM"

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
		fmt.Fprintf(os.Stderr, "gridnode shim: task %s was taken back, or has begun elsewhere\n", o.Spec.ID)
		return 0, nil
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
	o := new(Order)
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := o.Spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	run := os.Getenv(ClusterEnv)
	if strings.ContainsAny(run, "/\x00") {
		return nil, fmt.Errorf("%s=%q is no number", ClusterEnv, run)
	}
	o.Gone = strings.ReplaceAll(o.Gone, RunWord, run)
	return o, nil
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
		for _, setting := range os.Environ() {
			if strings.HasPrefix(setting, inherited) {
				o.Spec.Env = append(o.Spec.Env, setting)
			}
		}
	}
	home, err := os.MkdirTemp("", "gridnode-shim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	rename("gridnode-shim")
	s, err := newShim(Config{Home: home, Idle: IdleDefault, Grace: GraceDefault, journalMax: journalMax})
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

// writeEnd writes how a task ended, whole or not at all.
func writeEnd(path string, e *Ended) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
