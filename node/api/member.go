package api

// Member is a site of the federation as its certificate says.
type Member struct {
	Site         string  `json:"site"` // its ID
	Name         string  `json:"name"`
	Organisation string  `json:"organisation"`
	Rights       string  `json:"rights"` // words, with commas between them
	Issuer       string  `json:"issuer"` // who certified it
	Issued       Instant `json:"issued,omitzero"`
	Expires      Instant `json:"expires,omitzero"`
	Self         bool    `json:"self"` // it is this site
}

// MembersReply answers GET /v1/members.
type MembersReply struct {
	Federation string   `json:"federation"`
	Open       bool     `json:"open"` // whoever knows an address takes part
	Members    []Member `json:"members"`
}

// InviteRequest is the body of POST /v1/members/invite.
type InviteRequest struct {
	Name         string  `json:"name,omitempty"` // that the site will have; empty: it says
	Organisation string  `json:"organisation,omitempty"`
	Rights       string  `json:"rights,omitempty"`  // empty: usual
	Expires      Seconds `json:"expires,omitempty"` // the invitation is good for so long; 0: a day
	Valid        Seconds `json:"valid,omitempty"`   // and the certificate; 0: ninety days
}

// InviteReply answers it.
type InviteReply struct {
	Token   string  `json:"token"` // what the invited site is given
	Expires Instant `json:"expires"`
}

// RenewReply answers POST /v1/members/renew.
type RenewReply struct {
	Expires Instant `json:"expires"` // of the new certificate
}

// RevokeRequest is the body of POST /v1/members/revoke.
type RevokeRequest struct {
	Site string `json:"site"` // name or ID
}

// RevokeReply answers it.
type RevokeReply struct {
	Site string `json:"site"` // its ID
}
