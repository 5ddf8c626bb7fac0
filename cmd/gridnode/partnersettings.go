//go:build !client

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gridnode/node/run/slurm"
)

// partnersSection holds what slurm.partition and its like are for jobs of one other site.
const partnersSection = "slurm.partners"

// partnerKey is one thing that can be said of a partner.
type partnerKey struct {
	name string
	set  func(p *slurm.Partner, v string)
}

var partnerKeyTable = []partnerKey{
	{"partition", func(p *slurm.Partner, v string) { p.Partition = v }},
	{"account", func(p *slurm.Partner, v string) { p.Account = v }},
	{"qos", func(p *slurm.Partner, v string) { p.QOS = v }},
	{"options", func(p *slurm.Partner, v string) {
		p.Options = []string{}
		for o := range strings.SplitSeq(v, ",") {
			if o = strings.TrimSpace(o); o != "" {
				p.Options = append(p.Options, o)
			}
		}
	}},
}

// partnerValue is what one line says of a partner.
type partnerValue struct {
	site string
	key  *partnerKey
}

// walkPartners reads the section.
func walkPartners(path string, node *yaml.Node, values map[string]fileValue) error {
	if node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %s is a section: want the names of sites indented below it", path, node.Line, partnersSection)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		site, keys := node.Content[i], node.Content[i+1]
		prefix := partnersSection + "." + site.Value
		if keys.Kind != yaml.MappingNode {
			return fmt.Errorf("%s:%d: %s: want its keys indented below it, such as partition: main", path, site.Line, prefix)
		}
		for i := 0; i+1 < len(keys.Content); i += 2 {
			name, value := keys.Content[i], keys.Content[i+1]
			key := prefix + "." + name.Value
			if before, twice := values[key]; twice {
				return fmt.Errorf("%s:%d: %s stands in line %d already", path, name.Line, key, before.line)
			}
			at := slices.IndexFunc(partnerKeyTable, func(k partnerKey) bool { return k.name == name.Value })
			if at < 0 {
				return fmt.Errorf("%s:%d: unknown key %s%s", path, name.Line, key, didYouMean(prefix+".", name.Value, []string{"partition", "account", "qos", "options"}))
			}
			text, err := valueText(&setting{list: name.Value == "options"}, value)
			if err != nil {
				return fmt.Errorf("%s:%d: %s %w", path, name.Line, key, err)
			}
			values[key] = fileValue{line: name.Line, text: text, partner: &partnerValue{site.Value, &partnerKeyTable[at]}}
		}
	}
	return nil
}

// setPartners takes over what the file says of partners.
func (s *settings) setPartners(path string, file map[string]fileValue) (values []effective) {
	var keys []string
	for key, v := range file {
		if v.partner != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(file[a].line, file[b].line), strings.Compare(a, b)) })
	for _, key := range keys {
		v := file[key]
		if s.slurm.Partners == nil {
			s.slurm.Partners = make(map[string]slurm.Partner)
		}
		p := s.slurm.Partners[v.partner.site]
		v.partner.key.set(&p, v.text)
		s.slurm.Partners[v.partner.site] = p
		values = append(values, effective{key, v.text, fmt.Sprintf("%s:%d", path, v.line)})
	}
	return values
}
