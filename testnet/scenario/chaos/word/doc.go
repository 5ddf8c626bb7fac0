// Package word compares what sites say in chaos with what they have been asked, what they have said
// before, and what has happened (Watch): a site may say a thing again, but not another one, it promises
// no more than it was asked for, and spans and amounts are what they are.
package word
