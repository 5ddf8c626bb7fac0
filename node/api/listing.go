package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// ListJobs calls see for each job of a listing, in its order, as it comes, until see returns an
// error, which it returns: neither side holds a long listing as a whole. filter takes the
// parameters of GET /v1/jobs. It returns why the scheduler of the site's processors does not
// answer, empty if it does. An error may come when jobs have been seen already.
func ListJobs(ctx context.Context, c *Client, filter url.Values, see func(*Job) error) (trouble string, err error) {
	response, err := c.do(ctx, http.MethodGet, "/v1/jobs?"+filter.Encode(), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	rest, err := readJobs(ctx, response, see)
	return rest.Trouble, err
}

// ActOnJobs does something to jobs, or waits for them: act is cancel, hold, release, requeue or
// wait. It calls see for each of them as it is then, as ListJobs does, and returns whether the
// time-out of wait has passed before all were over.
func ActOnJobs(ctx context.Context, c *Client, act string, jobs IDsRequest, see func(*Job) error) (timedOut bool, err error) {
	body, err := json.Marshal(jobs)
	if err != nil {
		return false, fmt.Errorf("encode request: %w", err)
	}
	response, err := c.do(ctx, http.MethodPost, "/v1/"+act, body)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	rest, err := readJobs(ctx, response, see)
	return rest.TimedOut, err
}

// readJobs reads an answer, and returns what it says besides the jobs.
func readJobs(ctx context.Context, response *http.Response, see func(*Job) error) (rest JobsReply, err error) {
	decoder := json.NewDecoder(response.Body)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return rest, broken(ctx, err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return rest, broken(ctx, err)
		}
		switch key {
		case "jobs":
			var failure error
			failure, err = eachJob(decoder, see)
			if failure != nil {
				return rest, failure
			}
		case "trouble":
			err = decoder.Decode(&rest.Trouble)
		case "timedOut":
			err = decoder.Decode(&rest.TimedOut)
		default: // of a daemon that says more
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return rest, broken(ctx, err)
		}
	}
	if err := expect(decoder, json.Delim('}')); err != nil {
		return rest, broken(ctx, err)
	}
	return rest, nil
}

// eachJob reads the jobs of a listing. failure is what see has returned.
func eachJob(decoder *json.Decoder, see func(*Job) error) (failure, err error) {
	if err := expect(decoder, json.Delim('[')); err != nil {
		return nil, err
	}
	for decoder.More() {
		var job Job
		if err := decoder.Decode(&job); err != nil {
			return nil, err
		}
		if failure := see(&job); failure != nil {
			return failure, nil
		}
	}
	return nil, expect(decoder, json.Delim(']'))
}

// expect reads one token.
func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v, want %v", token, want)
	}
	return err
}
