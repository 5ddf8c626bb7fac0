package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gridnode/node/api"
)

// terms is the flags of submit that say when a job may be placed, what becomes of it when
// it fails, and where its output goes.
type terms struct {
	dependency, killOnInvalid, begin, signal string
	hold, noRequeue                          bool
	retries, nice                            int32
	notify                                   string
	stdout, stderr, openMode                 string
}

func (t *terms) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&t.dependency, "dependency", "d", "", "run only after other jobs, a `LIST` like afterok:12:13,afterany:14 (afterok, afternotok, afterany, after: it has begun; aftercorr: of an array the one of the same index; of IDs, numbers or arrays), or singleton; ? instead of , for one of them")
	f.StringVar(&t.killOnInvalid, "kill-on-invalid-dep", "no", "cancel the job once its dependencies can never be met: `yes`, or no: it waits on")
	f.StringVarP(&t.begin, "begin", "b", "", "run not before `WHEN`: an instant, now+SPAN, or a time of day (16:00)")
	f.BoolVarP(&t.hold, "hold", "H", false, "run not before it is released (see 'release')")
	f.Int32Var(&t.retries, "retries", 0, "run it again up to `COUNT` times when it fails; executions that vanish are replaced in any case")
	f.BoolVar(&t.noRequeue, "no-requeue", false, "do not run it again when an execution has vanished with its machine")
	f.Int32Var(&t.nice, "nice", 0, "let other jobs go before it where Slurm orders the queue, by `NUMBER` as its --nice")
	f.StringVar(&t.signal, "signal", "", "send it a `SIGNAL` before its limit: [B:]TERM[@60], 60 seconds before unless said; B: to its first process only")
	f.StringVar(&t.notify, "notify", "", "`COMMAND` of a shell that runs at this site, as you, when the job is over, with GRIDNODE_JOB_STATE and the like; at most a minute")
	f.StringVar(&t.stdout, "stdout", "", "`FILE` at this site that gets what it writes, as it comes; %j, %A, %a, %x, %u, %N stand for number, array, index, name, user, site")
	f.StringVar(&t.stderr, "stderr", "", "`FILE` for its standard error (default: that of --stdout)")
	f.StringVar(&t.openMode, "open-mode", "truncate", "write these files anew, or `append` to them")
}

func (t *terms) spec(spec *api.JobSpec, now time.Time) (err error) {
	spec.Dependency, spec.Hold, spec.Retries, spec.NoRequeue, spec.Notify, spec.Nice = t.dependency, t.hold, t.retries, t.noRequeue, t.notify, t.nice
	switch t.killOnInvalid {
	case "yes":
		spec.DropUnmet = true
	case "no", "":
	default:
		return fmt.Errorf("--kill-on-invalid-dep: %q: want yes or no", t.killOnInvalid)
	}
	switch t.openMode {
	case "append", "a":
		spec.Append = true
	case "truncate", "t", "":
	default:
		return fmt.Errorf("--open-mode: %q: want append or truncate", t.openMode)
	}
	if t.begin != "" {
		at, err := parseBegin(t.begin, now)
		if err != nil {
			return fmt.Errorf("--begin: %w", err)
		}
		spec.Begin = api.InstantOf(at)
	}
	if t.signal != "" {
		if spec.Signal, err = parseSignal(t.signal); err != nil {
			return fmt.Errorf("--signal: %w", err)
		}
	}
	return t.files(spec)
}

// files sets the files of output, as absolute paths.
func (t *terms) files(spec *api.JobSpec) error {
	if t.stderr != "" && t.stdout == "" {
		return errors.New("--stderr: say --stdout, too")
	}
	for _, f := range []struct {
		path string
		into *string
	}{{t.stdout, &spec.Output}, {t.stderr, &spec.Error}} {
		if f.path == "" {
			continue
		}
		path := f.path
		if !filepath.IsAbs(path) {
			path = spec.Dir + "/" + path
		}
		folder := filepath.Dir(path)
		if info, err := os.Stat(folder); !strings.Contains(folder, "%") && (err != nil || !info.IsDir()) {
			return fmt.Errorf("--stdout and --stderr: %s: there is no such directory", folder)
		}
		*f.into = path
	}
	return nil
}

// parseBegin reads when a job may begin, as Slurm does: an instant, a time of day, now or
// now+ a number of seconds, or of minutes, hours, days or weeks. One that is over is now.
func parseBegin(s string, now time.Time) (time.Time, error) {
	switch s {
	case "now":
		return now, nil
	case "today", "midnight", "noon", "teatime", "tomorrow":
		hour, days := map[string]int{"noon": 12, "teatime": 16}[s], 0
		at := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, time.Local)
		if s != "today" && !at.After(now) {
			days = 1
		}
		return at.AddDate(0, 0, days), nil
	}
	if rest, later := strings.CutPrefix(s, "now+"); later {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		unit, known := map[string]time.Duration{
			"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour,
		}[strings.TrimSuffix(rest[digits:], "s")]
		n, err := strconv.Atoi(rest[:digits])
		if known && err == nil && n < 1<<20 {
			return now.Add(time.Duration(n) * unit), nil
		}
		span, err := parseSpan(rest)
		if err != nil {
			return now, fmt.Errorf("%q: want now+ and a number of seconds, minutes, hours, days or weeks", s)
		}
		return now.Add(span.Duration()), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "15:04:05", "15:04"} {
		at, err := time.ParseInLocation(layout, s, time.Local)
		if err != nil {
			continue
		}
		if at.Year() == 0 { // of today, or of tomorrow
			at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.Local)
			if at.Before(now) {
				at = at.AddDate(0, 0, 1)
			}
		}
		return at, nil
	}
	return now, fmt.Errorf("%q is no instant: want 2006-01-02T15:04:05, 16:00, now+1hour or tomorrow", s)
}

// signalBefore is when a signal is sent whose time is not said, as in Slurm.
const signalBefore = 60

// parseSignal reads [B:]NAME|NUMBER[@SECONDS].
func parseSignal(s string) (*api.Signal, error) {
	out := &api.Signal{}
	text := s
	if flags, rest, found := strings.Cut(text, ":"); found && strings.Trim(flags, "RB") == "" { // R: also of reservations
		out.First, text = strings.Contains(flags, "B"), rest
	}
	name, before, timed := strings.Cut(text, "@")
	number, err := signalNumber(name)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	seconds := int64(signalBefore)
	if timed {
		if seconds, err = strconv.ParseInt(before, 10, 32); err != nil || seconds < 0 || seconds > 65535 {
			return nil, fmt.Errorf("%q: want 0 to 65535 seconds behind @", s)
		}
	}
	out.Number, out.Before = number, api.Seconds(seconds*1_000_000)
	return out, nil
}

// signalNumber reads a signal's name, with or without SIG, or its number.
func signalNumber(name string) (int32, error) {
	if n, err := strconv.ParseInt(name, 10, 32); err == nil && n > 0 && n <= 64 {
		return int32(n), nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")); n > 0 {
		return int32(n), nil
	}
	return 0, fmt.Errorf("%q is no signal: want a name like TERM or USR1, or a number", name)
}
