package server

import (
	"net/http"
	"strings"
	"testing"
)

// A page that somebody looks at cannot have his browser act for him.
func TestWebPagesAreNotAnswered(t *testing.T) {
	b := newAPIBench(t, t.TempDir())
	kind := map[string]string{"Content-Type": "application/json"}
	for _, tt := range []struct {
		name, method, host string
		headers            map[string]string
		status             int
	}{
		{"a program", "GET", "gridnode", nil, 200},
		{"a program at localhost", "GET", "localhost:80", nil, 200},
		{"a program that submits", "POST", "gridnode", kind, 200},
		{"an address that is typed in", "GET", "localhost", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"a page of the same site", "GET", "gridnode", map[string]string{"Sec-Fetch-Site": "same-origin"}, 403},
		{"a page elsewhere", "GET", "gridnode", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a page of an old browser", "POST", "gridnode", map[string]string{"Origin": "https://evil.example", "Content-Type": "application/json"}, 403},
		{"a page without origin", "POST", "gridnode", map[string]string{"Origin": "null", "Content-Type": "application/json"}, 403},
		{"a name led here", "GET", "evil.example", nil, 403},
		{"a name that begins like ours", "GET", "localhost.evil.example", nil, 403},
		{"a form", "POST", "gridnode", map[string]string{"Content-Type": "text/plain"}, 400},
		{"a form of fields", "POST", "gridnode", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 400},
		{"no type at all", "POST", "gridnode", nil, 400},
		{"what asks first", "OPTIONS", "gridnode", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, body := "/v1/node", ""
			if tt.method == "POST" {
				path, body = "/v1/jobs?wait=stored", `{"jobs":[{"args":["exit","0"]}]}`
			}
			r, err := http.NewRequestWithContext(t.Context(), tt.method, "http://gridnode"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			for k, v := range tt.headers {
				r.Header.Set(k, v)
			}
			response, err := b.client.HTTP().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != tt.status {
				t.Errorf("status %d, want %d", response.StatusCode, tt.status)
			}
			for key := range response.Header {
				if strings.HasPrefix(key, "Access-Control-") {
					t.Errorf("the answer has %s", key)
				}
			}
		})
	}
	if reply, err := b.client.Jobs(t.Context(), nil); err != nil || len(reply.Jobs) != 1 {
		t.Errorf("jobs: %+v, %v, want that of the program only", reply, err)
	}
}
