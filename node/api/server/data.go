package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/content"
	"gridnode/node/run"
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

// holdings answers what is asked of data sets.
type holdings struct{ *Server }

func (a holdings) dataSets(w http.ResponseWriter, r *http.Request) error {
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
func (a holdings) addDataSet(w http.ResponseWriter, r *http.Request) error {
	var request api.DataSetRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	if !filepath.IsAbs(request.Path) {
		return errorf(api.CodeUsage, "path: %q is not absolute", request.Path)
	}
	if request.Name != "" {
		if err := grid.CheckDataName(request.Name); err != nil {
			return errorf(api.CodeUsage, "name: %v", err)
		}
	}
	set, err := run.Measure(r.Context(), request.Name, filepath.Clean(request.Path))
	if err != nil {
		return errorf(api.CodeUsage, "path: %v", err)
	}
	set.Shared = request.Share
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Hold{Token: token, Set: set} })
	if err != nil {
		return err
	}
	if err := answer.(*dataset.Held).Err; err != nil {
		return errorf(api.CodeRefused, "%v", err)
	}
	return writeJSON(w, api.DataSetReply{DataSet: dataSetOf(&set)})
}

func (a holdings) removeDataSet(w http.ResponseWriter, r *http.Request) error {
	var request api.DataSetRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	answer, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Drop{Token: token, Name: request.Name} })
	if err != nil {
		return err
	}
	if err := answer.(*dataset.Held).Err; err != nil {
		return errorf(api.CodeNotFound, "%v", err)
	}
	return writeJSON(w, struct{}{})
}

// modulesPath takes bodies that are longer than others.
const modulesPath = "/v1/modules"

// putModule keeps a module for jobs that will be submitted.
func (a *Server) putModule(w http.ResponseWriter, r *http.Request) error {
	module, err := a.host.PutModule(r.Context(), r.Body)
	if err != nil {
		return err
	}
	return writeJSON(w, api.ModuleReply{Module: module.Digest, Size: module.Size})
}

// findDataSet asks the federation who holds a data set.
func (a holdings) findDataSet(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	if err := grid.CheckDataName(name); err != nil {
		return errorf(api.CodeUsage, "name: %v", err)
	}
	value, err := a.host.Ask(r.Context(), func(token uint64) grid.Input { return &dataset.Find{Token: token, Name: name} })
	if err != nil {
		return err
	}
	answer := value.(*dataset.Found)
	if answer.Err != nil {
		return errorf(api.CodeBusy, "%v", answer.Err)
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

// chunksMax bounds how many chunks are asked about at once.
const chunksMax = 100_000

// jobFiles answers what is asked of files that jobs bring along, and leave.
type jobFiles struct{ *Server }

var errNoContent = errors.New("this node keeps no files of jobs")

func (a jobFiles) store() (*content.Store, error) {
	if s := a.host.Content(); s != nil {
		return s, nil
	}
	return nil, errorf(api.CodeRefused, "%v", errNoContent)
}

// missing tells which chunks are not here.
func (a jobFiles) missing(w http.ResponseWriter, r *http.Request) error {
	var request api.ContentRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	if len(request.Chunks) > chunksMax {
		return errorf(api.CodeUsage, "chunks: %d at once, at most %d", len(request.Chunks), chunksMax)
	}
	reply := api.ContentReply{Chunks: []string{}, Most: a.host.FilesMax()}
	for _, text := range request.Chunks {
		d, err := content.ParseDigest(text)
		if err != nil {
			return errorf(api.CodeUsage, "chunks: %v", err)
		}
		if !store.Has(d) {
			reply.Chunks = append(reply.Chunks, text)
		}
	}
	return writeJSON(w, reply)
}

// put keeps a chunk for a job that will be submitted.
func (a jobFiles) put(w http.ResponseWriter, r *http.Request) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	if err := a.cfg.People.MayRun(askerOf(r.Context()).UID); err != nil {
		return errorf(api.CodeDenied, "%v", err)
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, content.ChunkMax+1))
	switch {
	case err != nil:
		return err
	case len(b) == 0 || len(b) > content.ChunkMax:
		return errorf(api.CodeUsage, "a chunk of %d bytes, want 1 to %d", len(b), content.ChunkMax)
	}
	d, err := store.Put(b)
	if err != nil {
		return roomError(err)
	}
	return writeJSON(w, api.ContentReply{Chunks: []string{d.String()}})
}

// roomError is what users see of one.
func roomError(err error) error {
	if errors.Is(err, content.ErrRoom) {
		return errorf(api.CodeLimit, "%v", err)
	}
	return err
}

