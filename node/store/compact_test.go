package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// Every opening leaves a table. Where they have no order each look-up looks through all, and
// there is a number at which Badger takes no more.
func TestTablesAreMerged(t *testing.T) {
	dir := memoryDir(t)
	want := make(map[string]string)
	for i := range compactTables + 1 {
		s := openTest(t, dir)
		key := fmt.Sprintf("key%d", i)
		want[key] = "value"
		commit(t, s, key, "value")
		for late := time.Now().Add(time.Minute); i == compactTables && s.engine.compact.due(); runtime.Gosched() {
			if time.Now().After(late) {
				t.Fatalf("tables of the levels: %v", s.engine.db.Levels())
			}
		}
		expect(t, s, want)
		closeTest(t, s)
	}
}

// A host whose start has failed closes its store where it failed, and once more at its end.
func TestClosedAgain(t *testing.T) {
	s := openTest(t, memoryDir(t))
	closeTest(t, s)
	_ = s.Close() // what it says of a store that is closed does not matter
}
