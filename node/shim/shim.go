package shim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/internal/footprint"
	"gridnode/node/sandbox"
	"gridnode/node/store/journal"
)

// Config is how a shim behaves.
type Config struct {
	Home  string        // absolute path of an existing directory
	Idle  time.Duration // without a task and a daemon it ends after this long; 0 means IdleDefault
	Grace time.Duration // between SIGTERM and SIGKILL; 0 means GraceDefault

	journalMax int64 // 0 means the constant; tests set less
	calls      bool  // its daemon is elsewhere: it does not listen, but calls (see Pilot)
	brief      bool  // the home is removed when it ends (see Once)
}

// Defaults of Config.
const (
	IdleDefault  = time.Minute
	GraceDefault = 5 * time.Second
)

// KeptEnv in the environment of a shim says that whoever has started it ends it, as a pilot is that
// runs as a task of another one: it waits for its daemon however long it has nothing to do.
const KeptEnv = "GRIDNODE_SHIM_KEPT"

// forever is when a shim ends of idleness that somebody else ends.
const forever time.Duration = math.MaxInt64

// errRuns is what Run returns if the home has a shim already.
var errRuns = errors.New("another shim serves this home")

// Main is the shim's process: it serves home until it is no longer needed, and
// returns the exit code. Connect starts it as "gridnode shim --home HOME". The process is
// the shim's guard, which runs the program once more.
func Main(home string) int {
	keepDescriptors()
	go func() { _ = footprint.Keep(context.Background()) }() // it only ever saves memory
	if !guarded() {
		code, err := guard()
		if code != 0 {
			clearAway(home)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "gridnode shim: %s: %v\n", home, err)
		}
		return code
	}
	if err := Run(Config{Home: home}); err != nil {
		fmt.Fprintf(os.Stderr, "gridnode shim: %s: %v\n", home, err)
		return 1
	}
	return 0
}

// Run serves a home until the shim is no longer needed. It changes the process it
// runs in: the handling of signals, and whose children orphans become.
func Run(config Config) error {
	if config.Idle == 0 {
		config.Idle = IdleDefault
	}
	if os.Getenv(KeptEnv) != "" {
		config.Idle = forever
	}
	if config.Grace == 0 {
		config.Grace = GraceDefault
	}
	if config.journalMax == 0 {
		config.journalMax = journalMax
	}
	ready := readyPipe()
	rename("gridnode-shim")
	s, err := newShim(config)
	if err != nil {
		fmt.Fprintln(ready, err)
		ready.Close()
		return err
	}
	fmt.Fprintln(ready, readyWord)
	ready.Close()
	done := make(chan struct{})
	go onThread(func() {
		defer close(done)
		s.loop()
	})
	<-done
	return s.close()
}

// shim is the state of the loop. Everything in it belongs to the loop.
type shim struct {
	config   Config
	lock     *os.File
	listener *net.UnixListener
	null     int // descriptor of /dev/null, stdin of every task

	inbox   chan func() // what connections and timers want the loop to do
	quit    chan struct{}
	signals chan os.Signal

	records *records
	syncing bool               // a sync of the journal is under way, or due
	stale   []*journal.Journal // replaced while they were being synced
	base    int64              // size of the journal when it was last renewed

	tasks    map[string]*task  // whose ends are not noted
	settling settling          // those of them that are over
	sessions map[int]*task     // those that run by process number
	sides    map[int]*side     // commands that run beside tasks, by process number
	results  map[string]*Ended // not acknowledged
	orphans  map[int]*orphan   // by process number
	launcher *sandbox.Launcher // of tasks with plans; nil before the first
	spares   *spares           // of tasks whose outputs are made late; nil before the first
	prompt   bool              // they are made at once nevertheless: there can be no spares
	pids     []int

	only     string // the one task that it runs, if nobody gives it others; see Once
	daemon   *conn  // nil if none is connected
	expiry   *time.Timer
	ways     *ways    // to the others of jobs; nil: its daemon is on this machine
	inherit  []string // variables that tasks without walls have of the cluster
	retire   bool     // the daemon wants it to end as soon as nothing is left to do
	stopped  bool     // a signal wants that
	idle     *time.Timer
	busy     bool // at the end of the last turn
	watching bool // a look at the tasks' output is due
}