// putTree keeps a tree whose chunks are here, durably.
func (a jobFiles) putTree(w http.ResponseWriter, r *http.Request) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	if err := a.cfg.People.MayRun(askerOf(r.Context()).UID); err != nil {
		return errorf(api.CodeDenied, "%v", err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	tree, err := content.DecodeTree(b)
	if err != nil {
		return errorf(api.CodeUsage, "%v", err)
	}
	if most := a.host.FilesMax(); tree.Size() > most {
		return errorf(api.CodeLimit, "%d bytes, and a job brings along at most %d (files.job)", tree.Size(), most)
	}
	if missing, size := store.Missing(tree.Chunks); len(missing) > 0 {
		return errorf(api.CodeRefused, "%d chunks of %d bytes of the tree are not here: hand them over first (POST /v1/content)", len(missing), size)
	}
	d, err := store.Put(b)
	if err != nil {
		return roomError(err)
	}
	if err := store.Sync(); err != nil {
		return err
	}
	return writeJSON(w, api.JobFiles{Tree: d.String(), Size: tree.Size(), Count: tree.Count()})
}

// filesOf returns the files that a spec names.
func (by *submitter) filesOf(spec *api.JobSpec) (*grid.Files, error) {
	s := spec.Files
	if s == nil {
		return nil, nil
	}
	f := &grid.Files{Tree: s.Tree, Stdin: s.Stdin, Out: s.Out, Dir: s.Dir, Drop: s.Drop}
	for _, pattern := range f.Out {
		if err := content.CheckPattern(pattern); err != nil {
			return nil, fmt.Errorf("out: %w", err)
		}
	}
	if f.Dir != "" && !by.writes {
		return nil, errors.New("dir: the daemon may not write files for you")
	}
	if f.Tree == "" {
		return f, f.Check()
	}
	d, err := content.ParseDigest(f.Tree)
	if err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	store := by.content
	if store == nil {
		return nil, errNoContent
	}
	tree, err := store.Tree(d)
	if err != nil {
		return nil, fmt.Errorf("tree %s is not here: hand it over first (POST /v1/trees)", f.Tree)
	}
	store.Has(d)
	if _, ok := tree.Find(f.Stdin); f.Stdin != "" && !ok {
		return nil, fmt.Errorf("stdin: there is no %q in the tree", f.Stdin)
	}
	f.Size, f.Count = tree.Size(), tree.Count()
	return f, f.Check()
}

// list tells what has become of the files that a job has left.
func (a jobFiles) list(w http.ResponseWriter, r *http.Request) error {
	wait, err := strconv.ParseBool(r.URL.Query().Get("wait"))
	if text := r.URL.Query().Get("wait"); err != nil && text != "" {
		return errorf(api.CodeUsage, "wait: %q, want true or false", text)
	}
	id, err := a.mine(r)
	if err != nil {
		return err
	}
	brought, tree, err := a.host.JobFiles(r.Context(), id, wait)
	if err != nil {
		return err
	}
	reply := api.JobFilesReply{
		ID: id.String(), State: brought.State, Dir: brought.Dir, Count: brought.Count, Size: brought.Size, Left: brought.Left, Why: brought.Why,
	}
	if tree != nil {
		for i := range tree.Entries {
			reply.Files = append(reply.Files, jobFileOf(&tree.Entries[i]))
		}
	}
	return writeJSON(w, reply)
}

var kindNames = [...]string{content.File: "file", content.Folder: "folder", content.Link: "link"}

func jobFileOf(e *content.Entry) api.JobFile {
	f := api.JobFile{Name: e.Name, Kind: kindNames[e.Kind], Size: e.Size, Mode: uint32(e.Mode), Target: e.Target}
	if !utf8.ValidString(e.Name) {
		f.Bytes = []byte(e.Name)
	}
	if e.Kind == content.File {
		f.Time = api.Instant(e.Modified / 1000)
	}
	return f
}

// mine returns the job of a request, if its files are the asker's.
func (a jobFiles) mine(r *http.Request) (grid.JobID, error) {
	ids, err := a.identify(r.Context(), []string{r.PathValue("id")})
	if err == nil {
		err = a.ofAsker(r.Context(), ids)
	}
	if err != nil {
		return grid.JobID{}, err
	}
	return ids[0], nil
}

// file gives one file that a job has left.
func (a jobFiles) file(w http.ResponseWriter, r *http.Request) error {
	id, err := a.mine(r)
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("name")
	_, tree, err := a.host.JobFiles(r.Context(), id, false)
	if err != nil {
		return err
	}
	if tree == nil {
		return errorf(api.CodeNotFound, "files of job %s are not here, or not kept any more", id)
	}
	e, ok := tree.Find(name)
	if !ok || e.Kind != content.File {
		return errorf(api.CodeNotFound, "job %s has left no file %q", id, name)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(e.Size, 10))
	return content.Copy(w, tree, name, func(c content.Chunk) ([]byte, error) { return store.Get(c.Digest) })
}
