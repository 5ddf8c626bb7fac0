package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// scriptMax bounds a script: it travels with the job, whose command has the same
// bound.
const scriptMax = 44 << 10

// script is a file of commands with options of submit in its comments.
type script struct {
	path        string // as given; "-" for standard input
	interpreter []string
	text        string
}

// isScript reports whether path is a file that begins with #!.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	var start [2]byte
	_, err = io.ReadFull(file, start[:])
	return err == nil && string(start[:]) == "#!"
}

// plainFile returns an error that says what to do if path is a file here that no
// system could run: neither a program nor a script that says what runs it.
func plainFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil // a command of the site that runs it, as far as anybody knows here
	}
	if _, err := exec.LookPath(path); err == nil {
		return nil
	}
	return fmt.Errorf("%s is a file that is not executable and does not begin with #! and an interpreter: write #!/bin/sh as its first line, or submit what runs it: gridnode submit -- sh %[1]s", path)
}

// readScript reads a script from path, or from stdin if path is "-".
func readScript(path string, stdin io.Reader) (*script, error) {
	r := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r = file
	}
	text, err := io.ReadAll(io.LimitReader(r, scriptMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(text) > scriptMax:
		return nil, fmt.Errorf("%s is longer than %d bytes, the most that travels with a job", path, scriptMax)
	case !bytes.HasPrefix(text, []byte("#!")):
		return nil, fmt.Errorf("%s does not begin with #! and an interpreter", path)
	}
	line, _, _ := strings.Cut(string(text[2:]), "\n")
	interpreter := strings.Fields(line)
	if len(interpreter) == 0 {
		return nil, fmt.Errorf("%s:1: #! names no interpreter", path)
	}
	return &script{path, interpreter, string(text)}, nil
}

// name returns what a job that runs the script is called.
func (s *script) name() string {
	if s.path == "-" {
		return "stdin"
	}
	base := filepath.Base(s.path)
	return strings.ToValidUTF8(base[:min(len(base), 100)], "")
}

// command returns the command line that runs the script at any site: its text is
// handed to the interpreter as an argument, so no file has to travel.
func (s *script) command(args []string) ([]string, error) {
	program := filepath.Base(s.interpreter[0])
	if program == "env" && len(s.interpreter) > 1 {
		program = s.interpreter[1]
	}
	line := slices.Clone(s.interpreter)
	switch {
	case slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh", "ash"}, program):
		line = append(line, "-c", s.text, s.name())
	case strings.HasPrefix(program, "python"):
		line = append(line, "-c", s.text)
	case program == "perl", program == "ruby":
		line = append(line, "-e", s.text, "--")
	default:
		return nil, fmt.Errorf("%s:1: scripts for %s cannot travel with a job: want a shell, python, perl or ruby, or submit the command itself", s.path, program)
	}
	return append(line, args...), nil
}

// slurmIgnored are options of sbatch that say where output goes, who pays and who
// gets mail. They have no meaning here and a script with them can still run as
// its author meant.
var slurmIgnored = []string{"output", "error", "o", "e", "partition", "p", "account", "A", "qos", "q",
	"mail-type", "mail-user", "comment", "open-mode", "wckey", "parsable", "quiet", "Q", "verbose", "v"}

// options sets the flags that the script's #GRID and #SBATCH lines name and the
// command line does not. They end at the first line that is not a comment.
// Warnings about ignored options of Slurm go to warn.
func (s *script) options(flags *pflag.FlagSet, warn io.Writer) error {
	given := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	scanner := bufio.NewScanner(strings.NewReader(s.text))
	scanner.Buffer(nil, scriptMax+1)
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text != "" && text[0] != '#' {
			break
		}
		slurm := strings.HasPrefix(text, "#SBATCH ")
		if !slurm && !strings.HasPrefix(text, "#GRID ") {
			continue
		}
		_, rest, _ := strings.Cut(text, " ")
		if err := s.optionLine(rest, slurm, flags, given, func(format string, args ...any) {
			fmt.Fprintf(warn, "%s:%d: %s\n", s.path, line, fmt.Sprintf(format, args...))
		}); err != nil {
			return fmt.Errorf("%s:%d: %w", s.path, line, err)
		}
	}
	return nil
}

func (s *script) optionLine(text string, slurm bool, flags *pflag.FlagSet, given map[string]bool, warn func(string, ...any)) error {
	words, err := splitWords(text)
	if err != nil {
		return err
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		name, value, valued := optionName(word)
		if name == "" {
			return fmt.Errorf("%q is not an option: want --name=value or -x value", word)
		}
		flag := flags.Lookup(name)
		if len(name) == 1 {
			flag = flags.ShorthandLookup(name)
		}
		if flag == nil && !slurm {
			var names []string
			flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			return fmt.Errorf("unknown option %s%s", word, didYouMean("--", name, names))
		}
		if slurm && slices.Contains(slurmIgnored, name) || flag == nil {
			if !slices.Contains(slurmIgnored, name) {
				return fmt.Errorf("gridnode has nothing like %s: remove the line, or write what you need as #GRID", word)
			}
			if !valued && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
				words = words[1:]
			}
			warn("%s is ignored", word)
			continue
		}
		switch {
		case valued:
		case flag.NoOptDefVal != "":
			value = flag.NoOptDefVal
		case len(words) == 0:
			return fmt.Errorf("%s wants a value", word)
		default:
			value, words = words[0], words[1:]
		}
		if given[flag.Name] {
			continue // the command line counts
		}
		if err := flags.Set(flag.Name, value); err != nil {
			return err
		}
	}
	return nil
}

// optionName takes "--name=value", "--name", "-xvalue" and "-x" apart. name is
// empty if word is no option.
func optionName(word string) (name, value string, valued bool) {
	switch {
	case strings.HasPrefix(word, "--") && len(word) > 3:
		name, value, valued = strings.Cut(word[2:], "=")
	case strings.HasPrefix(word, "-") && len(word) > 1 && word[1] != '-':
		name, value = word[1:2], word[2:]
		valued = value != ""
	}
	return name, value, valued
}

// splitWords splits text at blanks as a shell does, with single and double quotes
// and backslashes but without any expansion. A word that begins with # ends it.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case r == '#' && !inWord:
			return words, nil
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("%q: a quote or backslash is not closed", text)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
