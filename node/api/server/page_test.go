package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/access"
	"gridnode/node/api"
)

// openPage returns the address of the page and the key that is in it.
func openPage(t *testing.T) (b *apiBench, base, key string) {
	t.Helper()
	home := t.TempDir()
	pages, err := access.OpenTokens(filepath.Join(home, "pages.json"))
	if err != nil {
		t.Fatal(err)
	}
	b = newAPIBenchOf(t, home, Config{Pages: pages})
	reply, err := b.client.OpenPage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	base, key, found := strings.Cut(reply.URL, "/#key=")
	if !found || !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Fatalf("page at %s", reply.URL)
	}
	return b, base, key
}

// What a page may ask is asked by this server's own page only, with its key.
func TestPageAsks(t *testing.T) {
	_, base, key := openPage(t)
	own := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": "Bearer " + key, "Sec-Fetch-Site": "same-origin", "Origin": base, "Content-Type": "application/json"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, tt := range []struct {
		name, method, path, host string
		headers                  map[string]string
		status                   int
	}{
		{"the page", "GET", "/v1/node", "", own(), 200},
		{"the page submits", "POST", "/v1/jobs?wait=stored", "", own(), 200},
		{"its files", "GET", "/", "", nil, 200},
		{"without a key", "GET", "/v1/node", "", own("Authorization", ""), 401},
		{"with a wrong key", "GET", "/v1/node", "", own("Authorization", "Bearer "+access.TokenPrefix+"x"), 401},
		{"with the key in a cookie", "GET", "/v1/node", "", own("Authorization", "", "Cookie", "key="+key), 401},
		{"another page", "GET", "/v1/node", "", own("Sec-Fetch-Site", "cross-site"), 403},
		{"a page of another port", "GET", "/v1/node", "", own("Sec-Fetch-Site", "same-site"), 403},
		{"another origin", "POST", "/v1/jobs?wait=stored", "", own("Origin", "http://127.0.0.1:1"), 403},
		{"an origin that is none", "POST", "/v1/jobs?wait=stored", "", own("Origin", "null", "Sec-Fetch-Site", "cross-site"), 403},
		{"a name led here", "GET", "/v1/node", "evil.example", own("Origin", "http://evil.example"), 403},
		{"files by a name led here", "GET", "/", "evil.example", nil, 421},
		{"a form", "POST", "/v1/jobs?wait=stored", "", own("Content-Type", "text/plain"), 400},
		{"what only the socket may", "GET", "/v1/tokens", "", own(), 403},
		{"another page for itself", "POST", "/v1/pages", "", own(), 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := ""
			if tt.method == "POST" {
				body = `{"jobs":[{"args":["exit","0"]}]}`
			}
			r, err := http.NewRequestWithContext(t.Context(), tt.method, base+tt.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			for k, v := range tt.headers {
				if v != "" {
					r.Header.Set(k, v)
				}
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != tt.status {
				text, _ := io.ReadAll(response.Body)
				t.Errorf("status %d, want %d: %s", response.StatusCode, tt.status, text)
			}
			if tt.path == "/" && tt.status == 200 && !strings.Contains(response.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("policy %q", response.Header.Get("Content-Security-Policy"))
			}
		})
	}
}

// A key of the page is one of the page only.
func TestPageKeyIsNoToken(t *testing.T) {
	tokens, err := access.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	b, _, key := openPage(t)
	b.api.cfg.Tokens = tokens
	if _, err := api.NewRemoteClient("http://"+loopback(t, b), key).Jobs(t.Context(), nil); err == nil {
		t.Error("a key of the page is good at the port of tokens")
	}
}

// loopback serves the API as the port of tokens does, without TLS.
func loopback(t *testing.T, b *apiBench) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.api.Serve(listener) }()
	return listener.Addr().String()
}

// Where nothing can be changed every request that would is refused, with why, and all others
// are answered.
func TestReadOnly(t *testing.T) {
	b := newAPIBenchOf(t, t.TempDir(), Config{ReadOnly: "this is an exhibit"})
	if _, err := b.client.Node(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.client.Preview(t.Context(), api.JobSpec{Args: []string{"true"}}); err != nil {
		t.Errorf("a preview: %v", err)
	}
	for pattern := range Routes() {
		path, change := strings.CutPrefix(pattern, "POST ")
		if !change || path == "/v1/preview" {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gridnode"+strings.ReplaceAll(path, "{id}", "x"), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		browser := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", filepath.Join(b.home, "api.sock"))
		}}}
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusConflict || !strings.Contains(string(text), "this is an exhibit") {
			t.Errorf("%s: %s %s", pattern, answer.Status, text)
		}
	}
}
