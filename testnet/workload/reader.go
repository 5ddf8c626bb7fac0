package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// lineMax bounds a line of a log in bytes, its line break included.
const lineMax = 64 << 10

// Words of a GWF file: their number and length are bounded, so that a file
// cannot fill the memory.
const (
	wordsMax    = 1 << 20
	wordMaxSize = 256
)

// Reader reads a log as a stream: it holds one line of it at a time. Plain and
// gzip-compressed files are told apart by their first bytes, SWF and GWF by the
// header or the number of fields. It is not safe for concurrent use.
type Reader struct {
	name   string
	strict bool
	lines  *bufio.Reader
	close  []io.Closer

	format  Format
	header  Header
	line    int64  // number of the line last read
	pending []byte // first line after the header, not yet parsed; nil if none
	failed  error  // what Next returned; it keeps returning that

	skipped, repaired Faults
	repairs           []string // of the line at hand

	values  [fieldsGWF]int64
	words   []string
	numbers map[string]int64 // the inverse of words
}

// Open opens a log and reads its header. The error names the file. The caller
// closes the reader.
func Open(path string, o Options) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	r, err := NewReader(f, path, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.close = append(r.close, f)
	return r, nil
}

// NewReader reads a log from src and its header at once; name stands in errors.
// It does not close src.
func NewReader(src io.Reader, name string, o Options) (*Reader, error) {
	r := &Reader{name: name, strict: o.Strict, lines: bufio.NewReaderSize(src, lineMax)}
	magic, err := r.lines.Peek(2)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	if len(magic) == 0 {
		return nil, fmt.Errorf("read trace %s: the file is empty", name)
	}
	if string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(r.lines)
		if err != nil {
			return nil, fmt.Errorf("read trace %s: not a sound gzip file: %w", name, err)
		}
		r.lines = bufio.NewReaderSize(z, lineMax)
	}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	return r, nil
}

// Header returns what the log says about itself. It must not be changed.
func (r *Reader) Header() *Header { return &r.header }

// Format returns the log's format; it is FormatUnknown before the first job of a
// log without header.
func (r *Reader) Format() Format { return r.format }

// Skipped returns which lines were left out so far; none if the reader is strict.
func (r *Reader) Skipped() Faults { return r.skipped }

// Repaired returns which lines were taken although a field that no job is made of was
// malformed; none if the reader is strict.
func (r *Reader) Repaired() Faults { return r.repaired }

// Word returns the word that a field of a Record holds the number of, and "" for
// Unknown. In SWF, where these fields are numbers, it returns the digits.
func (r *Reader) Word(n int64) string {
	switch {
	case n == Unknown:
		return ""
	case r.format == FormatGWF && n < int64(len(r.words)):
		return r.words[n]
	}
	return strconv.FormatInt(n, 10)
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range r.close {
		errs = append(errs, c.Close())
	}
	r.close = nil
	return errors.Join(errs...)
}

// Next returns the next job of the log, io.EOF at the end, a *LineError for a
// malformed line if it is strict, and other errors for a file that cannot be
// read on. After an error it returns the same again. It does not allocate,
// except for words it meets for the first time.
func (r *Reader) Next() (Record, error) {
	for r.failed == nil {
		line, fault, err := r.next()
		if err != nil {
			r.failed = err
			break
		}
		if fault == "" {
			if line = trim(line); len(line) == 0 || r.comment(line) {
				continue
			}
			if fault = r.parse(line); fault == "" {
				r.noteRepairs()
				return r.format.record(r.line, &r.values), nil
			}
		}
		r.refuse(fault)
	}
	return Record{}, r.failed
}

// refuse notes that the current line is malformed.
func (r *Reader) refuse(fault string) {
	if r.strict {
		r.failed = &LineError{r.name, r.line, fault}
		return
	}
	r.skipped.Lines++
	r.skipped.add(r.line, fault)
}

// repair notes that a field of the current line is taken for unknown, if that may be.
func (r *Reader) repair(fault string) bool {
	if !r.strict {
		r.repairs = append(r.repairs, fault)
	}
	return !r.strict
}

// noteRepairs counts the current line if anything in it was repaired.
func (r *Reader) noteRepairs() {
	if len(r.repairs) == 0 {
		return
	}
	r.repaired.Lines++
	for _, fault := range r.repairs {
		r.repaired.add(r.line, fault)
	}
}

// next returns the next line, with its line break, valid until the next call. A
// fault is about this line only, an error about the file.
func (r *Reader) next() (line []byte, fault string, err error) {
	if r.pending != nil {
		line, r.pending = r.pending, nil
		return line, "", nil
	}
	line, err = r.lines.ReadSlice('\n')
	if err == nil {
		r.line++
		return line, "", nil
	}
	switch {
	case err == bufio.ErrBufferFull:
		r.line++
		for err == bufio.ErrBufferFull {
			_, err = r.lines.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return nil, "", r.broken(err)
		}
		return nil, fmt.Sprintf("the line is longer than %d bytes", lineMax), nil
	case err != io.EOF:
		return nil, "", r.broken(err)
	case len(line) == 0:
		return nil, "", io.EOF
	}
	r.line++ // the last line lacks its line break
	return line, "", nil
}

