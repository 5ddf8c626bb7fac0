package access

// Call is who may make one call of the API.
type Call struct {
	Visitor, User, Operator, Admin Reach
	Local                          bool // only through the socket, never with a token
}

// Kinds of calls.
var (
	everybody = Call{User: Yes, Operator: Yes, Admin: Yes}               // it shows or asks nothing that is somebody's
	members   = Call{Visitor: Yes, User: Yes, Operator: Yes, Admin: Yes} // it shows what each member of the federation may know
	jobs      = Call{User: Own, Operator: Yes, Admin: Yes}
	output    = Call{User: Own, Operator: Own, Admin: Own}
	operators = Call{Operator: Yes, Admin: Yes}
	admins    = Call{Admin: Yes}
	local     = Call{Admin: Yes, Local: true}
	ownPage   = Call{User: Yes, Operator: Yes, Admin: Yes, Local: true} // for oneself
)

// Calls is every call there is. What is not in it is refused to everybody; a test of the
// server fails for a handler that has no line here.
var Calls = map[string]Call{
	"POST /v1/jobs":            everybody, // as oneself
	"GET /v1/jobs":             jobs,
	"GET /v1/watch":            jobs,
	"GET /v1/jobs/{id}":        jobs,
	"GET /v1/jobs/{id}/why":    jobs,
	"GET /v1/jobs/{id}/logs":   output,
	"GET /v1/jobs/{id}/files":  output,
	"GET /v1/jobs/{id}/file":   output,
	"POST /v1/preview":         everybody,
	"POST /v1/cancel":          jobs,
	"POST /v1/wait":            jobs,
	"POST /v1/hold":            jobs,
	"POST /v1/release":         jobs,
	"POST /v1/requeue":         jobs,
	"GET /v1/sites":            members,
	"GET /v1/sites/find":       everybody,
	"GET /v1/quotes":           members,
	"GET /v1/peers":            everybody,
	"GET /v1/peers/bans":       operators,
	"POST /v1/peers/unban":     admins,
	"GET /v1/counters":         everybody,
	"GET /v1/net":              everybody,
	"GET /v1/node":             members, // of which a visitor is told little
	"POST /v1/price":           admins,
	"GET /v1/bank/balance":     everybody,
	"GET /v1/bank/statement":   operators, // it names jobs and what they cost
	"POST /v1/bank/transfer":   admins,
	"POST /v1/bank/grant":      admins,
	"GET /v1/leases":           everybody,
	"POST /v1/leases":          operators,
	"POST /v1/leases/renew":    operators,
	"POST /v1/leases/release":  operators,
	"POST /v1/leases/revoke":   operators,
	"GET /v1/links":            everybody,
	"POST /v1/links/invite":    admins,
	"POST /v1/links/accept":    admins,
	"POST /v1/links/drop":      admins,
	"GET /v1/members":          everybody,
	"POST /v1/members/invite":  admins,
	"POST /v1/members/revoke":  admins,
	"POST /v1/members/renew":   admins,
	"POST /v1/modules":         everybody, // what jobs may run is a matter of theirs
	"POST /v1/content/missing": everybody,
	"POST /v1/content":         everybody, // what jobs bring along is a matter of theirs
	"POST /v1/trees":           everybody,
	"GET /v1/datasets":         everybody,
	"POST /v1/datasets":        admins, // the daemon reads the file, whoever may not
	"POST /v1/datasets/remove": admins,
	"GET /v1/datasets/find":    everybody,
	"POST /v1/pages":           ownPage,
	"GET /v1/tokens":           local,
	"POST /v1/tokens":          local,
	"POST /v1/tokens/revoke":   local,
	"GET /v1/users":            jobs,      // what each has, may have and has spent
	"GET /v1/guests":           operators, // it names users of other sites
	"POST /v1/guests/cancel":   operators,
	"POST /v1/guests/hold":     operators,
	"POST /v1/guests/release":  operators,
	"POST /v1/guests/ban":      admins,
	"POST /v1/guests/unban":    admins,
	"GET /v1/history":          jobs,
	"POST /v1/reload":          admins,
	"POST /v1/stop":            admins,
	"GET /v1/drain":            everybody,
	"POST /v1/drain":           admins,
	"GET /v1/log":              operators,
	"POST /v1/log":             admins,
	"GET /v1/log/lines":        admins,
	"GET /v1/goroutines":       admins,
	"GET /v1/backup":           local, // the site's key is in it
	"GET /v1/openapi.json":     members,
	"GET /metrics":             everybody, // numbers and words of the program only
	"GET /healthz":             everybody,
	"GET /readyz":              everybody,

	"POST /v1/jobs/{id}/attach": output,
	"POST /v1/jobs/{id}/exec":   output,
}

// Of returns how far a call reaches for a role.
func (c Call) Of(r Role) Reach {
	switch r {
	case Visitor:
		return c.Visitor
	case User:
		return c.User
	case Operator:
		return c.Operator
	case Admin:
		return c.Admin
	}
	return No
}

// Least returns the smallest role that may make the call.
func (c Call) Least() Role {
	for r := Visitor; r < Admin; r++ {
		if c.Of(r) != No {
			return r
		}
	}
	return Admin
}
