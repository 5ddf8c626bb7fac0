// Package forge has sites in chaos hear what no honest one would say, of whom it may not come, or when
// it is too late (Forger), and sees to it that nothing changes for it. What a twin of a site makes of
// peers that lie is package liar's.
//
// A forgery follows from a site, another one and a number, so that a replay file can say it. If there
// is nothing for it at that site then, the next one of its kind is said.
package forge
