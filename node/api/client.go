package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"gridnode/grid"
)

// ErrNoDaemon is wrapped by every Client method when no daemon runs on the home.
var ErrNoDaemon = errors.New("no daemon is running")

// ErrBroken is wrapped when the connection broke before the answer was complete:
// what was asked for may or may not have happened. A submission with an ID of the
// client's own may be repeated.
var ErrBroken = errors.New("the daemon went away before it answered")

// Client talks to the local API of one home. It may be used concurrently. Errors
// of the daemon are *Error.
type Client struct {
	http  http.Client
	base  string // of every URL
	token string // empty: none is sent
}

// HTTP returns what carries the requests, for those that have no method here: of
// "http://gridnode" and a path of docs/api.md.
func (c *Client) HTTP() *http.Client { return &c.http }

// NewClient returns a client for the daemon of home. It connects when it is used.
func NewClient(home string) *Client {
	return newClient(func(ctx context.Context) (net.Conn, error) { return dialAPI(ctx, home) })
}

// NewSharedClient returns a client for the daemon that listens at a socket for other accounts
// than its own.
func NewSharedClient(path string) *Client {
	return newClient(func(ctx context.Context) (net.Conn, error) { return dialShared(ctx, path) })
}

func newClient(dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{base: socketBase, http: http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression: true,
	}}}
}

// socketBase begins URLs at a socket, which have no host.
const socketBase = "http://gridnode"