// newShim takes the home, clears away what an earlier shim left, and listens.
func newShim(config Config) (s *shim, err error) {
	s = &shim{
		config: config, null: -1,
		inbox: make(chan func(), 256), quit: make(chan struct{}), signals: make(chan os.Signal, 16),
		tasks: make(map[string]*task), sessions: make(map[int]*task), sides: make(map[int]*side),
		results: make(map[string]*Ended), orphans: make(map[int]*orphan),
		settling: settling{flush: atomicfile.Sync, tree: atomicfile.SyncTree},
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if !config.calls { // else the home is a new one, and perhaps on a file system without locks
		if s.lock, err = takeHome(config.Home); err != nil {
			return s, err
		}
	}
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return s, fmt.Errorf("become subreaper: %w", errno)
	}
	if s.null, err = syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		return s, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	// Before any child: what ends early must be noticed.
	signal.Notify(s.signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err = s.recover(); err != nil {
		return s, err
	}
	if config.calls {
		return s, nil
	}
	if s.listener, err = listen(config.Home); err != nil {
		return s, err
	}
	go s.accept()
	return s, nil
}

// takeHome makes this process the home's shim until it ends.
func takeHome(home string) (*os.File, error) {
	path := filepath.Join(home, "shim.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if err == syscall.EWOULDBLOCK {
			return nil, errRuns
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprintf(file, "%d\n", os.Getpid()) // for people
	}
	return file, nil
}

// recover reads the journal, ends what an earlier shim was running, and begins a
// journal of its own.
func (s *shim) recover() error {
	records, past, err := openRecords(s.config.Home)
	if err != nil {
		return err
	}
	reason := "the shim that watched over it died"
	if past.boot != records.boot {
		reason = "the machine stopped while it ran"
	} else {
		sweep(past, records.token)
		if !past.alive.IsZero() {
			if err := sandbox.Sweep(s.config.Home); err != nil {
				s.log("%v", err)
			}
		}
	}
	now := wall(time.Now())
	for _, id := range past.order {
		k := past.tasks[id]
		switch {
		case k == nil: // acknowledged
		case k.ended != nil:
			s.results[id] = k.ended
		default:
			s.log("task %s, process %d: %s", id, k.pid, reason)
			s.results[id] = &Ended{ID: id, ExitCode: exitSignal + int32(syscall.SIGKILL), Cause: CauseLost, Reason: reason, Start: k.start, End: max(now, k.start)}
		}
	}
	records.brief = s.config.brief
	s.records = records
	return s.renew()
}

// loop runs until the shim is not needed any more. It stays on one thread, that of
// the tasks' parent.
func (s *shim) loop() {
	s.idle = time.NewTimer(s.config.Idle)
	for !s.over() {
		select {
		case do := <-s.inbox:
			do()
		case sig := <-s.signals:
			s.hear(sig)
		case <-s.idle.C:
			if s.daemon == nil && len(s.tasks) == 0 {
				return
			}
		}
		s.daemon.flush()
		s.tend()
	}
}

// over reports whether the shim was told to end when it can, and can.
func (s *shim) over() bool {
	if len(s.tasks) > 0 {
		return false
	}
	return s.stopped || s.only != "" && s.results[s.only] != nil || s.retire && (s.daemon == nil || len(s.results) == 0)
}

// tend arms the timers that the present state needs.
func (s *shim) tend() {
	busy := s.daemon != nil || len(s.tasks) > 0
	if busy || s.busy {
		s.idle.Reset(s.config.Idle)
	}
	s.busy = busy
	if !s.watching && len(s.tasks) > 0 {
		s.watching = true
		s.after(outputQuick, s.watch)
	}
	if s.records.dirty && !s.syncing {
		s.syncing = true
		s.after(syncEvery, s.sync)
	}
}

// watch looks at the output of every task that is due, and leaves a sign of life.
func (s *shim) watch() {
	s.watching = false
	now := time.Now()
	for _, t := range s.tasks {
		if t.over {
			continue
		}
		t.out.look(now)
		s.enforce(t, now)
		s.lapse(t)
	}
	s.records.touch(now)
}

// sparesBeside returns the spares beside the outputs of a task, nil if there can be none.
func (s *shim) sparesBeside(spec *Spec) *spares {
	dir := filepath.Join(filepath.Dir(spec.Stdout), SpareDir)
	if s.spares == nil && !s.prompt {
		var err error
		if s.spares, err = openSpares(dir, s.post); err != nil {
			s.log("outputs are made before anything is written: %v", err)
			s.prompt = true
		}
	}
	if s.spares == nil || s.spares.dir != dir || spec.Terminal {
		return nil
	}
	return s.spares
}

// sync makes the journal durable beside the loop.
func (s *shim) sync() {
	s.records.dirty = false
	j := s.records.journal
	go func() {
		err := j.Sync()
		s.post(func() {
			s.syncing = false
			if err != nil {
				s.log("%v", err)
			}
			for _, j := range s.stale {
				j.Close()
			}
			s.stale = nil
		})
	}()
}

// keep appends to the journal, and renews it when it is too long or broken.
func (s *shim) keep(record func() error) error {
	renew := func() {
		if err := s.renew(); err != nil {
			s.log("%v", err)
		}
	}
	if size := s.records.journal.Size(); size > s.config.journalMax && size > 2*s.base {
		renew()
	}
	err := record()
	if err != nil {
		renew()
		err = record()
	}
	return err
}

// renew begins a journal with what is known now.
func (s *shim) renew() error {
	old, err := s.records.renew(func(yield func(string, known)) {
		for id, t := range s.tasks {
			yield(id, known{pid: t.pid, start: t.start})
		}
		for id, e := range s.results {
			yield(id, known{ended: e})
		}
	})
	if err != nil {
		return err
	}
	s.base = s.records.journal.Size()
	switch {
	case old == nil:
	case s.syncing:
		s.stale = append(s.stale, old)
	default:
		old.Close() // its file has no name any more
	}
	return nil
}

// hear handles a signal.
func (s *shim) hear(sig os.Signal) {
	if sig == syscall.SIGHUP {
		return // it has no terminal to lose
	}
	if sig != syscall.SIGCHLD {
		s.log("%v: ending %d tasks", sig, len(s.tasks))
		s.stop("the shim was stopped")
		return
	}
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
		case pid <= 0:
			return // no child, or none that has ended
		default:
			s.collected(pid, status, &usage)
		}
	}
}

