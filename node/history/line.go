package history

import (
	"encoding/json"
	"fmt"
	"strconv"

	"gridnode/grid"
)

// Prefix begins the keys of lines that are not in a file yet.
const Prefix = "history/"

// Kind is of what a line tells.
type Kind string

// Kinds of lines.
const (
	Job   Kind = "job"
	Lease Kind = "lease" // processors that were lent
)

// Line is one line of the log. Its JSON is what the files have: spans and instants in
// microseconds, money in millionths of a credit. Keys are never given another meaning.
type Line struct {
	Seq     uint64 `json:"seq"`
	Kind    Kind   `json:"kind"`
	Foreign bool   `json:"foreign,omitempty"` // of another site; it was here

	ID     string `json:"id"`               // of the job; the number of the lease
	Epoch  uint32 `json:"epoch,omitempty"`  // of the execution
	Number uint64 `json:"number,omitempty"` // of the job at its home, for those who name jobs by numbers
	Name   string `json:"name,omitempty"`
	User   string `json:"user,omitempty"` // at its home

	Home     grid.SiteID   `json:"home"` // where it was submitted; of a lease: who used it
	HomeName string        `json:"homeName,omitempty"`
	Site     grid.SiteID   `json:"site,omitempty"` // where it was last; none: it never had a place, or had several
	SiteName string        `json:"siteName,omitempty"`
	Org      string        `json:"organisation,omitempty"` // of the other one of the two, in its certificate
	Sites    []grid.SiteID `json:"sites,omitempty"`        // where its parts were, if it ran at several

	Processors int64        `json:"processors"`
	GPUs       int64        `json:"gpus,omitempty"`
	Submitted  grid.Time    `json:"submitted,omitempty"` // at its home
	Start      grid.Time    `json:"start,omitempty"`     // none: it never began
	End        grid.Time    `json:"end"`
	Used       grid.Time    `json:"used"`            // processor time
	Price      grid.Price   `json:"price,omitempty"` // for a processor-hour
	Cost       grid.Credits `json:"cost,omitempty"`
	Bank       grid.SiteID  `json:"bank,omitempty"` // that paid it
	BankName   string       `json:"bankName,omitempty"`

	State  string `json:"state"` // in which it ended
	Exit   int32  `json:"exitCode,omitempty"`
	Reason string `json:"reason,omitempty"` // why it ended, if not by itself
}

// Key is where a line is stored until a file has it. Keys sort as numbers do.
func Key(seq uint64) string { return fmt.Sprintf("%s%016x", Prefix, seq) }

// seqOf returns the number in a key.
func seqOf(key string) (uint64, error) {
	return strconv.ParseUint(key[min(len(Prefix), len(key)):], 16, 64)
}

// RecordKey implements grid.Record.
func (l *Line) RecordKey() string { return Key(l.Seq) }

// AppendRecord implements grid.Record. It has no line break.
func (l *Line) AppendRecord(dst []byte) []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("history: line %d does not encode: %v", l.Seq, err))
	}
	return append(dst, text...)
}

// Parse reads a line as it is stored. What it does not know it leaves out.
func Parse(text []byte) (l Line, err error) {
	err = json.Unmarshal(text, &l)
	if err == nil && (l.Seq == 0 || l.Kind == "" || l.ID == "") {
		err = fmt.Errorf("a line of the job log without seq, kind or id")
	}
	return l, err
}

// Seq returns the number of a line as it is stored, 0 if it is not a line.
func Seq(text []byte) uint64 {
	l, err := Parse(text)
	if err != nil {
		return 0
	}
	return l.Seq
}

// other returns who is the other one, of which the line tells: where a job of this site
// was, or whose a job of another is.
func (l *Line) other() (grid.SiteID, string) {
	if l.Foreign {
		return l.Home, l.HomeName
	}
	return l.Site, l.SiteName
}

// moved is the record of a line that is to be deleted.
type moved uint64

// RecordKey implements grid.Record.
func (m moved) RecordKey() string { return Key(uint64(m)) }

// AppendRecord implements grid.Record; nobody saves it.
func (m moved) AppendRecord(dst []byte) []byte { return dst }
