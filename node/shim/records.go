package shim

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/store/journal"
)

// Records of the shim's journal.
const (
	recordShim    = 'S' // a shim began: its boot ID and mark; first in the file
	recordIntent  = 'I' // a task is about to be started: id
	recordStarted = 'P' // it was: id, process, time
	recordEnded   = 'E' // an Ended
	recordAcked   = 'A' // the daemon has it: id
)

const (
	journalName  = "shim.journal"
	journalAhead = 256 << 10
	// journalMax is the size at which the journal is written anew with what still
	// counts, unless that alone is half as much.
	journalMax = 4 << 20
	// syncEvery is the longest a record stays in memory. Only a power cut loses what
	// is not synced, and after one nothing runs any more: so starting a task need not
	// wait for the disk, and an end is told to the daemon at once, who saves it.
	syncEvery  = 200 * time.Millisecond
	touchEvery = time.Second
)

// records is the shim's memory: every task that runs or whose end is not
// acknowledged, in a journal.
type records struct {
	home    string
	boot    string
	token   string // random, begins every mark of this home's tasks
	outer   string // mark of this shim itself, if it is the task of another one
	journal *journal.Journal
	brief   bool // the home ends with this shim: nothing need outlive a power cut
	dirty   bool // something was appended since the last sync
	touched time.Time
	buf     []byte
}

// known is what the journal says about a task.
type known struct {
	pid   int // 0 if it was about to be started
	start grid.Time
	ended *Ended // nil if it runs, as far as the journal knows
}

// past is what an earlier shim left.
type past struct {
	tasks map[string]*known
	order []string // of their first records
	boot  string
	alive time.Time // the earlier shim was alive then, at least
}

// openRecords reads the home's journal. One that is damaged is kept aside; what was
// read before the damage counts. The caller renews it before anything else.
func openRecords(home string) (*records, *past, error) {
	r := &records{home: home, boot: bootID(), outer: os.Getenv(MarkEnv)}
	p := &past{tasks: make(map[string]*known)}
	path := filepath.Join(home, journalName)
	if info, err := os.Stat(path); err == nil {
		p.alive = info.ModTime()
		tail, err := journal.Read(path, func(_ int64, b []byte) error { return r.replay(b, p) })
		if err != nil || tail.Damaged {
			aside := path + ".damaged"
			fmt.Fprintf(os.Stderr, "%s: damaged at byte %d (%v): kept as %s, what was read of it counts\n", path, tail.Size, err, aside)
			if err := os.Rename(path, aside); err != nil {
				return nil, nil, err
			}
		}
	} else if !os.IsNotExist(err) {
		return nil, nil, err
	}
	if r.token == "" {
		var token [8]byte
		rand.Read(token[:]) // never fails
		r.token = hex.EncodeToString(token[:])
	}
	return r, p, nil
}

// replay adds a record of the journal to p.
func (r *records) replay(b []byte, p *past) error {
	if len(b) == 0 {
		return errEncoding
	}
	d := decoder{rest: b[1:]}
	task := func(id string) *known {
		t := p.tasks[id]
		if t == nil {
			t = &known{}
			p.tasks[id] = t
			p.order = append(p.order, id)
		}
		return t
	}
	switch b[0] {
	case recordShim:
		p.boot, r.token = d.string(), d.string()
	case recordIntent:
		t := task(d.string())
		t.start = grid.Time(d.uint())
	case recordStarted:
		t := task(d.string())
		t.pid, t.start = int(d.int(1<<31)), grid.Time(d.uint())
	case recordEnded:
		var e Ended
		if err := e.decode(b[1:]); err != nil {
			return err
		}
		task(e.ID).ended = &e
		return nil
	case recordAcked:
		delete(p.tasks, d.string())
	default:
		return errEncoding
	}
	return d.end()
}

// renew replaces the journal by one that holds what is given, and returns the old
// one, if any, for the caller to close. On an error the old one stays.
func (r *records) renew(tasks func(yield func(id string, k known))) (old *journal.Journal, err error) {
	path := filepath.Join(r.home, journalName)
	fresh, err := journal.Create(path+".new", journalAhead)
	if err != nil {
		return nil, err
	}
	old, r.journal = r.journal, fresh
	err = r.add(func(b []byte) []byte {
		return appendString(appendString(append(b, recordShim), r.boot), r.token)
	})
	tasks(func(id string, k known) {
		if err == nil && k.ended != nil {
			err = r.ended(k.ended)
		} else if err == nil {
			err = r.started(id, k.pid, k.start)
		}
	})
	if err == nil && !r.brief {
		err = fresh.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil && !r.brief {
		err = atomicfile.SyncDir(r.home)
	}
	if err != nil {
		r.journal = old
		fresh.Close()
		return nil, fmt.Errorf("renew the shim's journal: %w", err)
	}
	r.dirty = false
	return old, nil
}

func (r *records) add(record func([]byte) []byte) error {
	r.buf = record(r.buf[:0])
	if _, err := r.journal.Append(r.buf); err != nil {
		return err
	}
	r.dirty = !r.brief
	return nil
}

func (r *records) intent(id string, start grid.Time) error {
	return r.add(func(b []byte) []byte {
		return binary.AppendUvarint(appendString(append(b, recordIntent), id), uint64(start))
	})
}

func (r *records) started(id string, pid int, start grid.Time) error {
	return r.add(func(b []byte) []byte {
		b = binary.AppendUvarint(appendString(append(b, recordStarted), id), uint64(pid))
		return binary.AppendUvarint(b, uint64(start))
	})
}

func (r *records) ended(e *Ended) error {
	return r.add(func(b []byte) []byte { return e.append(append(b, recordEnded)) })
}

func (r *records) acked(id string) error {
	return r.add(func(b []byte) []byte { return appendString(append(b, recordAcked), id) })
}

// touch leaves a sign of life: a later shim trusts process numbers in the journal up
// to its time of modification (see sweep).
func (r *records) touch(now time.Time) {
	if now.Sub(r.touched) >= touchEvery {
		r.touched = now
		os.Chtimes(filepath.Join(r.home, journalName), now, now)
	}
}

// markOf returns the mark of a task's processes: this home's, behind that of the shim
// itself if it is a task, so that the outer shim knows whose they are, too.
func (r *records) markOf(id string) string {
	mark := r.token + "/" + id
	if r.outer != "" {
		return r.outer + markBetween + mark
	}
	return mark
}

// markBetween parts the marks of shims within each other.
const markBetween = "\x1f"

// marked returns which task of this home a mark names, if any.
func (r *records) marked(mark string) (id string, ours bool) { return markedBy(mark, r.token) }

func markedBy(mark, token string) (id string, ours bool) {
	for part := range strings.SplitSeq(mark, markBetween) {
		if id, ours := strings.CutPrefix(part, token+"/"); ours {
			return id, true
		}
	}
	return "", false
}
