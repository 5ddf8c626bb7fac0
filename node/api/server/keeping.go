package server

import (
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"gridnode/node/api"
	"gridnode/node/logging"
)

// keeping answers who looks after the daemon.
type keeping struct{ *Server }

// backup streams a backup of the site.
func (a keeping) backup(w http.ResponseWriter, r *http.Request) error {
	keys := r.URL.Query().Get("keys")
	switch {
	case a.cfg.Backup == nil:
		return errorf(api.CodeRefused, "this daemon has no home to back up")
	case keys != "" && keys != "true" && keys != "false":
		return errorf(api.CodeUsage, "keys: %.40q: want true or false", keys)
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Trailer", api.TrailerError)
	started := &begun{ResponseWriter: w}
	err := a.cfg.Backup(r.Context(), started, keys != "false")
	if err != nil && !started.yes {
		return err
	}
	if err != nil { // too late for a status
		failure := failureOf(err)
		w.Header().Set(api.TrailerError, failure.Code+" "+failure.Message)
		return nil
	}
	a.cfg.Logger.Info("a backup was made", "by", userOf(r.Context()), "keys", keys != "false")
	return nil
}

// begun notes whether anything was written.
type begun struct {
	http.ResponseWriter
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// levels answers with the levels of the log.
func (a keeping) levels(w http.ResponseWriter, _ *http.Request) error {
	if a.cfg.Levels == nil {
		return errorf(api.CodeRefused, "the log of this daemon has no levels of its own")
	}
	var reply api.LogLevels
	for _, part := range logging.Parts {
		reply.Levels = append(reply.Levels, api.LogLevel{Part: part, Level: logging.NameOf(a.cfg.Levels.Of(part))})
	}
	return writeJSON(w, reply)
}

// setLevels changes levels of the log.
func (a keeping) setLevels(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.Levels == nil {
		return a.levels(w, r)
	}
	var request api.LogLevels
	if err := readJSON(r, &request); err != nil {
		return err
	}
	levels := make([]slog.Level, len(request.Levels))
	for i, l := range request.Levels {
		var err error
		if levels[i], err = logging.ParseLevel(l.Level); err != nil {
			return errorf(api.CodeUsage, "%v", err)
		}
		if l.Part != "" && !slices.Contains(logging.Parts, l.Part) {
			return errorf(api.CodeUsage, "%.40q is no subsystem: want %s", l.Part, strings.Join(logging.Parts, ", "))
		}
	}
	for i, l := range request.Levels {
		if err := a.cfg.Levels.Set(l.Part, levels[i]); err != nil {
			return err
		}
		a.cfg.Logger.Info("a level of the log was changed", "subsystem", l.Part, "level", l.Level, "by", userOf(r.Context()))
	}
	return a.levels(w, r)
}

// lines answers with the last lines of the log.
func (a keeping) lines(w http.ResponseWriter, _ *http.Request) error {
	if a.cfg.Lines == nil {
		return errorf(api.CodeRefused, "this daemon does not keep what it logs")
	}
	return writeText(w, a.cfg.Lines.Lines())
}

// goroutinesMax bounds the text of all goroutines.
const goroutinesMax = 8 << 20

// goroutines answers with what every goroutine is at.
func (a keeping) goroutines(w http.ResponseWriter, _ *http.Request) error {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || n >= goroutinesMax {
			return writeText(w, text[:n])
		}
		text = make([]byte, 2*len(text))
	}
}

func writeText(w http.ResponseWriter, text []byte) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write(text)
	return err
}
