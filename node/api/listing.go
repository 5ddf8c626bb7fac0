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
	decoder := json.NewDecoder(response.Body)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return "", broken(ctx, err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return trouble, broken(ctx, err)
		}
		switch key {
		case "jobs":
			var failure error
			failure, err = eachJob(decoder, see)
			if failure != nil {
				return trouble, failure
			}
		case "trouble":
			err = decoder.Decode(&trouble)
		default: // of a daemon that says more
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return trouble, broken(ctx, err)
		}
	}
	if err := expect(decoder, json.Delim('}')); err != nil {
		return trouble, broken(ctx, err)
	}
	return trouble, nil
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
