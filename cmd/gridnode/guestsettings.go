//go:build !client

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"go.yaml.in/yaml/v3"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/guest"
	engine "gridnode/node/run" // run is what this program does
	"gridnode/node/sandbox"
)

// guestSettings are the keys about guests, but for the rules themselves.
var guestSettings = []setting{
	{key: "guests.on-ban", value: "finish", usage: "what becomes of what a banned or revoked site runs here: finish (it ends by itself) or cancel",
		set: func(s *settings, v string) (err error) { s.guests.OnBan, err = guest.ParseOnBan(v); return err }},
	{key: "guests.zone", value: "local", usage: "time zone of hours in rules for guests: local (this machine's), UTC, or a name such as Europe/Berlin",
		set: func(s *settings, v string) (err error) { s.guests.Zone, err = zoneOf(v); return err }},
	{key: "guests.account", value: "", usage: "account as which a daemon of root's runs programs of other sites without a sandbox (sandbox.walls: none), by name, not root's; empty: it refuses them",
		set: func(s *settings, v string) (err error) { s.guestAccount, err = guestAccount(v); return err }},
}

// guestAccount returns the account of that name, which is not root's and has none of root's
// groups.
func guestAccount(name string) (*engine.Account, error) {
	if name == "" {
		return nil, nil
	}
	a, err := access.Find(name)
	if err != nil {
		return nil, err
	}
	if a.UID == 0 || a.GID == 0 || slices.Contains(a.Groups, 0) {
		return nil, fmt.Errorf("%q: it is root's, or in the group of root: want an account that may do nothing special", name)
	}
	return &engine.Account{Account: sandbox.Account{User: a.UID, Group: a.GID, Groups: a.Groups}, Name: a.Name}, nil
}

func zoneOf(v string) (*time.Location, error) {
	if v == "local" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(v)
	if err != nil || v == "" {
		return nil, fmt.Errorf("%q: want local, UTC, or the name of a zone that this machine knows, such as Europe/Berlin", v)
	}
	return zone, nil
}

// ruleKey is one thing that a rule can say.
type ruleKey struct {
	name string
	set  func(r *guest.Rule, v string) error
}

// ruleKeys are what a rule can say, in the order of the manual.
var ruleKeys = []ruleKey{
	{"access", func(r *guest.Rule, v string) (err error) { r.Access, err = answerOf(v); return err }},
	{"processors", func(r *guest.Rule, v string) (err error) { r.Processors, err = intBetween(v, 1, 1<<24); return err }},
	{"share", func(r *guest.Rule, v string) error {
		n, err := strconv.ParseInt(strings.TrimSuffix(v, "%"), 10, 64)
		if err != nil || n < 1 || n > 100 {
			return fmt.Errorf("%q: want a part of the site's processors in percent, 1 to 100", v)
		}
		r.Share = 10 * n
		return nil
	}},
	{"jobs", func(r *guest.Rule, v string) (err error) { r.Jobs, err = intBetween(v, 1, 1e7); return err }},
	{"leases", func(r *guest.Rule, v string) (err error) {
		if r.Lent, err = intBetween(v, 0, 1<<24); r.Lent == 0 {
			r.Lent = guest.None
		}
		return err
	}},
	{"gpus", func(r *guest.Rule, v string) (err error) {
		if r.GPUs, err = intBetween(v, 0, gpusMax); r.GPUs == 0 {
			r.GPUs = guest.None
		}
		return err
	}},
	{"time", func(r *guest.Rule, v string) (err error) {
		r.Time, err = spanBetween(v, grid.Second, grid.SpanMax)
		return err
	}},
	{"memory", func(r *guest.Rule, v string) (err error) { r.Memory, err = sizeBetween(v, 1<<20, sizeMax); return err }},
	{"disk", func(r *guest.Rule, v string) (err error) { r.Disk, err = sizeBetween(v, 1<<20, 1<<40); return err }},
	{"network", func(r *guest.Rule, v string) (err error) { r.Network, err = answerOf(v); return err }},
	{"price", func(r *guest.Rule, v string) (err error) {
		if r.Price, err = thousandths(v); err == nil && r.Price == 0 {
			err = fmt.Errorf("%q: want more than 0", v)
		}
		return err
	}},
	{"hours", func(r *guest.Rule, v string) (err error) { r.Hours, err = guest.ParseHours(v); return err }},
	{"run", func(r *guest.Rule, v string) error {
		for word := range strings.SplitSeq(v, ",") {
			kind, known := runWords[strings.TrimSpace(word)]
			if !known {
				return fmt.Errorf("%q: want a list of sandbox, wasm, datasets", v)
			}
			r.Runs |= kind
		}
		return nil
	}},
}

// runWords are what may run.
var runWords = map[string]guest.Runs{"sandbox": guest.Programs, "datasets": guest.DataSets, "wasm": guest.Modules}

func answerOf(v string) (guest.Answer, error) {
	switch v {
	case "allow":
		return guest.Allow, nil
	case "deny":
		return guest.Deny, nil
	}
	return guest.Unsaid, fmt.Errorf("%q: want allow or deny", v)
}

