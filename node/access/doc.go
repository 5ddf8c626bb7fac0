// Package access says who may ask a site's daemon for what, and how much at a time.
//
// Who somebody is comes from outside of what he says: at the local socket from the kernel
// (the account at the other end), at the port of HTTP from a token. Roles follow from the
// account; Calls, one table, says what each role may do. The server asks it for every
// request before a handler sees it.
//
// The table is also in docs/users.md, for people; a test holds the two together.
package access
