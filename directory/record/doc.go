// Package record finds sites by name or ID. A Registry is one site's part in that: it
// publishes the site's own signed Record, holds those of others, and looks records up. It
// is a core that reads no clock and does no I/O. Its owner
//
//  1. makes it with New, and calls Set whenever what the site says of itself changes;
//
//  2. gives Step what comes: *grid.Delivery and *grid.Undelivered with a message of
//     Protocol, *grid.Closest for which Asked is true, *Find, *Meant, and a grid.Tick when
//     NextTimer has come;
//
//  3. carries out what is in the outbox: messages, look-ups, answers to Find and Meant.
//
//     message  who, to whom    what it says
//     Enter    site → holder   hold this record of mine
//     Entered  holder → site   it is held, and who else claims the name; or why it is not
//     Inquire  seeker → holder which records have this ID or name?
//     Inform   holder → seeker these
//
// # The rule
//
// A record lies at the Config.Replicas sites nearest to the hash of the site's ID and at
// as many nearest to the hash of its name, and is issued anew three times a lifetime. Who
// is nearest is looked up after four minutes, a lifetime, two more, and then every four.
// The next ones take the places of holders that are lost; when there is none left, the
// router is asked again. A seeker asks the eight nearest to the hash of what it looks for,
// and all others that the router names if those know nobody.
//
// Two sites may claim one name. Holders keep both, seekers are told of both, and both are
// told of each other: a name that several claim stands for none of them. An ID stands for
// its site whoever claims it as a name. Meant applies this rule to what a user says; and
// a name that was used stands for no other site than it stood for, two hours long.
//
// The DHT's own store of values is not used. It keeps one value a key: of two claims it
// would show the one that a rule prefers, so a stranger could take a name by being
// preferred. What a stranger can make it keep is not bounded. And virtual networks would
// need a second version of its rules; here both drivers run this package.
//
// # Invariants
//
//   - Of a site the newest record counts; an older one is refused by holders and ignored
//     by seekers that have seen the newer.
//   - What is held: 4096 sites, eight that claim one name, for a lifetime at most. Who
//     came first stays.
//   - A record is taken from its own site only, and used only if its signature is good, it
//     has not expired, and it has the ID or name that was looked for.
//
// # What it does not do
//
// It does not say who may have a name: whoever has a key may claim any. It does not
// protect against who fills the holders of a name with eight claims before its site
// comes, or runs the nodes nearest to it and tells nothing. A site that stops, or
// changes its name, is found as before until its record expires.
package record
