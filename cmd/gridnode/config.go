//go:build !client

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// configFile is the file of settings in the home directory.
const configFile = "config.yaml"

// effective is the value of one key and where it comes from.
type effective struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "default", file:line, "GRIDNODE_…" or "--flag"
}

// errNoHome says that nobody has run init.
var errNoHome = errors.New("not a gridnode home")

// loadSettings reads the settings of home: a flag of flags (nil for none) counts
// before the environment, that before the file, that before the default. All that
// is wrong is reported at once, each with its key and origin.
func loadSettings(home string, flags *pflag.FlagSet) (*settings, []effective, error) {
	path := filepath.Join(home, configFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: %w (there is no %s): run 'gridnode init' first, or name the home with --home or GRIDNODE_HOME", home, errNoHome, configFile)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read settings: %w", err)
	}
	s, values, err := readSettings(path, text, flags)
	if err == nil {
		err = s.checkGuests(home)
	}
	if err != nil {
		return nil, values, err
	}
	return s, values, nil
}

func readSettings(path string, text []byte, flags *pflag.FlagSet) (*settings, []effective, error) {
	file, wrongKeys := parseFile(path, text)
	if file == nil {
		return nil, nil, wrongKeys
	}
	v := viper.New()
	if err := v.MergeConfigMap(nested(file)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	var (
		s        settings
		values   []effective
		problems []error
	)
	if wrongKeys != nil {
		problems = append(problems, wrongKeys)
	}
	for i := range settingTable {
		key := &settingTable[i]
		v.SetDefault(key.key, key.value)
		if err := v.BindEnv(key.key, key.environment()); err != nil {
			return nil, nil, fmt.Errorf("bind %s: %w", key.key, err)
		}
		origin := originOf(key, file, path, flags)
		if flag := flagOf(key, flags); flag != nil {
			if err := v.BindPFlag(key.key, flag); err != nil {
				return nil, nil, fmt.Errorf("bind %s: %w", key.key, err)
			}
		}
		value := v.GetString(key.key)
		if key.list {
			value = strings.Join(v.GetStringSlice(key.key), ",")
		}
		if err := key.set(&s, value); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", key.key, origin, err))
		}
		values = append(values, effective{key.key, value, origin})
	}
	rules, wrong := s.setRules(path, file)
	values, problems = append(values, rules...), append(problems, wrong...)
	values = append(values, s.setPartners(path, file)...)
	limits, wrong := s.setQuotas(path, file)
	values, problems = append(values, limits...), append(problems, wrong...)
	if len(problems) == 0 {
		for _, err := range []error{s.checkPricing(), s.checkDoors()} {
			if err != nil {
				problems = append(problems, err)
			}
		}
	}
	if len(problems) > 0 {
		return nil, values, errors.Join(problems...)
	}
	return &s, values, nil
}

// nested turns dotted keys into the tree that viper wants.
func nested(file map[string]fileValue) map[string]any {
	tree := make(map[string]any)
	for key, value := range file {
		if value.rule != nil || value.partner != nil || value.quota != nil {
			continue
		}
		section, name, dotted := strings.Cut(key, ".")
		if !dotted {
			tree[key] = value.text
			continue
		}
		below, ok := tree[section].(map[string]any)
		if !ok {
			below = make(map[string]any)
			tree[section] = below
		}
		below[name] = value.text
	}
	return tree
}

// originOf names where the effective value of key comes from.
func originOf(key *setting, file map[string]fileValue, path string, flags *pflag.FlagSet) string {
	if flag := flagOf(key, flags); flag != nil && flag.Changed {
		return "--" + flag.Name
	}
	if os.Getenv(key.environment()) != "" {
		return key.environment()
	}
	if value, ok := file[key.key]; ok {
		return fmt.Sprintf("%s:%d", path, value.line)
	}
	return "default"
}

func flagOf(key *setting, flags *pflag.FlagSet) *pflag.Flag {
	if key.flag == "" || flags == nil {
		return nil
	}
	return flags.Lookup(key.flag)
}

// addSettingFlags gives cmd the flags of those keys that have one.
func addSettingFlags(cmd *cobra.Command) {
	for i := range settingTable {
		key := &settingTable[i]
		switch {
		case key.flag == "":
		case key.list:
			cmd.Flags().StringSlice(key.flag, nil, key.usage)
		default:
			cmd.Flags().String(key.flag, key.value, key.usage)
		}
	}
}

// fileValue is one key of the file as it is written there, lists with commas.
type fileValue struct {
	line int
	text string
	rule *ruleValue // of rules for guests

	partner *partnerValue // of slurm.partners
	quota   *quotaValue   // of limits of users; all nil: the key is of settingTable
}

// parseFile returns the keys of a settings file. A key that is not in
// settingTable, or that stands there twice, is an error; the error names all of them, and
// the others are returned. They are nil if the file is no settings file at all.
func parseFile(path string, text []byte) (map[string]fileValue, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	values := make(map[string]fileValue)
	if len(document.Content) == 0 {
		return values, nil // empty, or nothing but comments
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want lines of the form key: value", path, root.Line)
	}
	return values, walkFile(path, "", root, values)
}

func walkFile(path, prefix string, mapping *yaml.Node, values map[string]fileValue) error {
	var problems []error
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		problems = append(problems, readKey(path, prefix, mapping.Content[i], mapping.Content[i+1], values))
	}
	return errors.Join(problems...)
}

