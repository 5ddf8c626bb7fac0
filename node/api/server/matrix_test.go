package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/member"
	"gridnode/test/realsite"
)

// row is one line of the table of docs/users.md.
type row struct {
	call                                            string
	stranger, visitor, user, other, operator, admin string
}

var line = regexp.MustCompile("(?m)^\\| `((?:GET|POST|DELETE|PUT) [^`]+)` \\| (\\S+) \\| (\\S+) \\| (\\S+) \\| (\\S+) \\| (\\S+) \\| (\\S+) \\|$")

// table reads it.
func table(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("../../../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, row{m[1], m[2], m[3], m[4], m[5], m[6], m[7]})
	}
	if len(rows) < 40 {
		t.Fatalf("saw only %d rows", len(rows))
	}
	return rows
}

// Every handler has a line in the table of the code and in that of the page, and the two say
// the same.
func TestEveryCallHasItsRights(t *testing.T) {
	routes := (&Server{}).routes()
	for pattern := range routes {
		if _, ok := access.Calls[pattern]; !ok {
			t.Errorf("%s has a handler and no line in access.Calls (node/access/call.go): say who may make it, there and in docs/users.md", pattern)
		}
	}
	page := map[string]row{}
	for _, r := range table(t) {
		page[r.call] = r
	}
	for pattern, call := range access.Calls {
		if _, ok := routes[pattern]; !ok {
			t.Errorf("access.Calls has a line for %s, which nothing handles", pattern)
		}
		r, ok := page[pattern]
		said := func(reach access.Reach) string {
			if call.Local && reach == access.Yes {
				return "local"
			}
			return reach.String()
		}
		if want := (row{pattern, "no", said(call.Visitor), said(call.User), r.other, said(call.Operator), said(call.Admin)}); !ok || r != want {
			t.Errorf("docs/users.md has %+v, access.Calls has %+v", r, want)
		}
		if about := call.User == access.Own; about != (r.other == "no" || r.other == "brief") {
			t.Errorf("docs/users.md: %s: %q about a job of another", pattern, r.other)
		}
	}
	for call := range page {
		if _, ok := access.Calls[call]; !ok {
			t.Errorf("docs/users.md has a row for %s, which access.Calls has not", call)
		}
	}
}

// Accounts of the matrix.
const annUID, benUID, operatorUID, adminUID, strangerUID = 710001, 710002, 710003, 710004, 710009

