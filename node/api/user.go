package api

import "context"

// User is what a user of this site has, may have and has spent.
type User struct {
	User       string `json:"user"`
	Jobs       int64  `json:"jobs"`       // that wait or run
	Running    int64  `json:"running"`    // of them that are placed or run
	Processors int64  `json:"processors"` // of those
	MayCost    Amount `json:"mayCost"`    // what they may cost at most
	Spent      Amount `json:"spent"`      // within the span of its limit; without one within 30 days
	Total      Amount `json:"total"`      // ever

	Lately Seconds `json:"lately"` // processor time on this site's own processors, as it counts for shares
	Share  int64   `json:"share"`  // beside those of others

	MaxJobs       int64   `json:"maxJobs,omitempty"`       // none: no bound of its own, here and below
	MaxRunning    int64   `json:"maxRunning,omitempty"`    //
	MaxProcessors int64   `json:"maxProcessors,omitempty"` //
	MaxSpend      *Amount `json:"maxSpend,omitempty"`      // credits in SpendSpan
	SpendSpan     Seconds `json:"spendSpan,omitempty"`
}

// UsersReply answers GET /v1/users: a user hears of himself only.
type UsersReply struct {
	Users []User `json:"users"`
}

// Users returns what users of a site have, by name.
func Users(ctx context.Context, c *Client) (*UsersReply, error) {
	return get[UsersReply](ctx, c, "/v1/users")
}
