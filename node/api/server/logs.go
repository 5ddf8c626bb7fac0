package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/console"
	"gridnode/node/run"
)

// tailMax bounds the bytes that the last lines of an output may take.
const tailMax = 16 << 20

// logRequest is the parameters of GET /v1/jobs/{id}/logs.
type logRequest struct {
	stream run.Stream
	follow bool
	tail   int64 // lines from the end; -1: everything
	from   outputPlace
}

// outputPlace is a place in the output of a job. Epochs are at least 1: the zero value is none.
type outputPlace struct {
	epoch  uint32 // of the execution
	offset int64  // bytes of it that come before
}

func (p outputPlace) String() string { return fmt.Sprintf("%d-%d", p.epoch, p.offset) }

func parseOutputPlace(text string) (p outputPlace, ok bool) {
	before, after, _ := strings.Cut(text, "-")
	epoch, err := strconv.ParseUint(before, 10, 32)
	offset, failed := strconv.ParseInt(after, 10, 64)
	return outputPlace{uint32(epoch), offset}, err == nil && failed == nil && epoch > 0 && offset >= 0
}

func parseLogRequest(values url.Values) (logRequest, error) {
	q := logRequest{stream: run.Stdout, tail: -1}
	switch stream := values.Get("stream"); stream {
	case "", run.Stdout.String():
	case run.Stderr.String():
		q.stream = run.Stderr
	default:
		return q, errorf(api.CodeUsage, "stream: %q, want stdout or stderr", stream)
	}
	switch follow := values.Get("follow"); follow {
	case "", "false":
	case "true":
		q.follow = true
	default:
		return q, errorf(api.CodeUsage, "follow: %q, want true or false", follow)
	}
	if text := values.Get("tail"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return q, errorf(api.CodeUsage, "tail: %q, want a number of lines, at least 0", text)
		}
		q.tail = n
	}
	if text := values.Get("from"); text != "" {
		place, ok := parseOutputPlace(text)
		if !ok || q.tail >= 0 {
			return q, errorf(api.CodeUsage, "from: %q, want a place as %s names it, and no tail", text, api.HeaderOutput)
		}
		q.from = place
	}
	return q, nil
}