func sizeBetween(v string, low, high int64) (int64, error) {
	n, err := parseSize(v, 1)
	if err == nil && (n < low || n > high) {
		err = fmt.Errorf("%q: want 1M to %dT", v, high>>40)
	}
	return n, err
}

// guestRules are the sections of rules, by whom they are about.
var guestRules = map[string]guest.Scope{"guests.everyone": guest.Everyone, "guests.orgs": guest.Organisation, "guests.sites": guest.Site}

// rulesMax bounds the rules of a site.
const rulesMax = 1024

// ruleValue is what one line of a rule says.
type ruleValue struct {
	partner guest.Partner
	key     string // of ruleKeys
}

// walkRules reads the rules of one section.
func walkRules(path, section string, node *yaml.Node, values map[string]fileValue) error {
	if node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %s is a section: want its keys indented below it", path, node.Line, section)
	}
	scope := guestRules[section]
	if scope == guest.Everyone {
		return walkRule(path, section, guest.Partner{}, node, values)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, rule := node.Content[i], node.Content[i+1]
		if rule.Kind != yaml.MappingNode {
			return fmt.Errorf("%s:%d: %s.%s: want what the rule says indented below it, such as access: deny", path, name.Line, section, name.Value)
		}
		if err := walkRule(path, section+"."+name.Value, guest.Partner{Scope: scope, Name: name.Value}, rule, values); err != nil {
			return err
		}
	}
	return nil
}

func walkRule(path, prefix string, p guest.Partner, node *yaml.Node, values map[string]fileValue) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + "." + name.Value
		if before, twice := values[key]; twice {
			return fmt.Errorf("%s:%d: %s stands in line %d already", path, name.Line, key, before.line)
		}
		if findRuleKey(name.Value) == nil {
			return fmt.Errorf("%s:%d: unknown key %s%s", path, name.Line, key, didYouMean(prefix+".", name.Value, ruleKeyNames()))
		}
		text, err := valueText(&setting{list: name.Value == "hours" || name.Value == "run"}, value)
		if err != nil {
			return fmt.Errorf("%s:%d: %s %w", path, name.Line, key, err)
		}
		values[key] = fileValue{line: name.Line, text: text, rule: &ruleValue{p, name.Value}}
	}
	return nil
}

func findRuleKey(name string) *ruleKey {
	for i := range ruleKeys {
		if ruleKeys[i].name == name {
			return &ruleKeys[i]
		}
	}
	return nil
}

func ruleKeyNames() (names []string) {
	for _, k := range ruleKeys {
		names = append(names, k.name)
	}
	return names
}

// setRules makes the rules that stand in the file, and returns what they say, line by line.
func (s *settings) setRules(path string, file map[string]fileValue) (values []effective, problems []error) {
	var keys []string
	for key, v := range file {
		if v.rule != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(file[a].line, file[b].line), strings.Compare(a, b)) })
	s.ruleOrigins = make(map[ruleValue]string)
	for _, key := range keys {
		v := file[key]
		origin := fmt.Sprintf("%s:%d", path, v.line)
		values = append(values, effective{key, v.text, origin})
		r := s.ruleOf(v.rule.partner)
		if err := findRuleKey(v.rule.key).set(r, v.text); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", key, origin, err))
		}
		s.ruleOrigins[*v.rule] = origin
		if whole := (ruleValue{partner: v.rule.partner}); s.ruleOrigins[whole] == "" {
			s.ruleOrigins[whole] = origin
		}
	}
	if len(s.guests.Rules) > rulesMax {
		problems = append(problems, fmt.Errorf("guests: %d rules, at most %d", len(s.guests.Rules), rulesMax))
	}
	return values, problems
}

// ruleOf returns the rule for a partner, made if there is none.
func (s *settings) ruleOf(p guest.Partner) *guest.Rule {
	for i := range s.guests.Rules {
		if s.guests.Rules[i].Partner == p {
			return &s.guests.Rules[i]
		}
	}
	s.guests.Rules = append(s.guests.Rules, guest.Rule{Partner: p})
	return &s.guests.Rules[len(s.guests.Rules)-1]
}

// checkGuests returns what contradicts itself, or could never count, in the rules of a home.
func (s *settings) checkGuests(home string) error {
	if len(s.guests.Rules) == 0 {
		return nil
	}
	around := guest.Around{Name: s.name, Processors: s.processors, GPUs: int64(len(s.gpus.devices)), Jobs: s.foreign, Lends: s.lend, Head: grid.SiteID(s.packHead)}
	if key, err := loadKey(home); err == nil { // else whoever needs it says so
		if id, err := peer.IDFromPrivateKey(key); err == nil {
			around.Self = grid.SiteID(id.String())
		}
	}
	card, err := loadCard(home)
	around.Open = card == nil && err == nil
	var problems []error
	for _, p := range s.guests.Check(around) {
		key := "guests." + p.Partner.String()
		if p.Key != "" {
			key += "." + p.Key
		}
		origin := cmp.Or(s.ruleOrigins[ruleValue{p.Partner, p.Key}], s.ruleOrigins[ruleValue{partner: p.Partner}])
		problems = append(problems, fmt.Errorf("%s (%s): %s", key, origin, p.Text))
	}
	return errors.Join(problems...)
}
