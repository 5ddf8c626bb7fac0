// Package member says who belongs to a federation and what each member may do.
//
// A federation has root keys, k of which must agree ([Federation]). What they say is
// written as X.509 certificates: a member's names its key, its name, its organisation,
// its rights and when it ends. A member with the right to invite certifies others, who
// cannot have more rights than it has itself, nor invite in turn: a chain is a root, a
// delegate and a member at most.
//
// A site proves its membership with the certificates that lead from its key to the
// roots ([Proof]). Whoever issued a certificate may take it back with a revocation
// list, and so may every root ([Revoked]).
//
// A [Roll] is what a site knows of the others: whom it has met, who was taken out, and of
// whom it will hear nothing any more (Roll.Outcast).
//
// All functions are pure: the time and the source of random bits are arguments. Bytes
// of peers are bounded before they are parsed, and errors about them wrap
// wire.ErrMalformed; errors of what is well-formed and not to be believed wrap
// [ErrStranger].
package member
