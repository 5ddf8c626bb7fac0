// Package rotated keeps lines of text in files of bounded size and number: the newest line is
// the last one of the newest file, and of the oldest there are whole files less.
//
//  1. Open continues what a folder has. A last line that a crash cut short is cut off.
//  2. Append writes lines that are newer than the last one, and returns once they survive
//     whatever happens to process and machine. Lines that are there already it skips: who
//     does not know what an Append that failed has written gives it the same lines again.
//  3. Read yields the lines, oldest first, also while others are appended.
//
// Each line has a number, which rises from line to line; Options.Number reads it. A file is
// called by the number of its first line, so that nothing is to be known besides the files.
package rotated
