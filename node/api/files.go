package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// JobFiles is what a job brings along and what of it is brought home.
type JobFiles struct {
	Tree  string   `json:"tree,omitempty"`  // digest of a tree that was handed over before
	Size  int64    `json:"size,omitempty"`  // bytes of its files; of answers only
	Count int64    `json:"count,omitempty"` // files in it; of answers only
	Stdin string   `json:"stdin,omitempty"` // name in it of the job's standard input
	Out   []string `json:"out,omitempty"`   // patterns of names that are brought home; default: what is new or changed
	Dir   string   `json:"dir,omitempty"`   // absolute path of where they are brought to; default: the job's working directory
	Drop  bool     `json:"drop,omitempty"`  // nothing is brought home
}

// ContentRequest is the body of POST /v1/content/missing.
type ContentRequest struct {
	Chunks []string `json:"chunks"` // digests, at most 100 000
}

// ContentReply answers it, and POST /v1/content.
type ContentReply struct {
	Chunks []string `json:"chunks"`         // those that are not here; the one that was handed over
	Most   int64    `json:"most,omitempty"` // bytes that one job may bring along, of those that are not here
}

// JobFilesReply answers GET /v1/jobs/{id}/files.
type JobFilesReply struct {
	ID    string    `json:"id"`
	State string    `json:"state"`           // running coming none brought kept failed
	Dir   string    `json:"dir,omitempty"`   // where they were brought to, or should have been
	Count int64     `json:"count"`           // files that the job has left
	Size  int64     `json:"size"`            // bytes of them
	Left  int64     `json:"left,omitempty"`  // files that were left out
	Why   string    `json:"why,omitempty"`   // the first of them and the reason, or what went wrong
	Files []JobFile `json:"files,omitempty"` // empty while they are not here, and when they are not kept any more
}

// JobFile is one of them.
type JobFile struct {
	Name   string  `json:"name"`
	Bytes  []byte  `json:"bytes,omitempty"` // of a name that is not UTF-8: base64
	Kind   string  `json:"kind"`            // file folder link
	Size   int64   `json:"size"`
	Time   Instant `json:"time,omitzero"`    // last change
	Mode   uint32  `json:"mode,omitempty"`   // permissions
	Target string  `json:"target,omitempty"` // of a link
}

// Path returns the name as it is in the file system.
func (f *JobFile) Path() string {
	if f.Bytes != nil {
		return string(f.Bytes)
	}
	return f.Name
}

// MissingContent tells which chunks the daemon does not have.
func (c *Client) MissingContent(ctx context.Context, digests []string) (*ContentReply, error) {
	return post[ContentReply](ctx, c, "/v1/content/missing", ContentRequest{digests})
}

// PutContent hands over a chunk.
func (c *Client) PutContent(ctx context.Context, chunk []byte) (*ContentReply, error) {
	return call[ContentReply](ctx, c, http.MethodPost, "/v1/content", chunk)
}

// PutTree hands over a tree whose chunks the daemon has.
func (c *Client) PutTree(ctx context.Context, tree []byte) (*JobFiles, error) {
	return call[JobFiles](ctx, c, http.MethodPost, "/v1/trees", tree)
}

// JobFiles tells what has become of the files that a job has left; with wait, once that is
// settled.
func (c *Client) JobFiles(ctx context.Context, id string, wait bool) (*JobFilesReply, error) {
	query := ""
	if wait {
		query = "?wait=true"
	}
	return get[JobFilesReply](ctx, c, "/v1/jobs/"+url.PathEscape(id)+"/files"+query)
}

// JobFile copies one file that a job has left to w.
func (c *Client) JobFile(ctx context.Context, id, name string, w io.Writer) error {
	response, err := c.do(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/file?"+url.Values{"name": {name}}.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if n, err := io.Copy(w, response.Body); err != nil || response.ContentLength >= 0 && n != response.ContentLength {
		return broken(ctx, err)
	}
	return nil
}
