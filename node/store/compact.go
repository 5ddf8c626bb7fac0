package store

import (
	"sync"
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

const (
	// compactTables is from how many tables on those of the first level are merged with the
	// others. Flatten goes through all levels, so it is to have some to merge, and it leaves
	// five alone where there are no others. At fifteen Badger takes no further one.
	compactTables = 10
	// compactLook is after how many bytes of changes somebody looks. A table has several
	// times as many.
	compactLook = memTableSize / 8
	// compactPause is between two attempts if one has failed: the disk may be full.
	compactPause = time.Second
)

// compactor merges Badger's tables when there are many. Badger's own compactors look for
// work by the clock, each twenty times a second, which was most of what an idle node used
// of a processor. Here only what was written gives reason to look.
type compactor struct {
	db    *badger.DB
	log   badger.Logger
	bytes int           // of changes since the last look; of the store's goroutine
	wake  chan struct{} // holds a token when somebody should look
	quit  chan struct{}
	once  sync.Once // closes quit
	wg    sync.WaitGroup
}

func (c *compactor) start(db *badger.DB, log badger.Logger) {
	c.db, c.log = db, log
	c.wake, c.quit = make(chan struct{}, 1), make(chan struct{})
	c.bytes = compactLook // every Close leaves a table: the first change has somebody look
	c.wg.Go(c.run)
}

// stop returns when nothing is being merged any more. It may be called again.
func (c *compactor) stop() {
	c.once.Do(func() { close(c.quit) })
	c.wg.Wait()
}

// grown notes bytes that were written.
func (c *compactor) grown(bytes int) {
	if c.bytes += bytes; c.bytes < compactLook {
		return
	}
	c.bytes = 0
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *compactor) run() {
	for {
		select {
		case <-c.wake:
		case <-c.quit:
			return
		}
		for c.due() {
			err := c.db.Flatten(1)
			if err == nil {
				break
			}
			c.log.Warningf("tables cannot be merged: %v", err)
			select {
			case <-time.After(compactPause):
			case <-c.quit:
				return
			}
		}
	}
}

// due reports whether tables are to be merged.
func (c *compactor) due() bool { return c.db.Levels()[0].NumTables >= compactTables }
