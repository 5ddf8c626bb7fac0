package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gridnode/cmd/gridnode/slurm"
)

// scriptMax bounds a script that travels in the job's command; a longer one, up to
// scriptFileMax, is a file that the job brings along.
const (
	scriptMax     = 44 << 10
	scriptFileMax = 64 << 20
)

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
	if info.Mode()&0o111 != 0 {
		return fmt.Errorf("%s is a program here, and not a command that is found everywhere: gridnode submit -- ./%[1]s", path)
	}
	shebang, runs := "#!/bin/sh", "sh"
	if program, known := interpreters[filepath.Ext(path)]; known {
		shebang, runs = "#!/usr/bin/env "+program, program
	}
	return fmt.Errorf("%[1]s is a file that is not executable and does not begin with #! and an interpreter: write %[2]s as its first line, or submit what runs it: gridnode submit --in %[1]s -- %[3]s %[1]s", path, shebang, runs)
}

// interpreters run files whose names end so.
var interpreters = map[string]string{".py": "python3", ".pl": "perl", ".rb": "ruby", ".R": "Rscript", ".r": "Rscript", ".jl": "julia", ".js": "node", ".lua": "lua"}

// readScript reads a script from path, or from stdin if path is "-".
func readScript(path string, stdin io.Reader) (*script, error) {
	r := stdin
	if path == "-" && clientOnly {
		return nil, errWhole
	}
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r = file
	}
	text, err := io.ReadAll(io.LimitReader(r, scriptFileMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(text) > scriptFileMax:
		return nil, fmt.Errorf("%s is longer than %d bytes, the most of a script", path, scriptFileMax)
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

// options sets the flags that the script's #GRID and #SBATCH lines name and the command
// line does not. They end at the first line that is not a comment. What is left out of the
// #SBATCH lines goes to warn; what they ask for and cannot be is one error, unless lenient.
// batch reports whether there are such lines.
func (s *script) options(flags *pflag.FlagSet, lenient bool, warn io.Writer) (batch bool, err error) {
	given := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	scanner := bufio.NewScanner(strings.NewReader(s.text))
	scanner.Buffer(nil, scriptFileMax+1)
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text != "" && text[0] != '#' {
			break
		}
		if !strings.HasPrefix(text, "#GRID ") {
			continue
		}
		_, rest, _ := strings.Cut(text, " ")
		if err := s.optionLine(rest, flags, given); err != nil {
			return false, fmt.Errorf("%s:%d: %w", s.path, line, err)
		}
	}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true }) // #GRID says what gridnode is to do
	lines := slurm.Script(s.text, splitWords)
	r := slurm.Translate(lines, func(l slurm.Line) string { return fmt.Sprintf("%s:%d: ", s.path, l.Number) })
	return len(lines) > 0, setSlurm(r, flags, given, lenient, "--lenient", warn)
}

// setSlurm sets the flags that options of Slurm mean, but those given. What is wrong is one error with
// all lines of it; how says what leaves out what cannot be done.
func setSlurm(r *slurm.Request, flags *pflag.FlagSet, given map[string]bool, lenient bool, how string, warn io.Writer) error {
	var wrong []string
	for _, f := range r.Flags {
		if given[f.Name] {
			continue
		}
		err := flags.Set(f.Name, f.Value)
		if err == nil && f.Name == "time" {
			_, err = parseSpan(f.Value)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s--%s: %v", f.Place, f.Name, err))
		}
	}
	if len(r.Refused) > 0 && !lenient {
		return fmt.Errorf("this asks for what gridnode cannot do (%s leaves it out):\n  %s", how, strings.Join(append(r.Refused, wrong...), "\n  "))
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n  "))
	}
	for _, note := range r.Notes {
		fmt.Fprintln(warn, "note: "+note)
	}
	for _, why := range r.Refused {
		fmt.Fprintln(warn, "note: left out: "+why)
	}
	return nil
}

func (s *script) optionLine(text string, flags *pflag.FlagSet, given map[string]bool) error {
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
		if flag == nil {
			var names []string
			flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			return fmt.Errorf("unknown option %s%s", word, didYouMean("--", name, names))
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
