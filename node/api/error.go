package api

// Error is the body of every answer that is not 2xx.
type Error struct {
	Code    string `json:"code"` // one of the Code constants
	Message string `json:"message"`
}

// Codes of Error.
const (
	CodeUsage       = "usage"       // the request is wrong: 400, 413
	CodeNotFound    = "notFound"    // no such job, site, output or path: 404
	CodeRefused     = "refused"     // legitimate no: limits, ID of another job: 409
	CodeDenied      = "denied"      // the caller's role does not allow it: 403
	CodeUnknown     = "unknown"     // it is not known who calls: no token, or not a good one: 401
	CodeLimit       = "limit"       // a limit of this user: 409
	CodeBusy        = "busy"        // too many requests wait, nothing happened: 429
	CodeUnavailable = "unavailable" // the node is stopping: 503
	CodeInternal    = "internal"    // our fault: 500
)

// Error implements error.
func (e *Error) Error() string { return e.Message }
