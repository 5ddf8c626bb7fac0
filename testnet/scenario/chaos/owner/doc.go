// Package owner is what owners of sites do in chaos besides lending and selling, and looks for what
// sites make of it: which data sets they hold and what is read where (Data), jobs of other sites that
// they hold or end (Guests), whom they invite (Invitations), whose certificates they renew (Renewals),
// who has the name of another one (Namesakes), and whom users find by a name (Names).
//
// Each is made before the run begins, and told to Do one thing at an instant: which follows from a
// number, so that a replay file can say it.
package owner
