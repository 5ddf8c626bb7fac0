// Package backup copies what a site is and knows into one file, while its daemon runs, and
// makes a home of such a file.
//
// A backup is a tar file, compressed by gzip. Its first entry, backup.json, is a Manifest;
// then come the records as they were after one batch, and the files of the home that Files
// names. What jobs have written is not in it, nor what belongs to running processes.
//
// A site that is restored has forgotten what came after its backup. Its store goes on from
// a number behind all of that, so that any other copy of the home counts as older.
package backup
