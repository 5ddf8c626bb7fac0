package dataset

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Set is a data set that this site holds. It is the record that survives a crash.
type Set struct {
	grid.DataSet           // its size is known
	Path         string    // absolute, of the file or folder at this site; at most pathMax bytes
	Modified     int64     // of the file, nanoseconds since 1970, when it was entered
	Folder       bool      // a directory with everything below it; it cannot be copied elsewhere
	Shared       bool      // other sites may copy it
	Added        grid.Time // when it was entered
}

const pathMax = 4096

// RecordPrefix is where data sets are stored.
const RecordPrefix = "dataset/"

// RecordKey implements grid.Record.
func (s *Set) RecordKey() string { return RecordPrefix + s.Name }

// AppendRecord implements grid.Record.
func (s *Set) AppendRecord(dst []byte) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.DataSetRecord{
		Name: s.Name, Path: []byte(s.Path), Size: s.Size, Shared: s.Shared, Folder: s.Folder, Added: int64(s.Added), Modified: s.Modified,
	})
	if err != nil {
		panic(fmt.Sprintf("dataset: record of %s does not encode: %v", s.Name, err))
	}
	return out
}

// decodeSet is the inverse of AppendRecord.
func decodeSet(b []byte) (*Set, error) {
	var p wirepb.DataSetRecord
	if err := proto.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	s := &Set{
		DataSet: grid.DataSet{Name: p.Name, Size: p.Size}, Path: string(p.Path), Shared: p.Shared, Folder: p.Folder,
		Added: grid.Time(p.Added), Modified: p.Modified,
	}
	return s, s.check()
}

// check returns an error that says what is wrong with s.
func (s *Set) check() error {
	if err := grid.CheckDataName(s.Name); err != nil {
		return err
	}
	switch {
	case s.Size < 0 || s.Size > grid.DataSizeMax:
		return fmt.Errorf("data set %s of %d bytes, at most %d", s.Name, s.Size, int64(grid.DataSizeMax))
	case !strings.HasPrefix(s.Path, "/") || len(s.Path) > pathMax || strings.IndexByte(s.Path, 0) >= 0:
		return fmt.Errorf("data set %s: %q is no absolute path of at most %d bytes", s.Name, s.Path, pathMax)
	case s.Folder && s.Shared:
		return fmt.Errorf("data set %s is a directory, which cannot be copied to other sites", s.Name)
	}
	return nil
}

// Holder is a site that says that it holds a data set.
type Holder struct {
	Site   grid.SiteID
	Size   int64 // bytes
	Shared bool  // others may copy it

	heard grid.Time // when it last said so
}

// Inquire asks whether a site holds a data set.
type Inquire struct{ Name string }

// Inform answers Inquire.
type Inform struct {
	Name   string
	Held   bool
	Size   int64 // if Held
	Shared bool  // if Held
}

// MessageKind implements grid.Message.
func (*Inquire) MessageKind() grid.Kind { return wire.DataInquire }

// MessageKind implements grid.Message.
func (*Inform) MessageKind() grid.Kind { return wire.DataInform }

// Protocol is how catalogs speak over libp2p.
var Protocol = wire.Protocol{
	ID:       "/gridnode/dataset/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{wire.DataInquire: decodeInquire, wire.DataInform: decodeInform},
}

// Proto implements wire.Message.
func (m *Inquire) Proto() proto.Message { return &wirepb.DataInquire{Name: m.Name} }

// Proto implements wire.Message.
func (m *Inform) Proto() proto.Message {
	return &wirepb.DataInform{Name: m.Name, Held: m.Held, Size: m.Size, Shared: m.Shared}
}

func decodeInquire(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.DataInquire
	if err := wire.Unmarshal(body, &p, wire.DataInquire); err != nil {
		return nil, err
	}
	if err := grid.CheckDataName(p.Name); err != nil {
		return nil, wire.Malformed("%v", err)
	}
	return &Inquire{p.Name}, nil
}

func decodeInform(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.DataInform
	if err := wire.Unmarshal(body, &p, wire.DataInform); err != nil {
		return nil, err
	}
	if err := grid.CheckDataName(p.Name); err != nil {
		return nil, wire.Malformed("%v", err)
	}
	m := &Inform{Name: p.Name, Held: p.Held, Size: p.Size, Shared: p.Shared}
	var c wire.Check
	c.Within("size of a data set", p.Size, 0, grid.DataSizeMax)
	return wire.Checked(m, c.Err)
}
