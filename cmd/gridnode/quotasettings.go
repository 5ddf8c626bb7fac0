//go:build !client

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gridnode/grid"
	"gridnode/node/quota"
)

// Sections of limits of users: of all, and of each.
const (
	quotaEveryone = "users.everyone"
	quotaAccounts = "users.accounts"
)

// quotaKey is one limit.
type quotaKey struct {
	name string
	set  func(l *quota.Limits, v string) error
}

var quotaKeyTable = []quotaKey{
	{"max-jobs", func(l *quota.Limits, v string) (err error) { l.Jobs, err = boundOf(v, 1e7); return err }},
	{"running", func(l *quota.Limits, v string) (err error) { l.Running, err = boundOf(v, 1e7); return err }},
	{"processors", func(l *quota.Limits, v string) (err error) { l.Processors, err = boundOf(v, 1<<24); return err }},
	{"share", func(l *quota.Limits, v string) (err error) { l.Share, err = intBetween(v, 1, 1000); return err }},
	{"spend", func(l *quota.Limits, v string) (err error) { l.Spend, err = spendOf(v); return err }},
}

// boundOf reads a number, or that there is no bound.
func boundOf(v string, high int64) (int64, error) {
	if v == "none" {
		return quota.None, nil
	}
	n, err := intBetween(v, 1, high)
	if err != nil {
		return 0, fmt.Errorf("%w, or none", err)
	}
	return n, nil
}

// spendOf reads how much may be spent in a span.
func spendOf(v string) (s quota.Spend, err error) {
	if v == "none" {
		return quota.Spend{Span: quota.None}, nil
	}
	credits, span, both := strings.Cut(v, "/")
	if s.Credits, err = grid.ParseCredits(strings.TrimSpace(credits)); err == nil && both && s.Credits >= 0 {
		if s.Span, err = spanBetween(strings.TrimSpace(span), grid.Minute, 366*grid.Day); err == nil {
			return s, nil
		}
	}
	return s, fmt.Errorf("%q: want credits in a span of 1m to 366d, such as 100/30d, or none", v)
}

// quotaValue is what one line says of one user, or of all.
type quotaValue struct {
	account string // empty: everyone
	key     *quotaKey
}

// isQuotas reports whether limits of users stand below key.
func isQuotas(key string) bool { return key == quotaEveryone || key == quotaAccounts }

// walkQuotas reads one of the sections.
func walkQuotas(path, section string, node *yaml.Node, values map[string]fileValue) error {
	switch {
	case node.Tag == "!!null":
		return nil
	case node.Kind != yaml.MappingNode:
		return fmt.Errorf("%s:%d: %s is a section: want its keys indented below it", path, node.Line, section)
	case section == quotaEveryone:
		return walkQuota(path, section, "", node, values)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, keys := node.Content[i], node.Content[i+1]
		prefix := section + "." + name.Value
		if keys.Kind != yaml.MappingNode || name.Value == "" {
			return fmt.Errorf("%s:%d: %s: want the name of an account, and its limits indented below it, such as max-jobs: 100", path, name.Line, prefix)
		}
		if err := walkQuota(path, prefix, name.Value, keys, values); err != nil {
			return err
		}
	}
	return nil
}

func walkQuota(path, prefix, account string, node *yaml.Node, values map[string]fileValue) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + "." + name.Value
		if before, twice := values[key]; twice {
			return fmt.Errorf("%s:%d: %s stands in line %d already", path, name.Line, key, before.line)
		}
		at := slices.IndexFunc(quotaKeyTable, func(k quotaKey) bool { return k.name == name.Value })
		if at < 0 {
			var names []string
			for i := range quotaKeyTable {
				names = append(names, quotaKeyTable[i].name)
			}
			return fmt.Errorf("%s:%d: unknown key %s%s", path, name.Line, key, didYouMean(prefix+".", name.Value, names))
		}
		text, err := valueText(&setting{}, value)
		if err != nil {
			return fmt.Errorf("%s:%d: %s %w", path, name.Line, key, err)
		}
		values[key] = fileValue{line: name.Line, text: text, quota: &quotaValue{account, &quotaKeyTable[at]}}
	}
	return nil
}

// setQuotas takes over the limits that stand in the file, and returns them line by line.
func (s *settings) setQuotas(path string, file map[string]fileValue) (values []effective, problems []error) {
	var keys []string
	for key, v := range file {
		if v.quota != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(file[a].line, file[b].line), strings.Compare(a, b)) })
	s.quotas.Users = make(map[string]quota.Limits)
	for _, key := range keys {
		v := file[key]
		origin := fmt.Sprintf("%s:%d", path, v.line)
		values = append(values, effective{key, v.text, origin})
		limits := s.quotas.Everyone
		if v.quota.account != "" {
			limits = s.quotas.Users[v.quota.account]
		}
		if err := v.quota.key.set(&limits, v.text); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", key, origin, err))
		}
		if v.quota.account == "" {
			s.quotas.Everyone = limits
		} else {
			s.quotas.Users[v.quota.account] = limits
		}
	}
	return values, problems
}
