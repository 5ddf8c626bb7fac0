package api

import "context"

// Guest is a job of another site that runs or waits here, or processors lent to one.
type Guest struct {
	Kind         string  `json:"kind"`             // "job" or "lease"
	ID           string  `json:"id"`               // of a job; the number of a lease
	Site         string  `json:"site"`             // whose it is: an ID
	Name         string  `json:"name"`             // what that site is called
	Organisation string  `json:"organisation"`     // in its certificate; empty if it has none
	User         string  `json:"user,omitempty"`   // who submitted the job there, as that site says
	Job          string  `json:"job,omitempty"`    // what its user calls it
	Processors   int64   `json:"processors"`       //
	State        string  `json:"state"`            //
	Since        Instant `json:"since,omitzero"`   // it runs, or is lent
	Until        Instant `json:"until,omitzero"`   // it ends at the latest
	Used         Seconds `json:"used"`             // processor time so far
	Price        Amount  `json:"price"`            // credits per processor-hour
	Reason       string  `json:"reason,omitempty"` // why it waits
}

// GuestBan keeps a site or an organisation out.
type GuestBan struct {
	Site         string  `json:"site,omitempty"` // ID, or name in its certificate
	Organisation string  `json:"organisation,omitempty"`
	Since        Instant `json:"since"`
	Until        Instant `json:"until,omitzero"` // none: until it is lifted
	Reason       string  `json:"reason,omitempty"`
}

// Refusals is what was refused to a site by the owner's rules since the daemon started.
type Refusals struct {
	Site  string  `json:"site"`
	Name  string  `json:"name"`
	Count int64   `json:"count"`
	Last  string  `json:"last"` // what refused the last: a key of the rules, or "banned"
	At    Instant `json:"at"`
}

// GuestsReply answers GET /v1/guests.
type GuestsReply struct {
	Guests   []Guest          `json:"guests"`
	Bans     []GuestBan       `json:"bans"`
	Refused  map[string]int64 `json:"refused"` // by what refused it, since the daemon started
	Refusals []Refusals       `json:"refusals"`
}

// GuestsChange is the body of POST /v1/guests/cancel, hold, release, ban and unban: one of
// Jobs (not of bans), Site and Organisation.
type GuestsChange struct {
	Jobs         []string `json:"jobs,omitempty"` // IDs, or the beginnings of some
	Site         string   `json:"site,omitempty"` // name or ID
	Organisation string   `json:"organisation,omitempty"`
	Span         Seconds  `json:"span,omitempty"`   // ban: for how long; 0: until it is lifted
	Reason       string   `json:"reason,omitempty"` // at most 200 bytes
}

// GuestsChanged answers it.
type GuestsChanged struct {
	Jobs   int `json:"jobs"`   // that were changed, or ended
	Leases int `json:"leases"` // that were revoked
}

// GuestChange says what is to become of guests.
type GuestChange string

// Changes of guests.
const (
	CancelGuests  GuestChange = "cancel"
	HoldGuests    GuestChange = "hold"
	ReleaseGuests GuestChange = "release"
	BanGuests     GuestChange = "ban"
	UnbanGuests   GuestChange = "unban"
)

// SettingChange is a setting that was changed in the file.
type SettingChange struct {
	Key     string `json:"key"`
	Before  string `json:"before"`  // empty: it was not there
	After   string `json:"after"`   // empty: it is not there any more
	Restart bool   `json:"restart"` // it counts from the next start on
}

// ReloadReply answers POST /v1/reload.
type ReloadReply struct {
	Changes []SettingChange `json:"changes"`
}

// Guests lists what other sites have here.
func (c *Client) Guests(ctx context.Context) (*GuestsReply, error) {
	return get[GuestsReply](ctx, c, "/v1/guests")
}

// ChangeGuests ends, holds, releases or bans guests.
func (c *Client) ChangeGuests(ctx context.Context, what GuestChange, change GuestsChange) (*GuestsChanged, error) {
	return post[GuestsChanged](ctx, c, "/v1/guests/"+string(what), change)
}

// Reload has the daemon read its settings again.
func (c *Client) Reload(ctx context.Context) (*ReloadReply, error) {
	return post[ReloadReply](ctx, c, "/v1/reload", struct{}{})
}
