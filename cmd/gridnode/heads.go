//go:build !client

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/coalloc/muscle"
)

// setMembers reads sites that this one heads, separated by commas: IDs, addresses
// with /p2p/ID, which the node then joins, or names.
func (s *settings) setMembers(v string) error {
	for text := range strings.SplitSeq(v, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, err := s.siteText(text)
		if err != nil {
			if name, err = checkName(text); err != nil {
				return fmt.Errorf("%q: want the ID of a site, its name, or an address that ends in /p2p/ID", text)
			}
		}
		if slices.Contains(s.pack.Members, name) {
			return fmt.Errorf("%q is named twice", text)
		}
		s.pack.Members = append(s.pack.Members, name)
	}
	if n := len(s.pack.Members); n > muscle.MembersMax {
		return fmt.Errorf("%d sites, at most %d", n, muscle.MembersMax)
	}
	return nil
}

// setHead reads the site that may head this one.
func (s *settings) setHead(v string) error {
	if v == "" {
		return nil
	}
	head, err := s.siteText(v)
	if err != nil {
		return fmt.Errorf("%q: want the ID of a site, or an address that ends in /p2p/ID: names prove nothing", v)
	}
	s.packHead = head
	return nil
}

// siteText returns the ID in an ID or in an address that ends in /p2p/ID, which the
// node is to join.
func (s *settings) siteText(text string) (id string, err error) {
	if i := strings.LastIndex(text, "/p2p/"); i >= 0 {
		join, err := addresses(text, readPeer)
		if err != nil {
			return "", err
		}
		s.muscleJoin = append(s.muscleJoin, join...)
		text = text[i+len("/p2p/"):]
	}
	_, err = peer.Decode(text)
	return text, err
}
