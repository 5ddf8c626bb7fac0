// Package history has the lines of a site's job log: one for each job that has ended, own or
// of another site, and for each lease that was lent. It says who had what here, or elsewhere
// through this site, for how long, for what price, and why it ended.
//
// Log is the core. Its owner, package site,
//
//  1. calls Add in the step in which a job ends: the line is saved with that end, in one
//     commit, so that nothing that was acknowledged is missing, and nothing is there twice;
//  2. gives it Kept, once lines are durable in files: their records are deleted;
//  3. gives it what was stored, after a restart, and the number of the last line in the files.
//
// The driver moves records to files in the order of their numbers, and skips those that the
// files have (package node/store/rotated). Numbers rise by one from line to line, for ever.
//
// A Filter chooses lines. Nothing here reads a clock or a file.
package history
