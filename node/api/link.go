package api

// SiteLink is a link of the hierarchy of delegation as users see it.
type SiteLink struct {
	Site     string  `json:"site"`     // ID of the other site
	Peer     string  `json:"peer"`     // its name, for people
	Relation string  `json:"relation"` // what it is to this one: sibling child parent
	Standing string  `json:"standing"` // linked invited offered leaving declined suspended
	Origin   string  `json:"origin"`   // configuration invitation parent, or their configuration
	Reason   string  `json:"reason"`   // why it was declined, or is suspended
	Since    Instant `json:"since,omitzero"`
	Until    Instant `json:"until,omitzero"` // it is forgotten then
}

// LinksReply answers GET /v1/links.
type LinksReply struct {
	Links []SiteLink `json:"links"`
}

// LinkRequest is the body of POST /v1/links/invite, accept and drop.
type LinkRequest struct {
	Site string `json:"site"` // name or ID of the other site
}

// LinkReply answers them.
type LinkReply struct {
	Link SiteLink `json:"link"`
}

// LinkChange is what can be done about a link: the last part of the path.
type LinkChange string

// A parent invites, the invited site accepts, either drops.
const (
	InviteLink LinkChange = "invite"
	AcceptLink LinkChange = "accept"
	DropLink   LinkChange = "drop"
)
