//go:build !client

package main

import (
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/metrics"
)

// doors are the ways to the daemon besides the socket in its home.
type doors struct {
	socket string // path; empty: none
	group  string // of the socket; empty: the daemon's
	mode   fs.FileMode

	listen           string // host and port of HTTPS; empty: none
	page             string // host and port of the page; empty: a free port of this machine when it is asked for
	visits           bool   // people of other members look at it
	certificate, key string // paths

	scratch string // path; empty: one of its own
	metrics string // host and port for monitoring on this machine; empty: none
}

// userSettings are the keys about who may use the daemon, and how he gets to it.
var userSettings = []setting{
	{key: "api.socket", value: "", usage: "socket for other accounts of this machine, as an absolute path such as /run/gridnode/api.sock; empty: none",
		set: func(s *settings, v string) (err error) { s.doors.socket, err = absolutePath(v); return err }},
	{key: "api.group", value: "", usage: "group that may use that socket, by name or number; empty: the daemon's own",
		set: func(s *settings, v string) (err error) {
			if s.doors.group = v; v != "" {
				_, err = access.Machine.Group(v)
			}
			return err
		}},
	{key: "api.mode", value: "0660", usage: "mode of that socket: 0600 to 0666, with 0666 for every account of the machine; what each may do is by its role",
		set: func(s *settings, v string) error {
			mode, err := strconv.ParseUint(v, 8, 16)
			if err != nil || mode&^0o666 != 0 || mode&0o600 != 0o600 {
				return fmt.Errorf("%q: want 0600, 0660 or 0666", v)
			}
			s.doors.mode = fs.FileMode(mode)
			return nil
		}},
	{key: "api.listen", value: "", usage: "address and port for those who come with a token, over TLS, such as 0.0.0.0:7532; empty: none",
		set: func(s *settings, v string) (err error) { s.doors.listen, err = addressAndPort(v); return err }},
	{key: "web.listen", value: "", usage: "address and port of the page, such as 127.0.0.1:7533; other than on a loopback address it takes api.certificate and api.key; empty: a free port of this machine once 'gridnode web' asks for the page",
		set: func(s *settings, v string) (err error) { s.doors.page, err = addressAndPort(v); return err }},
	{key: "web.members", value: "deny", usage: "people of other members look at the page, as visitors who can change nothing: deny or allow; takes web.listen at another address than loopback",
		set: oneOf(permissions, func(s *settings) *bool { return &s.doors.visits })},
	{key: "api.certificate", value: "", usage: "file of the certificate for api.listen, and those above it, in PEM; an absolute path",
		set: func(s *settings, v string) (err error) { s.doors.certificate, err = absolutePath(v); return err }},
	{key: "api.key", value: "", usage: "file of its key, in PEM; an absolute path",
		set: func(s *settings, v string) (err error) { s.doors.key, err = absolutePath(v); return err }},
	{key: "metrics.listen", value: "", usage: "address and port of this machine at which monitoring is answered without a token, such as 127.0.0.1:7533; empty: none",
		set: func(s *settings, v string) error {
			if s.doors.metrics = v; v == "" {
				return nil
			}
			return metrics.CheckLoopback(v)
		}},
	{key: "users.admins", value: "", list: true, usage: "accounts that may do everything, besides root and the daemon's own: names, @GROUP, or *",
		set: func(s *settings, v string) (err error) { s.people.Admins, err = accounts(v); return err }},
	{key: "users.operators", value: "", list: true, usage: "accounts that see all jobs and may end any: names, @GROUP, or *",
		set: func(s *settings, v string) (err error) { s.people.Operators, err = accounts(v); return err }},
	{key: "users.users", value: "", list: true, usage: "accounts that may submit jobs: names, @GROUP, or *",
		set: func(s *settings, v string) (err error) { s.people.Users, err = accounts(v); return err }},
	{key: "users.see", value: "brief", usage: "what users see of others' jobs: brief (that something runs), nothing, or all (but output)",
		set: func(s *settings, v string) (err error) { s.people.See, err = access.ParseSight(v); return err }},
	{key: "users.root", value: "deny", usage: "jobs that root submits, which run as root: deny or allow",
		set: oneOf(permissions, func(s *settings) *bool { return &s.people.Root })},
	{key: "users.half-life", value: "0", usage: "time after which a user's use of processors counts half for the order of the queue, 1h to 366d, such as 7d; 0: the queue is in order of submission",
		set: func(s *settings, v string) (err error) {
			if s.quotas.HalfLife = 0; v != "0" {
				s.quotas.HalfLife, err = spanBetween(v, grid.Hour, 366*grid.Day)
			}
			return err
		}},
	{key: "users.scratch", value: "", usage: "where a daemon of root's makes the scratch directories of its users' jobs, as an absolute path; empty: a directory in /var/tmp",
		set: func(s *settings, v string) (err error) { s.doors.scratch, err = absolutePath(v); return err }},
}

// accounts reads a list of accounts and groups.
func accounts(v string) (access.List, error) {
	var items []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return access.ParseList(items)
}

// addressAndPort reads where to listen, or nothing.
func addressAndPort(v string) (string, error) {
	if v == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(v)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host != "" && net.ParseIP(host) == nil {
		return "", fmt.Errorf("%q: want ADDRESS:PORT", v)
	}
	return v, nil
}

// pageIsOpen reports whether the page listens elsewhere than on a loopback address.
func (d *doors) pageIsOpen() bool {
	host, _, _ := net.SplitHostPort(d.page)
	return d.page != "" && !net.ParseIP(host).IsLoopback()
}

// absolutePath reads a path, or nothing.
func absolutePath(v string) (string, error) {
	if v != "" && (!filepath.IsAbs(v) || v != filepath.Clean(v)) {
		return "", fmt.Errorf("%q: want an absolute path", v)
	}
	return v, nil
}

// checkDoors returns an error if what is said about ways to the daemon does not fit together.
func (s *settings) checkDoors() error {
	if s.doors.listen != "" && (s.doors.certificate == "" || s.doors.key == "") {
		return fmt.Errorf("api.listen: it is for TLS only: name the files of a certificate and its key, api.certificate and api.key")
	}
	if s.doors.pageIsOpen() && (s.doors.certificate == "" || s.doors.key == "") {
		return fmt.Errorf("web.listen: %s is no loopback address, so it is for TLS only: name the files of a certificate and its key, api.certificate and api.key", s.doors.page)
	}
	if s.doors.visits && !s.doors.pageIsOpen() {
		return fmt.Errorf("web.members: others cannot reach the page: set web.listen to an address that is no loopback address")
	}
	return nil
}
