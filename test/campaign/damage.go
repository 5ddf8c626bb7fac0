package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gridnode/node/api"
	"gridnode/test/realsite"
)

// damages flips, cuts, zeroes and deletes what a site has stored while its daemon is down. Then it
// says so and refuses, or every answer about its jobs is as it was, or the answer is that it has no answer.
func damages(ctx context.Context, p *plan) (*outcome, error) {
	w, err := newWorld(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	for range 30 {
		if err := w.submit(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	s := w.sites[w.random.IntN(len(w.sites))]
	before, err := w.answers(ctx, s)
	if err != nil {
		return nil, err
	}
	w.close()
	pristine := filepath.Join(p.dir, "pristine")
	if out, err := exec.CommandContext(ctx, "cp", "-a", s.home, pristine).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for w.out.Strikes < p.strikes && ctx.Err() == nil {
		if err := os.RemoveAll(s.home); err != nil {
			return nil, err
		}
		if out, err := exec.CommandContext(ctx, "cp", "-a", pristine, s.home).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		what, err := spoil(w.random, s.home)
		if err != nil {
			return nil, err
		}
		w.out.Strikes++
		if err := w.judgeDamage(ctx, s, what, before); err != nil {
			return nil, err
		}
	}
	return w.out, ctx.Err()
}

// judgeDamage starts the daemon on what is left and compares its answers with those before.
func (w *world) judgeDamage(ctx context.Context, s *site, what string, before map[string]string) error {
	defer w.close()
	err := s.start()
	if said := new(realsite.Refusal); errors.As(err, &said) {
		if strings.TrimSpace(said.Log) == "" {
			w.out.breaks("silent: %s: the daemon does not start and does not say why: %v", what, err)
		}
		w.out.note("it did not start and said so")
		return nil
	}
	if err != nil {
		return err
	}
	after, err := w.answers(ctx, s)
	if !s.alive() {
		w.out.note("it stopped and said so")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	said := false
	for key, want := range before {
		switch got := after[key]; {
		case got == want:
		case strings.HasPrefix(key, "job ") && lossText.ReplaceAllString(got, "") == want:
			said = true
		case strings.HasPrefix(got, unanswered):
			said = true
		default:
			same := 0
			for same < min(len(want), len(got)) && want[same] == got[same] {
				same++
			}
			w.out.breaks("silent: %s: %s was %.150q behind %d bytes, and is %.150q", what, key, want[same:], same, got[same:])
		}
	}
	if said {
		w.out.note("a part of it was said to be lost")
	} else {
		w.out.note("nothing was lost")
	}
	return nil
}

// lossText is how a job says that some of its output is lost.
var lossText = regexp.MustCompile(`"(missing":[0-9]+|damaged":\[[^]]*\]),`)

// unanswered begins an answer that is an error.
const unanswered = "error: "

// answers returns what a site says about everything it was asked to keep, by question.
func (w *world) answers(ctx context.Context, s *site) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all := map[string]string{}
	keep := func(key string, text []byte, err error) {
		if err != nil {
			text = []byte(unanswered + err.Error())
		}
		all[key] = string(text)
	}
	for _, r := range w.jobs {
		if r.Home != s.name {
			continue
		}
		reply, err := s.client.Jobs(ctx, url.Values{"id": {r.ID}, "all": {"true"}})
		var text []byte
		switch e := new(api.Error); {
		case errors.As(err, &e) && e.Code == api.CodeNotFound, err == nil && len(reply.Jobs) == 0:
			text, err = []byte("a job that it does not know"), nil
		case err == nil:
			text, err = json.Marshal(stable(reply.Jobs[0]))
		}
		keep("job "+r.ID, text, err)
		var output bytes.Buffer
		err = s.client.Logs(ctx, r.ID, nil, &output)
		keep("output of "+r.ID, output.Bytes(), err)
		if r.Copied && r.State == "done" {
			var file bytes.Buffer
			err = s.client.JobFile(ctx, r.ID, "output", &file)
			keep("file of "+r.ID, []byte(digest(file.Bytes())), err)
		}
	}
	if s == w.sites[0] {
		reply, err := s.client.BankBalance(ctx, url.Values{"all": {"true"}})
		var text []byte
		if err == nil {
			reply.Paid, reply.Earned, reply.Unpaid, reply.Refused = 0, 0, 0, nil // since the start
			for i := range reply.Accounts {
				reply.Accounts[i].BankName, reply.Accounts[i].Name = "", "" // of others: not known at once
			}
			text, err = json.Marshal(reply)
		}
		keep("accounts", text, err)
	}
	return all, ctx.Err()
}

// stable is what does not change about a job that is over.
func stable(j api.Job) api.Job {
	j.Messages, j.SiteName = 0, "" // names of others are not known at once
	for i := range j.Components {
		j.Components[i].SiteName = ""
	}
	return j
}

// spoil damages one of the files below a folder, and says how.
func spoil(random *rand.Rand, home string) (string, error) {
	var files []string
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !settled[d.Name()] {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no files in %s: %w", home, err)
	}
	path := files[random.IntN(len(files))]
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name, _ := filepath.Rel(home, path)
	how := random.IntN(4)
	if len(text) == 0 {
		how = 3
	}
	if how == 3 {
		return "deleted " + name, os.Remove(path)
	}
	at := random.IntN(len(text))
	switch how {
	case 0:
		text[at] ^= 1 << random.IntN(8)
		name = fmt.Sprintf("flipped a bit of byte %d of %s", at, name)
	case 1:
		text = text[:at]
		name = fmt.Sprintf("cut %s to %d bytes", name, at)
	case 2:
		n := min(len(text)-at, 1+random.IntN(4096))
		clear(text[at : at+n])
		name = fmt.Sprintf("zeroed %d bytes at %d of %s", n, at, name)
	}
	return name, os.WriteFile(path, text, 0o600)
}

// settled are files that the owner writes, which nothing but the owner knows: their damage changes what
// the owner wants. The log of the watcher says what was, to people.
var settled = map[string]bool{"config.yaml": true, "shim.log": true}
