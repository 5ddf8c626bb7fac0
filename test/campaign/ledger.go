package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ledger is the folder where jobs write down what happens to them: a file for each task, outside
// of all sites. A task holds a lock on another file as long as a process of it is alive, so that
// two that are alive at a time notice it, however they end.
type ledger string

// entry is a line that a task has written.
type entry struct {
	What string // begin, end or overlap
	Site string
	PID  int
	In   string // digest of what it found as its input
}

// script is what a task runs: it takes so many seconds and ends with the code.
func (l ledger) script(seconds float64, code int32) string {
	return fmt.Sprintf(`umask 0; f=%s/$GRIDNODE_JOB_ID.${GRIDNODE_RANK:-0}
exec 9>>$f.lock; flock -n 9 || echo overlap $GRIDNODE_SITE $$ - >>$f
in=$(cat ${GRIDNODE_INPUT_0:-input} 2>/dev/null | sha256sum | cut -c1-16)
echo begin $GRIDNODE_SITE $$ $in >>$f
sleep %.2f
echo task ${GRIDNODE_RANK:-0} read $in
[ ! -e input ] || cat input >output
echo end $GRIDNODE_SITE $$ $in >>$f
exit %d`, string(l), seconds, code)
}

// read returns what the tasks of all jobs have written, by job and task.
func (l ledger) read() (map[string]map[int][]entry, error) {
	files, err := filepath.Glob(filepath.Join(string(l), "*"))
	if err != nil {
		return nil, err
	}
	all := map[string]map[int][]entry{}
	for _, file := range files {
		id, number, ok := strings.Cut(filepath.Base(file), ".")
		rank, err := strconv.Atoi(number)
		if !ok || err != nil { // a lock
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if all[id] == nil {
			all[id] = map[int][]entry{}
		}
		if all[id][rank], err = parseEntries(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

func parseEntries(text string) (list []entry, err error) {
	for line := range strings.Lines(text) {
		var e entry
		if _, err := fmt.Sscan(line, &e.What, &e.Site, &e.PID, &e.In); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		list = append(list, e)
	}
	return list, nil
}