// readKey reads one key of the file, and what stands below it.
func readKey(path, prefix string, name, value *yaml.Node, values map[string]fileValue) error {
	key := prefix + name.Value
	if before, twice := values[key]; twice {
		return fmt.Errorf("%s:%d: %s stands in line %d already", path, name.Line, key, before.line)
	}
	known := settingOf(key)
	switch {
	case known != nil:
		text, err := valueText(known, value)
		if err != nil {
			return fmt.Errorf("%s:%d: %s %w", path, name.Line, key, err)
		}
		values[key] = fileValue{line: name.Line, text: text}
	case key == partnersSection:
		return walkPartners(path, value, values)
	case isRules(key):
		return walkRules(path, key, value, values)
	case isQuotas(key):
		return walkQuotas(path, key, value, values)
	case isSection(key) && value.Kind == yaml.MappingNode:
		return walkFile(path, key+".", value, values)
	case isSection(key) && value.Tag == "!!null": // a section whose lines are all comments
	case isSection(key):
		return fmt.Errorf("%s:%d: %s is a section: want its keys indented below it", path, name.Line, key)
	default:
		_, err := findSetting(key)
		return fmt.Errorf("%s:%d: %w", path, name.Line, err)
	}
	return nil
}

func valueText(key *setting, value *yaml.Node) (string, error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return "", nil
	case value.Kind == yaml.ScalarNode:
		return value.Value, nil
	case value.Kind == yaml.SequenceNode && key.list:
		items := make([]string, len(value.Content))
		for i, item := range value.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("takes a list of plain values")
			}
			items[i] = item.Value
		}
		return strings.Join(items, ","), nil
	case value.Kind == yaml.SequenceNode:
		return "", errors.New("takes one value, not a list")
	}
	return "", errors.New("takes a value, not further keys")
}

// isRules reports whether rules for guests stand below key.
func isRules(key string) bool { _, yes := guestRules[key]; return yes }

// isSection reports whether keys begin with key and a dot.
func isSection(key string) bool {
	for i := range settingTable {
		if strings.HasPrefix(settingTable[i].key, key+".") {
			return true
		}
	}
	return false
}

// newFile returns the text of a settings file that holds values, with a comment
// for every key.
func newFile(values []effective) []byte {
	var b bytes.Buffer
	b.WriteString("# Settings of a gridnode site. A flag counts before GRIDNODE_KEY in the environment,\n" +
		"# that before this file. Changes take effect when the daemon starts.\n")
	section := ""
	for i := range settingTable {
		key, value := &settingTable[i], values[i].Value
		name, indent := key.key, ""
		if before, after, dotted := strings.Cut(key.key, "."); dotted {
			if before != section {
				fmt.Fprintf(&b, "\n%s:\n", before)
			}
			section, name, indent = before, after, "  "
		} else {
			section = ""
			b.WriteByte('\n')
		}
		shown := yamlScalar(value)
		fallback := yamlScalar(key.value)
		if key.list {
			shown, fallback = yamlList(value), yamlList(key.value)
		}
		fmt.Fprintf(&b, "%s# %s (default %s)\n%s%s: %s\n", indent, key.usage, fallback, indent, name, shown)
	}
	return b.Bytes()
}

// yamlScalar returns value as it can stand in the file: plain if YAML reads the
// same text back, quoted otherwise. Every value is read as text and then checked,
// so a number needs no quotes.
func yamlScalar(value string) string {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte("k: "+value+"\n"), &document); err == nil {
		pair := document.Content[0].Content
		if len(pair) == 2 && pair[1].Kind == yaml.ScalarNode && pair[1].Value == value && value != "" {
			return value
		}
	}
	return strconv.Quote(value)
}

func yamlList(value string) string {
	if value == "" {
		return "[]"
	}
	items := strings.Split(value, ",")
	for i, item := range items {
		item = strings.TrimSpace(item)
		var list []string
		if err := yaml.Unmarshal([]byte("["+item+"]"), &list); err != nil || len(list) != 1 || list[0] != item {
			item = strconv.Quote(item) // * and @GROUP mean something else to YAML
		}
		items[i] = item
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// editFile returns text with key set to value, comments kept.
func editFile(path string, text []byte, key *setting, value string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(document.Content) == 0 {
		document = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	mapping := document.Content[0]
	name := key.key
	if section, rest, dotted := strings.Cut(key.key, "."); dotted {
		mapping, name = sectionOf(mapping, section, rest), rest
		if mapping.Kind != yaml.MappingNode {
			*mapping = yaml.Node{Kind: yaml.MappingNode}
		}
	}
	node := entryOf(mapping, name)
	*node = yaml.Node{Kind: yaml.ScalarNode, Value: value, LineComment: node.LineComment}
	if value == "" {
		node.Style = yaml.DoubleQuotedStyle
	}
	if key.list {
		*node = yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: item})
			}
		}
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b.Bytes(), nil
}

// sectionOf returns the section of a key: of several by that name the one that has the key, or
// the first; added if there was none.
func sectionOf(mapping *yaml.Node, section, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if inside := mapping.Content[i+1]; mapping.Content[i].Value == section && inside.Kind == yaml.MappingNode {
			for j := 0; j+1 < len(inside.Content); j += 2 {
				if inside.Content[j].Value == name {
					return inside
				}
			}
		}
	}
	return entryOf(mapping, section)
}

// entryOf returns the value of name in mapping, added if it was not there.
func entryOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	return value
}