// broken describes an error of the file itself.
func (r *Reader) broken(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the compressed data ends too early, is the file complete? %w", err)
	}
	return fmt.Errorf("read trace %s after line %d: %w", r.name, r.line, err)
}

// readHeader reads the comment lines before the first job.
func (r *Reader) readHeader() error {
	size := 0
	for {
		line, fault, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text := trim(line)
		if fault == "" && len(text) > 0 && r.format == FormatUnknown {
			switch text[0] {
			case ';':
				r.format = FormatSWF
			case '#':
				r.format = FormatGWF
			}
		}
		if fault == "" && len(text) > 0 && !r.comment(text) {
			r.pending = line
			return nil
		}
		size += len(line)
		switch {
		case fault != "":
		case len(r.header.Entries) == headerLinesMax || size > headerBytesMax:
			fault = fmt.Sprintf("the header is longer than %d lines or %d bytes", headerLinesMax, headerBytesMax)
		case bytes.IndexByte(text, 0) >= 0:
			fault = "the header holds a NUL byte; is this a trace?"
		case len(text) > 0:
			r.header.Entries = append(r.header.Entries, entry(text[1:]))
		}
		if fault != "" {
			if r.refuse(fault); r.failed != nil {
				return r.failed
			}
		}
	}
}

// comment reports whether the line is a comment in the log's format.
func (r *Reader) comment(line []byte) bool {
	return line[0] == ';' && r.format == FormatSWF || line[0] == '#' && r.format == FormatGWF
}

// parse reads a line into r.values and returns what is wrong with it, if anything.
func (r *Reader) parse(line []byte) (fault string) {
	if r.format == FormatUnknown {
		switch n := fields(line); n {
		case fieldsSWF:
			r.format = FormatSWF
		case fieldsGWF:
			r.format = FormatGWF
		default:
			return fmt.Sprintf("%d fields, want %d (SWF) or %d (GWF)", n, fieldsSWF, fieldsGWF)
		}
	}
	columns := r.format.columns()
	pos := 0
	r.repairs = r.repairs[:0]
	for i := range columns {
		c := &columns[i]
		pos = skipBlanks(line, pos)
		if pos == len(line) {
			return fmt.Sprintf("%d fields, want %d (%v)", i, len(columns), r.format)
		}
		if c.kind >= word {
			pos, fault = r.parseWord(line, pos, i)
		} else if n, end, ok := plain(line, pos); ok && n <= c.max {
			if n >= 0 {
				n *= c.unit
			}
			r.values[i], pos = n, end
			continue
		} else {
			pos, fault = r.parseNumber(line, pos, i)
		}
		if fault == "" {
			continue
		}
		fault = fmt.Sprintf("field %d (%s): %s", i+1, c.name, fault)
		if !c.dispensable(r.values[i]) || !r.repair(fault) {
			return fault
		}
		r.values[i], pos = Unknown, fieldEnd(line, pos)
	}
	if skipBlanks(line, pos) != len(line) {
		return fmt.Sprintf("%d fields, want %d (%v)", fields(line), len(columns), r.format)
	}
	return ""
}

func (r *Reader) parseNumber(line []byte, pos, i int) (end int, fault string) {
	integral, millionths, end, fault := number(line, pos)
	if fault != "" {
		r.values[i] = integral
		return end, fault
	}
	r.values[i], fault = r.format.columns()[i].value(integral, millionths)
	return end, fault
}

func (r *Reader) parseWord(line []byte, pos, i int) (end int, fault string) {
	end = fieldEnd(line, pos)
	if r.format.columns()[i].kind == word {
		r.values[i], fault = r.number(line[pos:end])
	}
	return end, fault
}

// number returns the number of a word of a GWF file.
func (r *Reader) number(w []byte) (n int64, fault string) {
	if n, ok := r.numbers[string(w)]; ok {
		return n, ""
	}
	switch {
	case string(w) == "-1":
		return Unknown, ""
	case len(w) > wordMaxSize:
		return 0, fmt.Sprintf("a word of %d bytes, at most %d", len(w), wordMaxSize)
	case len(r.words) == wordsMax:
		return 0, fmt.Sprintf("more than %d different words", wordsMax)
	}
	for _, b := range w {
		if b < ' ' || b == 0x7f {
			return 0, fmt.Sprintf("%s holds a control character", quote(w, 0))
		}
	}
	if r.numbers == nil {
		r.numbers = make(map[string]int64)
	}
	n = int64(len(r.words))
	r.words = append(r.words, string(w))
	r.numbers[r.words[n]] = n
	return n, ""
}

// trim drops the line break and blanks at both ends.
func trim(line []byte) []byte {
	for len(line) > 0 && (blank(line[0])) {
		line = line[1:]
	}
	for n := len(line); n > 0 && (line[n-1] == '\n' || blank(line[n-1])); n-- {
		line = line[:n-1]
	}
	return line
}
