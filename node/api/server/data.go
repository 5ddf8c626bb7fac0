package server

import (
	"fmt"
	"net/http"
	"path/filepath"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/api"
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

func (a *Server) dataSets(w http.ResponseWriter, r *http.Request) error {
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
func (a *Server) addDataSet(w http.ResponseWriter, r *http.Request) error {
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

func (a *Server) removeDataSet(w http.ResponseWriter, r *http.Request) error {
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

// findDataSet asks the federation who holds a data set.
func (a *Server) findDataSet(w http.ResponseWriter, r *http.Request) error {
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
