// Package witness has the sites of a federation remember for each other how far their
// stores have come, so that a home that was brought back whole from an older copy is
// recognised. Nothing in such a home can tell.
//
// A site tells some of its peers a Word, signed by itself: its store has batch N. They keep
// the newest one of each site in a Book. When the site starts it asks for it, before it takes
// anything up, and later whenever it tells another: if a word of its own is of a batch behind
// the store's last one, the store is an older copy (ErrOlder). Nobody else can sign such a
// word, so a peer can keep silent, but not stop a site.
//
//	protocol   who              frames
//	Ask        anybody          the newest word of who asks; empty: none is known
//	Tell       members          a word; answered as Ask
//
// A copy that is older by less than TellEvery may go unseen if the site did not stop in an
// orderly way, and so does one of a site that has met nobody.
package witness
