package slurm

import (
	"fmt"
	"slices"
	"strings"
)

// Value says whether an option has a value.
type Value uint8

// Kinds of options.
const (
	None     Value = iota
	Required       // --name=value, --name value, -nvalue, -n value
	Optional       // --name=value or --name; -nvalue or -n
)

// Option is one option of one of Slurm's commands.
type Option struct {
	Long  string
	Short byte // 0: none
	Value Value
}

// Given is an option as it was given.
type Given struct {
	Name  string // the long one
	Text  string // as it was written
	Value string
	Has   bool // a value was given
}

// Options are those of a command.
type Options []Option

// long returns the option that a name, or the unique beginning of one, means.
func (o Options) long(name string) (Option, error) {
	var begin []Option
	for _, x := range o {
		if x.Long == name {
			return x, nil
		}
		if strings.HasPrefix(x.Long, name) {
			begin = append(begin, x)
		}
	}
	switch len(begin) {
	case 0:
		return Option{}, fmt.Errorf("unrecognized option '--%s'", name)
	case 1:
		return begin[0], nil
	}
	return Option{}, fmt.Errorf("option '--%s' is ambiguous", name)
}

// Parse takes the options at the beginning of words, as getopt does, up to the first word
// that is none or behind "--", and returns the rest.
func (o Options) Parse(words []string) (given []Given, rest []string, err error) {
	for len(words) > 0 {
		word := words[0]
		switch {
		case word == "--":
			return given, words[1:], nil
		case strings.HasPrefix(word, "--"):
			name, value, has := strings.Cut(word[2:], "=")
			x, err := o.long(name)
			if err != nil {
				return given, words, err
			}
			words = words[1:]
			switch {
			case has && x.Value == None:
				return given, words, fmt.Errorf("option '--%s' doesn't allow an argument", x.Long)
			case !has && x.Value == Required && len(words) == 0:
				return given, words, fmt.Errorf("option '--%s' requires an argument", x.Long)
			case !has && x.Value == Required:
				value, words, has = words[0], words[1:], true
			}
			given = append(given, Given{x.Long, word, value, has})
		case len(word) > 1 && word[0] == '-':
			if given, words, err = o.short(given, words); err != nil {
				return given, words, err
			}
		default:
			return given, words, nil
		}
	}
	return given, nil, nil
}

// short takes a word of short options: -x, -xy, -nvalue, -n value.
func (o Options) short(given []Given, words []string) ([]Given, []string, error) {
	word := words[0]
	words = words[1:]
	for i := 1; i < len(word); i++ {
		at := slices.IndexFunc(o, func(x Option) bool { return x.Short == word[i] })
		if at < 0 {
			return given, words, fmt.Errorf("invalid option -- '%c'", word[i])
		}
		x, value := o[at], word[i+1:]
		if x.Value == None {
			given = append(given, Given{Name: x.Long, Text: word})
			continue
		}
		has := value != ""
		if !has && x.Value == Required {
			if len(words) == 0 {
				return given, words, fmt.Errorf("option requires an argument -- '%c'", word[i])
			}
			value, words, has = words[0], words[1:], true
		}
		return append(given, Given{x.Long, word, strings.TrimPrefix(value, "="), has}), words, nil
	}
	return given, words, nil
}

// All takes options and arguments in any order, up to "--".
func (o Options) All(words []string) (given []Given, arguments []string, err error) {
	for {
		some, rest, err := o.Parse(words)
		given = append(given, some...)
		if err != nil || len(rest) == 0 {
			return given, arguments, err
		}
		if at := len(words) - len(rest) - 1; at >= 0 && words[at] == "--" {
			return given, append(arguments, rest...), nil
		}
		arguments, words = append(arguments, rest[0]), rest[1:]
	}
}
