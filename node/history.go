package node

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	logged "gridnode/node/history"
	"gridnode/node/site"
	"gridnode/node/store/rotated"
)

// HistoryDir is the folder of the job log in the home of a node.
const HistoryDir = "history"

// Times of the job log.
const (
	historyPause = 250 * time.Millisecond // between two moves, so that a sync is for many lines
	historyRetry = 5 * time.Second        // after one that failed
)

// historyBatch bounds the lines of one move.
const historyBatch = 4096

// history moves lines of the job log from the store, where each was saved with the end that
// it tells of, to files. It reads the store, so it has no line that is not durable.
type history struct {
	h      *Host
	files  *rotated.Log
	wanted chan struct{} // holds a token when there is something to move
	quit   chan struct{}
	once   sync.Once
	wg     sync.WaitGroup

	mu    sync.Mutex
	moved uint64        // up to here
	tick  chan struct{} // closed after the next move
}

// newHistory opens the files of a host's job log; nil if it keeps none.
func newHistory(h *Host) (*history, error) {
	if h.cfg.Home == "" || h.cfg.History.Files == 0 {
		return nil, nil
	}
	options := h.cfg.History
	options.Number = logged.Seq
	files, err := rotated.Open(filepath.Join(h.cfg.Home, HistoryDir), options)
	if err != nil {
		return nil, fmt.Errorf("job log: %w", err)
	}
	return &history{h: h, files: files, wanted: make(chan struct{}, 1), quit: make(chan struct{}), moved: files.Last(), tick: make(chan struct{})}, nil
}

// begin moves what there is, and whatever comes, until close.
func (y *history) begin() {
	y.wake()
	y.wg.Go(y.run)
}

// wake has lines moved that the store has got.
func (y *history) wake() {
	select {
	case y.wanted <- struct{}{}:
	default:
	}
}

func (y *history) run() {
	for {
		select {
		case <-y.wanted:
		case <-y.quit:
			_ = y.move() // what cannot be moved now is at the next start
			return
		}
		pause := historyPause
		if err := y.move(); err != nil {
			y.h.log.Error("lines of the job log stay in the store for now: make room, or repair the folder", "folder", y.files.Dir(), "error", err)
			pause = historyRetry
			y.wake()
		}
		select {
		case <-time.After(pause):
		case <-y.quit:
		}
	}
}

// move moves the lines that the store has.
func (y *history) move() error {
	for {
		lines, err := y.pending()
		if err == nil {
			err = y.files.Append(lines)
		}
		last := y.files.Last()
		if len(lines) > 0 && err == nil {
			y.h.inbox.put(&site.HistoryKept{Last: last})
		}
		y.mu.Lock()
		y.moved = last
		close(y.tick)
		y.tick = make(chan struct{})
		y.mu.Unlock()
		if err != nil || len(lines) < historyBatch {
			return err
		}
	}
}

// pending returns lines of the store that no file has, the first ones if they are many.
func (y *history) pending() (lines [][]byte, err error) {
	records, failed := y.h.loop.store.After(logged.Prefix, logged.Key(y.files.Last()))
	for _, line := range records {
		if lines = append(lines, line); len(lines) == historyBatch {
			break
		}
	}
	return lines, failed()
}

// close ends it. The store must still be open.
func (y *history) close() {
	if y == nil {
		return
	}
	y.once.Do(func() { close(y.quit) })
	y.wg.Wait()
	y.files.Close()
}

// flush waits until the files have every line that the site has written by now.
func (y *history) flush(ctx context.Context) error {
	var last uint64
	if err := y.h.Do(ctx, func(s *site.Site) { last = s.LastLine() }); err != nil {
		return err
	}
	for {
		y.mu.Lock()
		moved, tick := y.moved, y.tick
		y.mu.Unlock()
		if moved >= last {
			return nil
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		case <-y.quit:
			return ErrStopped
		}
	}
}

// flushMax is how long a reader of the job log waits for the lines of just now.
const flushMax = 2 * time.Second

// History yields the lines of the job log, oldest first, until yield returns false. Lines
// that cannot be moved to files for the moment are missing. It yields nothing if no log is
// kept.
func (h *Host) History(ctx context.Context, yield func(line []byte) bool) error {
	if h.history == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, flushMax)
	defer cancel()
	if err := h.history.flush(waiting); err != nil && waiting.Err() == nil {
		return err
	}
	return rotated.Read(h.history.files.Dir(), func(line []byte) bool { return ctx.Err() == nil && yield(line) })
}

// KeepsHistory reports whether the node keeps a job log.
func (h *Host) KeepsHistory() bool { return h.history != nil }
