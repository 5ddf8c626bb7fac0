package run

import (
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
)

// rankEnv tells a task of a gang who it is and where the others are.
func rankEnv(r *grid.Rank) []string {
	part, local, size := r.Gang.Part(r.Number)
	env := []string{
		"GRIDNODE_RANK=" + strconv.Itoa(r.Number),
		"GRIDNODE_NTASKS=" + strconv.Itoa(len(r.Addresses)),
		"GRIDNODE_COMPONENT=" + strconv.Itoa(part),
		"GRIDNODE_COMPONENTS=" + strconv.Itoa(len(r.Gang.Parts)),
		"GRIDNODE_LOCAL_RANK=" + strconv.Itoa(local),
		"GRIDNODE_LOCAL_NTASKS=" + strconv.Itoa(size),
		"GRIDNODE_PEERS=" + strings.Join(r.Addresses, ","),
		"GRIDNODE_PEER_SITES=" + strings.Join(siteTexts(r.Gang.Sites()), ","),
	}
	if len(r.Inputs) > 0 {
		env = append(env, "GRIDNODE_INPUTS="+strconv.Itoa(len(r.Inputs)))
	}
	for i, path := range r.Inputs {
		env = append(env, "GRIDNODE_INPUT_"+strconv.Itoa(i)+"="+path)
	}
	if len(r.Addresses) > 0 {
		env = append(env, "GRIDNODE_RENDEZVOUS="+r.Addresses[0])
	}
	return env
}

func siteTexts(sites []grid.SiteID) []string {
	texts := make([]string, len(sites))
	for i := range sites {
		texts[i] = string(sites[i])
	}
	return slices.Clip(texts)
}
