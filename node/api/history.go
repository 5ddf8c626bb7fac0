package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// HistoryLine is one line of the job log: a job that has ended, or a lease that was lent.
type HistoryLine struct {
	Seq    uint64 `json:"seq"`             // rises by one from line to line
	Kind   string `json:"kind"`            // "job" or "lease"
	Origin string `json:"origin"`          // "own", or "foreign": it was here for another site
	Brief  bool   `json:"brief,omitempty"` // of another user: no more of it is shown

	ID     string `json:"id"`               // of the job; the number of the lease
	Epoch  uint32 `json:"epoch,omitempty"`  // of its last execution
	Number uint64 `json:"number,omitempty"` // of the job at its home
	Name   string `json:"name,omitempty"`
	User   string `json:"user,omitempty"` // at its home, as that says

	Home         string   `json:"home,omitempty"`     // ID of the site it was submitted to, or lent to
	HomeName     string   `json:"homeName,omitempty"` // the same for people
	Site         string   `json:"site,omitempty"`     // ID of the site where it was last
	SiteName     string   `json:"siteName,omitempty"`
	Organisation string   `json:"organisation,omitempty"` // of the other site of the two
	Sites        []string `json:"sites,omitempty"`        // where its parts were, if it ran at several

	Processors int64   `json:"processors"`
	GPUs       int64   `json:"gpus,omitempty"`
	Submitted  Instant `json:"submitted,omitzero"`
	Start      Instant `json:"start,omitzero"` // none: it never began
	End        Instant `json:"end"`
	Used       Seconds `json:"used"`  // processor time
	Price      Amount  `json:"price"` // credits per processor-hour
	Cost       Amount  `json:"cost"`
	Bank       string  `json:"bank,omitempty"`     // ID of the site that paid it
	BankName   string  `json:"bankName,omitempty"` // the same for people

	State    string `json:"state"` // done failed cancelled refused; returned to its home; of a lease: ended
	ExitCode int32  `json:"exitCode"`
	Reason   string `json:"reason,omitempty"` // why it ended, if not by itself
}

// History calls see for each line of the job log that filter chooses, oldest first, until see
// returns an error, which it returns.
func (c *Client) History(ctx context.Context, filter url.Values, see func(HistoryLine) error) error {
	response, err := c.do(ctx, http.MethodGet, "/v1/history?"+filter.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for decoder := json.NewDecoder(response.Body); ; {
		var line HistoryLine
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return cutShort(response)
		} else if err != nil {
			return broken(ctx, err)
		}
		if err := see(line); err != nil {
			return err
		}
	}
}