// people makes a site of root's with these accounts.
func people(t *testing.T) *access.People {
	t.Helper()
	p := &access.People{}
	for _, of := range []struct {
		list  *access.List
		items []string
	}{{&p.Users, []string{"710001", "710002"}}, {&p.Operators, []string{"710003"}}, {&p.Admins, []string{"710004"}}} {
		var err error
		if *of.list, err = access.ParseList(of.items); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// door is a way to ask the API as somebody.
type door struct {
	name   string
	remote bool // with tokens
	ask    func(who string, method, path, body string) (status int, answer []byte)
}

// doors are the port, the page, and the socket, if this process may take other accounts.
func doors(t *testing.T, b *apiBench, tokens *access.Tokens) []door {
	remote := httptest.NewTLSServer(b.api.server.Handler)
	t.Cleanup(remote.Close)
	bearer := map[string]string{"no token": "", "wrong token": access.TokenPrefix + "x"}
	for who, of := range map[string]struct {
		account string
		role    access.Role
		age     time.Duration
	}{
		"expired token": {"710004", access.Admin, 2 * time.Hour}, "user": {"710001", access.User, 0}, "other user": {"710002", access.User, 0},
		"operator": {"710003", access.Operator, 0}, "admin": {"710004", access.Admin, 0},
	} {
		text, _, err := tokens.Create(time.Now().Add(-of.age), of.account, of.role, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		bearer[who] = text
	}
	page := httptest.NewTLSServer(b.api.page.through(&pageDoor{hosts: func(string) bool { return true }}))
	t.Cleanup(page.Close)
	here, gone := "here", "gone"
	b.api.porter.welcome = func(_ context.Context, site grid.SiteID) (string, error) {
		if site != grid.SiteID(here) {
			return "", member.ErrStranger
		}
		return here, nil
	}
	bearer["visitor"], _ = b.api.porter.visitors.Create(time.Now(), here, here, time.Hour)
	bearer["visitor of who is no member"], _ = b.api.porter.visitors.Create(time.Now(), gone, gone, time.Hour)
	bearer["visitor who has stayed"], _ = b.api.porter.visitors.Create(time.Now().Add(-2*time.Hour), here, here, time.Hour)
	send := func(client *http.Client, base, token, method, path, body string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if method == "POST" {
			r.Header.Set("Content-Type", "application/json")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return 0, nil
		}
		defer response.Body.Close()
		var text bytes.Buffer
		if strings.Contains(path, "watch") { // it goes on
			some := make([]byte, 64<<10)
			n, _ := response.Body.Read(some)
			text.Write(some[:n])
		} else if _, err := text.ReadFrom(response.Body); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return response.StatusCode, text.Bytes()
	}
	var list []door
	for name, server := range map[string]*httptest.Server{"port": remote, "page": page} {
		client := server.Client()
		list = append(list, door{name, true, func(who, method, path, body string) (int, []byte) {
			return send(client, server.URL, bearer[who], method, path, body)
		}})
	}
	if os.Geteuid() != 0 {
		return list
	}
	socket := filepath.Join(b.shared, "api.sock")
	uids := map[string]int{"no token": strangerUID, "user": annUID, "other user": benUID, "operator": operatorUID, "admin": adminUID}
	clients := map[string]*http.Client{}
	for who, uid := range uids {
		transport := &http.Transport{Dial: func(_, _ string) (net.Conn, error) { return realsite.DialAs(uid, socket) }}
		t.Cleanup(transport.CloseIdleConnections)
		clients[who] = &http.Client{Transport: transport}
	}
	return append(list, door{"socket", false, func(who, method, path, body string) (int, []byte) {
		if clients[who] == nil {
			return http.StatusUnauthorized, nil // there are no tokens at the socket
		}
		return send(clients[who], "http://gridnode", "", method, path, body)
	}})
}

// bodies are what the calls of the matrix send; others send {}. JOB is the user's job.
var bodies = map[string]string{
	"POST /v1/drain":   `{"undo": true}`, // the calls after it want a site that takes work
	"POST /v1/jobs":    `{"jobs":[{"args":["/bin/hold"]}]}`,
	"POST /v1/preview": `{"jobs":[{"args":["/bin/hold"]}]}`,
	"POST /v1/cancel":  `{"ids":["JOB"]}`,
	"POST /v1/hold":    `{"ids":["JOB"]}`,
	"POST /v1/release": `{"ids":["JOB"]}`,
	"POST /v1/requeue": `{"ids":["JOB"]}`,
	"POST /v1/wait":    `{"ids":["JOB"],"timeout":0.01}`,
}

// TestAuthorisation tries every call as everybody, and compares with docs/users.md.
func TestAuthorisation(t *testing.T) {
	tokens, err := access.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := access.OpenTokens(filepath.Join(t.TempDir(), "pages.json"))
	if err != nil {
		t.Fatal(err)
	}
	b := newAPIBenchOf(t, t.TempDir(), Config{People: people(t), Tokens: tokens, Pages: pages, Hosts: func(string) bool { return true }})
	for _, d := range doors(t, b, tokens) {
		t.Run(d.name, func(t *testing.T) {
			for _, r := range table(t) {
				if d.name == "page" && !strings.HasPrefix(r.call[strings.Index(r.call, "/"):], "/v1/") {
					continue // the page answers calls below /v1 only
				}
				for _, who := range []struct{ name, may string }{
					{"no token", r.stranger}, {"wrong token", r.stranger}, {"expired token", r.stranger},
					{"visitor", r.visitor}, {"visitor of who is no member", r.stranger}, {"visitor who has stayed", r.stranger},
					{"user", r.user}, {"other user", r.user}, {"operator", r.operator}, {"admin", r.admin},
				} {
					// A job of the user's for each attempt, as some end it.
					status, answer := d.ask("user", "POST", "/v1/jobs?wait=stored", bodies["POST /v1/jobs"])
					var reply api.SubmitReply
					if err := json.Unmarshal(answer, &reply); err != nil || status != http.StatusOK {
						t.Fatalf("submit: %d %s", status, answer)
					}
					job := reply.Jobs[0].ID
					method, path, _ := strings.Cut(r.call, " ")
					if r.call == "GET /v1/watch" {
						path += "?id=" + job // one line, and then it waits
					}
					body := bodies[r.call]
					if body == "" && method == "POST" {
						body = "{}"
					}
					status, answer = d.ask(who.name, method, strings.Replace(path, "{id}", job, 1), strings.Replace(body, "JOB", job, 1))
					checkAnswer(t, d, &r, who.name, who.may, job, status, answer)
					if status, answer := d.ask("operator", "POST", "/v1/cancel", `{"ids":["`+job+`"]}`); status != http.StatusOK {
						t.Fatalf("cancel: %d %s", status, answer)
					}
				}
			}
		})
	}
}

// checkAnswer compares what somebody got with what the page says.
func checkAnswer(t *testing.T, d door, r *row, who, may, job string, status int, answer []byte) {
	t.Helper()
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	want := may == "no"
	switch {
	case who == "visitor" && d.name != "page": // their keys are good for the page only
		want = true
	case may == "local":
		want = d.remote
	case r.call == "GET /v1/users" && may == "own": // everybody asks about himself; of another there is nothing
		var reply api.UsersReply
		own := map[string]string{"user": "710001", "other user": "710002"}[who]
		if json.Unmarshal(answer, &reply) != nil || len(reply.Users) != 1 || reply.Users[0].User != own {
			t.Errorf("%s as %s shows %s", r.call, who, answer)
		}
	case may == "own" && who != "user":
		want = r.other == "no"
	}
	if refused != want {
		t.Errorf("%s as %s, where the page says %q: %d %s", r.call, who, may, status, answer)
	}
	if refused {
		var failure api.Error
		if json.Unmarshal(answer, &failure) != nil && len(answer) > 0 || failure.Code == api.CodeInternal {
			t.Errorf("%s as %s: %d %s", r.call, who, status, answer)
		}
		return
	}
	seen, listing := shown(r.call, answer, job)
	if brief := who == "other user"; listing && (seen.ID != job || seen.Brief != brief || (len(seen.Args) == 0) != brief || (seen.User == "") != brief) {
		t.Errorf("%s as %s shows %+v", r.call, who, seen)
	}
}

// shown returns what an answer says about a job, if the call lists jobs.
func shown(call string, answer []byte, id string) (seen api.Job, listing bool) {
	var list api.JobsReply
	switch call {
	case "GET /v1/jobs/{id}":
		_ = json.Unmarshal(answer, &seen)
		return seen, true
	case "GET /v1/jobs":
		_ = json.Unmarshal(answer, &list)
	case "GET /v1/watch":
		for line := range bytes.Lines(answer) {
			var j api.Job
			_ = json.Unmarshal(line, &j)
			list.Jobs = append(list.Jobs, j)
		}
	default:
		return seen, false
	}
	for _, j := range list.Jobs {
		if j.ID == id {
			seen = j
		}
	}
	return seen, true
}
