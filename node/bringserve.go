package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/site"
)

// fetchProtocol is how a site copies a data set from one that holds it: a FetchRequest,
// then messages FetchChunk, length-delimited messages of dataset.proto.
const fetchProtocol = "/gridnode/fetch/1.0.0"

const (
	fetchChunk   = 48 << 10         // bytes of data in one message
	fetchIdleMax = 30 * time.Second // for one message to come or to leave
	fetchesMax   = 16               // data sets being copied from here at the same time
)

// serveFetch sends a data set that this site shares.
func (h *Host) serveFetch(from grid.SiteID, s network.Stream) error {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.Reset() })
	defer stop()
	s.SetDeadline(time.Now().Add(fetchIdleMax))
	var request wirepb.FetchRequest
	if err := wire.ReadProto(bufio.NewReader(s), &request); err != nil {
		return err
	}
	if err := grid.CheckDataName(request.Name); err != nil {
		return wire.Malformed("%v", err)
	}
	if h.copying.Add(1) > fetchesMax {
		h.copying.Add(-1)
		return wire.WriteProto(s, &wirepb.FetchChunk{Refused: []byte("busy")})
	}
	defer h.copying.Add(-1)
	file, held, why := h.shared(ctx, request.Name)
	if why != "" {
		return wire.WriteProto(s, &wirepb.FetchChunk{Refused: []byte(why)})
	}
	defer file.Close()
	h.log.Info("a data set is copied", "name", held.Name, "bytes", held.Size, "by", from)
	if err := wire.WriteProto(s, &wirepb.FetchChunk{Held: true, Size: held.Size}); err != nil {
		return err
	}
	buffer := make([]byte, fetchChunk)
	for left := held.Size; left > 0; {
		n, err := io.ReadFull(file, buffer[:min(left, fetchChunk)])
		if err != nil {
			return fmt.Errorf("data set %s: %w", held.Name, err) // it was cut short
		}
		s.SetDeadline(time.Now().Add(fetchIdleMax))
		if err := wire.WriteProto(s, &wirepb.FetchChunk{Data: buffer[:n]}); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// shared opens a data set that others may copy, or says why there is none.
func (h *Host) shared(ctx context.Context, name string) (file *os.File, held dataset.Set, why string) {
	known := false
	if err := h.Do(ctx, func(s *site.Site) { held, known = s.DataSet(name) }); err != nil {
		return nil, held, "stopping"
	}
	if digest, addressed := strings.CutPrefix(name, grid.DigestPrefix); addressed && !known && h.modules != nil {
		return h.modules.shared(digest)
	}
	switch {
	case !known:
		return nil, held, "not held"
	case !held.Shared:
		return nil, held, "not shared"
	}
	file, err := os.Open(held.Path)
	if err == nil {
		if err = intact(&held); err != nil {
			file.Close()
		}
	}
	if err != nil {
		h.log.Warn("a data set that this site has announced is not there", "error", err)
		return nil, held, "not there any more" // where it was is nobody's business
	}
	return file, held, ""
}