// logs streams what a job has written.
func (a *Server) logs(w http.ResponseWriter, r *http.Request) error {
	q, err := parseLogRequest(r.URL.Query())
	if err != nil {
		return err
	}
	ids, err := a.identify(r.Context(), []string{r.PathValue("id")})
	if err == nil {
		err = a.ofAsker(r.Context(), ids)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	out := &logWriter{w: w, flush: q.follow}
	err = a.copyLog(ctx, out, ids[0], &q)
	switch {
	case err == nil:
		out.begin()
	case !out.begun:
		return err
	default: // too late for a status: the end of the stream says it
		failure := failureOf(because(r, err))
		w.Header().Set(api.TrailerError, failure.Code+" "+failure.Message)
	}
	return nil
}

// copyLog writes what q asks for to out.
func (a *Server) copyLog(ctx context.Context, out *logWriter, id grid.JobID, q *logRequest) error {
	skip := q.from.offset
	if q.tail >= 0 {
		last := lastLines{lines: q.tail}
		if err := a.readLog(ctx, &last, id, q.stream, false, func(epoch uint32) error { out.place.epoch = epoch; return nil }); err != nil {
			return err
		}
		text := last.text()
		out.place.offset = last.total - int64(len(text))
		if _, err := out.Write(text); err != nil || !q.follow {
			return err
		}
		skip = last.total
	}
	return a.readLog(ctx, &skipper{out, skip}, id, q.stream, q.follow, func(epoch uint32) error {
		switch {
		case q.from.epoch > 0 && epoch != q.from.epoch:
			return errorf(api.CodeRefused, "the job was started again: its output begins anew")
		case !out.begun:
			out.place = outputPlace{epoch, skip}
		}
		return nil
	})
}

// readLog copies output to w. It tells of which execution that is before the first byte.
func (a *Server) readLog(ctx context.Context, w io.Writer, id grid.JobID, stream run.Stream, follow bool, begins func(epoch uint32) error) error {
	source, err := a.host.Output(ctx, id, stream, follow)
	if err != nil {
		return err
	}
	defer source.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := source.Read(buffer)
		if n > 0 && begins != nil {
			if err := begins(source.Epoch()); err != nil {
				return err
			}
			begins = nil
		}
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// logWriter begins an answer with the first byte of output.
type logWriter struct {
	w     http.ResponseWriter
	flush bool // after every piece
	begun bool
	place outputPlace // of its first byte
}

func (l *logWriter) begin() {
	if l.begun {
		return
	}
	l.begun = true
	if l.place.epoch > 0 {
		l.w.Header().Set(api.HeaderOutput, l.place.String())
	}
	l.w.Header().Set("Trailer", api.TrailerError)
	l.w.Header().Set("Content-Type", "application/octet-stream")
	l.w.WriteHeader(http.StatusOK)
}

func (l *logWriter) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	l.begin()
	n, err := l.w.Write(b)
	if err == nil && l.flush {
		err = http.NewResponseController(l.w).Flush()
	}
	return n, err
}

// skipper leaves out the first bytes.
type skipper struct {
	w    io.Writer
	left int64
}

func (s *skipper) Write(b []byte) (int, error) {
	k := min(s.left, int64(len(b)))
	s.left -= k
	if _, err := s.w.Write(b[k:]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// lastLines keeps the last lines written to it, tailMax bytes of them at most.
type lastLines struct {
	lines int64
	kept  []byte
	total int64
}

func (l *lastLines) Write(b []byte) (int, error) {
	l.total += int64(len(b))
	l.kept = append(l.kept, b...)
	if len(l.kept) > 2*tailMax { // not at each piece, which would move every byte often
		l.kept = append(l.kept[:0], l.kept[len(l.kept)-tailMax:]...)
	}
	return len(b), nil
}

// text returns the lines; the last one may lack its newline.
func (l *lastLines) text() []byte {
	text := l.kept[max(len(l.kept)-tailMax, 0):]
	start := len(text)
	for n := l.lines; n > 0 && start > 0; n-- {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
	}
	return text[start:]
}

// consoles lets owners look into their jobs.
type consoles struct{ *Server }

// open returns the handler for a look through the job's own terminal, or for a command beside
// it. The connection is then one of package console's.
func (a consoles) open(beside bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := a.owned(r)
		if err != nil {
			return err
		}
		var request console.Request
		if err := readJSON(r, &request); err != nil {
			return err
		}
		if err := request.Check(); err != nil {
			return errorf(api.CodeUsage, "%v", err)
		}
		switch {
		case !strings.EqualFold(r.Header.Get("Upgrade"), console.Protocol):
			return errorf(api.CodeUsage, "Upgrade: %q, want %s", r.Header.Get("Upgrade"), console.Protocol)
		case beside && len(request.Args) == 0:
			return errorf(api.CodeUsage, "args: no command to run")
		case !beside && len(request.Args) > 0:
			return errorf(api.CodeUsage, "args: a command is run by exec")
		}
		return a.serve(w, r, id, &request)
	}
}

// owned returns the job that a request names, which must be the asker's.
func (a consoles) owned(r *http.Request) (id grid.JobID, err error) {
	ids, err := a.identify(r.Context(), []string{r.PathValue("id")})
	if err == nil {
		err = a.ofAsker(r.Context(), ids)
	}
	switch {
	case err != nil:
		return id, err
	case len(ids) != 1:
		return id, errorf(api.CodeUsage, "%s is %d jobs: name one of them", r.PathValue("id"), len(ids))
	}
	return ids[0], nil
}

func (a consoles) serve(w http.ResponseWriter, r *http.Request, id grid.JobID, request *console.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	job, err := a.host.Console(ctx, id, request)
	if refusal := (*console.Refusal)(nil); errors.As(err, &refusal) {
		return errorf(api.CodeRefused, "%s", refusal.Reason)
	}
	if err != nil {
		return err
	}
	defer job.Close()
	conn, pipe, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", console.Protocol); err != nil {
		return nil // the asker has gone
	}
	console.Relay(job, console.Buffered(conn, bufio.NewReaderSize(pipe, console.DataMax)))
	return nil
}
