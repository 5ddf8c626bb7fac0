package realsite

import (
	"context"
	"errors"
	"time"

	"gridnode/node/api"
)

// Until asks, with pauses, until the answer is yes. It returns the error of the last answer if ctx
// ends before.
func Until(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

const seesPause = 50 * time.Millisecond

// Sees returns once a site's directory lists so many sites.
func Sees(ctx context.Context, site *api.Client, n int) error {
	return Until(ctx, seesPause, func() (bool, error) {
		reply, err := site.Quotes(ctx, nil)
		return err == nil && len(reply.Sites) >= n, err
	})
}
