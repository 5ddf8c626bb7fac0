package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"gridnode/test/realsite"
)

// local is the flood of users of the site itself.
const local = "submit"

const (
	firstUser       = 710001 // number of the first account that floods
	userConnections = 8      // of each
	userJobs        = 20     // of each request
)

// floodSubmissions submits jobs, which are held, through the socket.
func floodSubmissions(ctx context.Context, t *talker, sent *atomic.Int64) error {
	dial := func(context.Context, string, string) (net.Conn, error) { return realsite.DialAs(t.user, t.socket) }
	client := &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: userConnections}}
	defer client.CloseIdleConnections()
	job := map[string]any{"args": []string{"true"}, "hold": true}
	jobs := make([]any, userJobs)
	for i := range jobs {
		jobs[i] = job
	}
	body, err := json.Marshal(map[string]any{"jobs": jobs})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for range userConnections {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := submit(ctx, client, string(body)); err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
				sent.Add(userJobs)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// submit makes one request. That the site takes no more jobs is an answer like any other.
func submit(ctx context.Context, client *http.Client, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gridnode/v1/jobs?wait=stored", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	switch answer.StatusCode {
	case http.StatusOK, http.StatusConflict, http.StatusTooManyRequests:
		return err
	}
	return fmt.Errorf("the site answers %s: %.200s", answer.Status, text)
}
