package api

// TokenRequest is the body of POST /v1/tokens.
type TokenRequest struct {
	User    string  `json:"user"`              // account that its bearer speaks as
	Role    string  `json:"role"`              // user, operator or admin
	Expires Seconds `json:"expires,omitempty"` // from now; left out: thirty days
}

// Token is a token as admins see it.
type Token struct {
	ID      string  `json:"id"`
	User    string  `json:"user"`
	Role    string  `json:"role"`
	Created Instant `json:"created"`
	Expires Instant `json:"expires"`
	Expired bool    `json:"expired"`
	Secret  string  `json:"token,omitempty"` // its text, in the answer to POST /v1/tokens only
}

// TokensReply answers GET /v1/tokens.
type TokensReply struct {
	Tokens []Token `json:"tokens"` // the oldest first
}

// TokenRevokeRequest is the body of POST /v1/tokens/revoke.
type TokenRevokeRequest struct {
	ID string `json:"id"`
}