// stop ends all tasks, and the shim with the last of them.
func (s *shim) stop(reason string) {
	s.stopped = true
	for _, t := range s.tasks {
		s.endTask(t, CauseKill, reason)
	}
	s.dismiss()
}

// expire has the shim stop after a span; 0: never.
func (s *shim) expire(span grid.Time) {
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	if span == 0 {
		return
	}
	var timer *time.Timer
	timer = s.after(span.Duration(), func() {
		if s.expiry == timer { // and was not told another one in the last moment
			s.stop("its time on these processors was over")
		}
	})
	s.expiry = timer
}

// post hands do to the loop, unless that has ended.
func (s *shim) post(do func()) {
	select {
	case s.inbox <- do:
	case <-s.quit:
	}
}

// after has the loop do something later.
func (s *shim) after(d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() { s.post(do) })
}

func (s *shim) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", slices.Insert(args, 0, any(time.Now().Format(time.RFC3339)))...)
}

// close gives everything up. Tasks must have ended.
func (s *shim) close() error {
	close(s.quit)
	signal.Stop(s.signals)
	var errs []error
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	s.dismiss()
	if s.records != nil && s.records.journal != nil {
		if !s.records.brief {
			errs = append(errs, s.records.journal.Sync())
		}
		errs = append(errs, s.records.journal.Close())
	}
	s.spares.close()
	if s.launcher != nil {
		errs = append(errs, s.launcher.Close())
	}
	if s.null >= 0 {
		syscall.Close(s.null)
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// onThread runs f on a thread of its own that is not the process's first: the
// kernel makes orphans children of that one, and so they can be told from tasks.
func onThread(f func()) {
	runtime.LockOSThread()
	if syscall.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThread(f) // this goroutine holds the first thread meanwhile
	}()
	<-done
}

// The pipe by which Connect learns that the shim it started listens, or why not.
const (
	readyEnv  = "GRIDNODE_SHIM_READY"
	readyWord = "ready"
)

func readyPipe() *os.File {
	fd, err := strconv.Atoi(strings.TrimSpace(os.Getenv(readyEnv)))
	if err != nil {
		fd = -1
	} else {
		syscall.CloseOnExec(fd)
	}
	os.Unsetenv(readyEnv)
	return os.NewFile(uintptr(fd), "ready pipe") // writes to it fail if there is none
}