// NewRemoteClient returns a client for a daemon elsewhere, at https://HOST:PORT, that knows
// the token. Its certificate has to be good for HOST, to one of those that the system trusts.
func NewRemoteClient(base, token string) *Client {
	return &Client{base: base, token: token, http: http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Submit hands jobs over and returns once each has a place or is refused.
func (c *Client) Submit(ctx context.Context, jobs []JobSpec) (*SubmitReply, error) {
	return post[SubmitReply](ctx, c, "/v1/jobs", SubmitRequest{jobs})
}

// PutModule hands a module over, for jobs to be submitted afterwards.
func (c *Client) PutModule(ctx context.Context, module []byte) (*ModuleReply, error) {
	response, err := c.do(ctx, http.MethodPost, "/v1/modules", module)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var reply ModuleReply
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return nil, broken(ctx, err)
	}
	return &reply, nil
}

// SubmitAndWait hands jobs over and returns once all are over. It calls stored with
// their IDs as soon as they are safe.
func (c *Client) SubmitAndWait(ctx context.Context, jobs []JobSpec, stored func(ids []string)) (*SubmitReply, error) {
	body, err := json.Marshal(SubmitRequest{jobs})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	response, err := c.do(ctx, http.MethodPost, "/v1/jobs?wait=done", body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	var first SubmitStored
	if err := decoder.Decode(&first); err != nil {
		return nil, broken(ctx, err)
	}
	stored(first.IDs)
	var reply SubmitReply
	switch err := decoder.Decode(&reply); {
	case err != nil:
		return nil, broken(ctx, err)
	case reply.Failure != nil:
		return nil, reply.Failure
	}
	return &reply, nil
}

// broken returns what a connection that broke means to the caller.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// Preview asks how one job would be placed, without placing it.
func (c *Client) Preview(ctx context.Context, job JobSpec) (*WhyReply, error) {
	return post[WhyReply](ctx, c, "/v1/preview", SubmitRequest{[]JobSpec{job}})
}

// Jobs lists jobs; filter takes the parameters of GET /v1/jobs.
func (c *Client) Jobs(ctx context.Context, filter url.Values) (*JobsReply, error) {
	return get[JobsReply](ctx, c, "/v1/jobs?"+filter.Encode())
}

// Why tells which sites were considered for a job.
func (c *Client) Why(ctx context.Context, id string) (*WhyReply, error) {
	return get[WhyReply](ctx, c, "/v1/jobs/"+url.PathEscape(id)+"/why")
}

// Cancel asks for jobs to be ended and tells what they are now.
func (c *Client) Cancel(ctx context.Context, jobs IDsRequest) (*JobsReply, error) {
	return post[JobsReply](ctx, c, "/v1/cancel", jobs)
}

// Change has jobs held, released or run again: change is hold, release or requeue.
func (c *Client) Change(ctx context.Context, change string, jobs IDsRequest) (*JobsReply, error) {
	return post[JobsReply](ctx, c, "/v1/"+change, jobs)
}

// Wait returns when all of the jobs are over or the time-out has passed.
func (c *Client) Wait(ctx context.Context, jobs IDsRequest) (*JobsReply, error) {
	return post[JobsReply](ctx, c, "/v1/wait", jobs)
}

// cutShort returns why a stream that was read to its end is not whole; nil: it is.
func cutShort(response *http.Response) error {
	if response.Trailer.Get(TrailerError) == "" {
		return nil
	}
	code, message, _ := strings.Cut(response.Trailer.Get(TrailerError), " ")
	return &Error{Code: code, Message: message}
}

// Sites lists the sites that this one knows of.
func (c *Client) Sites(ctx context.Context) (*SitesReply, error) {
	return get[SitesReply](ctx, c, "/v1/sites")
}

// FindSite tells who a name or an ID stands for. An *Error of CodeNotFound says that
// nobody is known by it.
func (c *Client) FindSite(ctx context.Context, name string) (*FindSiteReply, error) {
	return get[FindSiteReply](ctx, c, "/v1/sites/find?"+url.Values{"name": {name}}.Encode())
}

// Quotes asks the directory; query takes the parameters of GET /v1/quotes.
func (c *Client) Quotes(ctx context.Context, query url.Values) (*SitesReply, error) {
	return get[SitesReply](ctx, c, "/v1/quotes?"+query.Encode())
}

// Peers lists the nodes this one is connected to.
func (c *Client) Peers(ctx context.Context) (*PeersReply, error) {
	return get[PeersReply](ctx, c, "/v1/peers")
}

// Bans lists the peers and addresses that are banned.
func (c *Client) Bans(ctx context.Context) (*BansReply, error) {
	return get[BansReply](ctx, c, "/v1/peers/bans")
}

// Unban lifts the ban of a peer, named by ID, its end or the name of its site, or of an
// address. An *Error of CodeNotFound says that it is not banned.
func (c *Client) Unban(ctx context.Context, peer string) (*UnbanReply, error) {
	return post[UnbanReply](ctx, c, "/v1/peers/unban", UnbanRequest{peer})
}

// Counters tells the messages and bytes sent and received, by kind.
func (c *Client) Counters(ctx context.Context) (*CountersReply, error) {
	return get[CountersReply](ctx, c, "/v1/counters")
}

// Node tells who this node is.
func (c *Client) Node(ctx context.Context) (*NodeInfo, error) {
	return get[NodeInfo](ctx, c, "/v1/node")
}

// SetPrice changes what the site charges until the daemon ends.
func (c *Client) SetPrice(ctx context.Context, price grid.Price) (*PriceReply, error) {
	return post[PriceReply](ctx, c, "/v1/price", PriceRequest{Price: Amount(price)})
}

// BankBalance tells what is in this site's account; query takes the parameters of
// GET /v1/bank/balance.
func (c *Client) BankBalance(ctx context.Context, query url.Values) (*BankReply, error) {
	return get[BankReply](ctx, c, "/v1/bank/balance?"+query.Encode())
}

// BankStatement tells the newest transactions of an account; query takes the
// parameters of GET /v1/bank/statement.
func (c *Client) BankStatement(ctx context.Context, query url.Values) (*BankStatement, error) {
	return get[BankStatement](ctx, c, "/v1/bank/statement?"+query.Encode())
}

// BankTransfer moves credits of this site's account to another; it tells what is left.
func (c *Client) BankTransfer(ctx context.Context, move BankMove) (*BankReply, error) {
	return post[BankReply](ctx, c, "/v1/bank/transfer", move)
}

// BankGrant issues credits of the bank kept here; it tells what the receiver has.
func (c *Client) BankGrant(ctx context.Context, move BankMove) (*BankReply, error) {
	return post[BankReply](ctx, c, "/v1/bank/grant", move)
}

// Leases lists what is borrowed ("in"), lent ("out"), or both ("").
func (c *Client) Leases(ctx context.Context, direction string) (*LeasesReply, error) {
	query := url.Values{}
	if direction != "" {
		query.Set("direction", direction)
	}
	return get[LeasesReply](ctx, c, "/v1/leases?"+query.Encode())
}

// RequestLease borrows processors and returns once they can be used.
func (c *Client) RequestLease(ctx context.Context, request LeaseRequest) (*LeaseReply, error) {
	return post[LeaseReply](ctx, c, "/v1/leases", request)
}

// ChangeLease renews, releases or revokes a lease.
func (c *Client) ChangeLease(ctx context.Context, change LeaseChange, request LeaseChangeRequest) (*LeaseReply, error) {
	return post[LeaseReply](ctx, c, "/v1/leases/"+string(change), request)
}

// Links lists the links of the hierarchy of delegation.
func (c *Client) Links(ctx context.Context) (*LinksReply, error) {
	return get[LinksReply](ctx, c, "/v1/links")
}

// ChangeLink invites a site, accepts its invitation, or drops the link to it.
func (c *Client) ChangeLink(ctx context.Context, change LinkChange, with string) (*LinkReply, error) {
	return post[LinkReply](ctx, c, "/v1/links/"+string(change), LinkRequest{with})
}

// Members lists the members of the federation that this site has met, and itself.
func (c *Client) Members(ctx context.Context) (*MembersReply, error) {
	return get[MembersReply](ctx, c, "/v1/members")
}

// Invite makes an invitation for a site that is to be a member.
func (c *Client) Invite(ctx context.Context, request InviteRequest) (*InviteReply, error) {
	return post[InviteReply](ctx, c, "/v1/members/invite", request)
}

// Renew has this site's certificate renewed.
func (c *Client) Renew(ctx context.Context) (*RenewReply, error) {
	return post[RenewReply](ctx, c, "/v1/members/renew", struct{}{})
}

// Revoke takes back the certificate of a member, named by name or ID.
func (c *Client) Revoke(ctx context.Context, member string) (*RevokeReply, error) {
	return post[RevokeReply](ctx, c, "/v1/members/revoke", RevokeRequest{member})
}

// DataSets lists the data sets that this site holds.
func (c *Client) DataSets(ctx context.Context) (*DataSetsReply, error) {
	return get[DataSetsReply](ctx, c, "/v1/datasets")
}

// AddDataSet enters a file or directory as a data set that this site holds.
func (c *Client) AddDataSet(ctx context.Context, request DataSetRequest) (*DataSetReply, error) {
	return post[DataSetReply](ctx, c, "/v1/datasets", request)
}

// RemoveDataSet takes a data set off those that this site holds.
func (c *Client) RemoveDataSet(ctx context.Context, name string) error {
	_, err := post[struct{}](ctx, c, "/v1/datasets/remove", DataSetRequest{Name: name})
	return err
}

// FindDataSet asks the federation who holds a data set.
func (c *Client) FindDataSet(ctx context.Context, name string) (*HoldersReply, error) {
	return get[HoldersReply](ctx, c, "/v1/datasets/find?"+url.Values{"name": {name}}.Encode())
}

// Tokens lists the tokens of this site.
func (c *Client) Tokens(ctx context.Context) (*TokensReply, error) {
	return get[TokensReply](ctx, c, "/v1/tokens")
}

// CreateToken makes a token. The answer alone has its text.
func (c *Client) CreateToken(ctx context.Context, request TokenRequest) (*Token, error) {
	return post[Token](ctx, c, "/v1/tokens", request)
}

// RevokeToken forgets a token, named by its ID.
func (c *Client) RevokeToken(ctx context.Context, id string) (*Token, error) {
	return post[Token](ctx, c, "/v1/tokens/revoke", TokenRevokeRequest{id})
}

// Stop asks the daemon to stop. It returns when the daemon has understood.
func (c *Client) Stop(ctx context.Context) error {
	_, err := post[struct{}](ctx, c, "/v1/stop", struct{}{})
	return err
}

func get[Reply any](ctx context.Context, c *Client, path string) (*Reply, error) {
	return call[Reply](ctx, c, http.MethodGet, path, nil)
}

func post[Reply any](ctx context.Context, c *Client, path string, request any) (*Reply, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return call[Reply](ctx, c, http.MethodPost, path, body)
}

func call[Reply any](ctx context.Context, c *Client, method, path string, body []byte) (*Reply, error) {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var reply Reply
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return nil, broken(ctx, err)
	}
	return &reply, nil
}

// do makes one request; an answer other than 2xx becomes an *Error.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("local API: %w", err)
	}
	return c.send(request)
}

// send makes a request; an answer other than 2xx, and than that another protocol follows,
// becomes an *Error.
func (c *Client) send(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error // its text names a URL that means nothing to users
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		for _, end := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
			if errors.Is(err, end) {
				return nil, ErrBroken
			}
		}
		return nil, err
	}
	if response.StatusCode/100 == 2 || response.StatusCode == http.StatusSwitchingProtocols {
		return response, nil
	}
	defer response.Body.Close()
	failure := &Error{Code: CodeInternal}
	if err := json.NewDecoder(io.LimitReader(response.Body, 4<<20)).Decode(failure); err != nil || failure.Message == "" {
		failure.Message = "the daemon answered " + response.Status
	}
	return nil, failure
}
