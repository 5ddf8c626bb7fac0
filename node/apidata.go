package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

// jobInputs returns what a spec says that the job reads.
func jobInputs(inputs []api.DataInput) (list []grid.DataSet, err error) {
	for _, in := range inputs {
		set := grid.DataSet{Name: in.Name, Size: grid.SizeUnknown}
		if in.Size != nil {
			if set.Size = *in.Size; set.Size < 0 {
				return nil, fmt.Errorf("inputs: %s of %d bytes", in.Name, set.Size)
			}
		}
		list = append(list, set)
	}
	if err := grid.CheckInputs(list); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	return list, nil
}

// inputsOfJob is the inverse of jobInputs.
func inputsOfJob(list []grid.DataSet) (inputs []api.DataInput) {
	for _, set := range list {
		in := api.DataInput{Name: set.Name}
		if set.Size != grid.SizeUnknown {
			in.Size = &set.Size
		}
		inputs = append(inputs, in)
	}
	return inputs
}

func dataSetOf(s *dataset.Set) api.DataSet {
	return api.DataSet{Name: s.Name, Size: s.Size, Path: s.Path, Folder: s.Folder, Shared: s.Shared, Added: api.Instant(s.Added)}
}

func (a *API) dataSets(w http.ResponseWriter, r *http.Request) error {
	reply := api.DataSetsReply{DataSets: []api.DataSet{}}
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for set := range s.DataSets {
			reply.DataSets = append(reply.DataSets, dataSetOf(set))
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// addDataSet enters a file or directory of this site as a data set that it holds.
func (a *API) addDataSet(w http.ResponseWriter, r *http.Request) error {
	var request api.DataSetRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if !filepath.IsAbs(request.Path) {
		return apiErrorf(api.CodeUsage, "path: %q is not absolute", request.Path)
	}
	if request.Name != "" {
		if err := grid.CheckDataName(request.Name); err != nil {
			return apiErrorf(api.CodeUsage, "name: %v", err)
		}
	}
	set, err := measure(r.Context(), request.Name, filepath.Clean(request.Path))
	if err != nil {
		return apiErrorf(api.CodeUsage, "path: %v", err)
	}
	set.Shared = request.Share
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Hold{Token: token, Set: set} })
	if err != nil {
		return err
	}
	if err := answer.(*dataset.Held).Err; err != nil {
		return apiErrorf(api.CodeRefused, "%v", err)
	}
	return writeJSON(w, api.DataSetReply{DataSet: dataSetOf(&set)})
}

func (a *API) removeDataSet(w http.ResponseWriter, r *http.Request) error {
	var request api.DataSetRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Drop{Token: token, Name: request.Name} })
	if err != nil {
		return err
	}
	if err := answer.(*dataset.Held).Err; err != nil {
		return apiErrorf(api.CodeNotFound, "%v", err)
	}
	return writeJSON(w, struct{}{})
}

// findDataSet asks the federation who holds a data set.
func (a *API) findDataSet(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	if err := grid.CheckDataName(name); err != nil {
		return apiErrorf(api.CodeUsage, "name: %v", err)
	}
	value, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Find{Token: token, Name: name} })
	if err != nil {
		return err
	}
	answer := value.(*dataset.Answer)
	if answer.Err != nil {
		return apiErrorf(api.CodeBusy, "%v", answer.Err)
	}
	reply := api.HoldersReply{Holders: []api.DataHolder{}, Named: answer.Named, Silent: answer.Silent}
	err = a.host.Do(r.Context(), func(s *site.Site) {
		for _, h := range answer.Holders {
			reply.Holders = append(reply.Holders, api.DataHolder{Site: string(h.Site), SiteName: s.SiteName(h.Site), Size: h.Size, Shared: h.Shared})
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// folderMax bounds the files of a directory that is a data set.
const folderMax = 1_000_000

// measure looks at a file or directory that is to be a data set. Without a name it is
// named by its content; a name that is a digest must be that of the content.
func measure(ctx context.Context, name, path string) (dataset.Set, error) {
	set := dataset.Set{DataSet: grid.DataSet{Name: name}, Path: path}
	info, err := os.Stat(path)
	if err != nil {
		return set, err
	}
	byContent := name == "" || len(name) > len(grid.DigestPrefix) && name[:len(grid.DigestPrefix)] == grid.DigestPrefix
	switch {
	case info.IsDir() && byContent:
		return set, fmt.Errorf("%s is a directory, which has no digest: give a name", path)
	case info.IsDir():
		set.Folder = true
		set.Size, err = folderSize(ctx, path)
		return set, err
	case !info.Mode().IsRegular():
		return set, fmt.Errorf("%s is neither a file nor a directory", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return set, err
	}
	defer file.Close()
	set.Size, set.Modified = info.Size(), info.ModTime().UnixNano()
	if !byContent {
		return set, nil
	}
	digest, n, err := digestOf(ctx, file)
	switch {
	case err != nil:
		return set, err
	case n != set.Size:
		return set, fmt.Errorf("%s changes while it is read", path)
	case name != "" && name != digest:
		return set, fmt.Errorf("%s has the digest %s", path, digest)
	}
	set.Name = digest
	return set, nil
}

// digestOf returns the name by which content is known, and its size.
func digestOf(ctx context.Context, r io.Reader) (name string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, &untilDone{ctx, r})
	return grid.DigestPrefix + hex.EncodeToString(hash.Sum(nil)), size, err
}

// untilDone reads until its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

var errFolder = errors.New("it has too many files")

// folderSize returns the bytes of the files below a directory.
func folderSize(ctx context.Context, path string) (size int64, err error) {
	files := 0
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > folderMax {
			return fmt.Errorf("%s: %w: at most %d", path, errFolder, folderMax)
		}
		if !d.Type().IsRegular() {
			return ctx.Err()
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return ctx.Err()
	})
	return size, err
}
