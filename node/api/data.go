package api

// DataInput is a data set that a job reads.
type DataInput struct {
	Name string `json:"name"`           // by which the federation knows it
	Size *int64 `json:"size,omitempty"` // bytes; default: what its holders say
}

// DataSet is a data set that this site holds, as users see it.
type DataSet struct {
	Name   string  `json:"name"`
	Size   int64   `json:"size"`   // bytes
	Path   string  `json:"path"`   // of the file or directory
	Folder bool    `json:"folder"` // it is a directory
	Shared bool    `json:"shared"` // other sites may copy it
	Added  Instant `json:"added"`
}

// DataSetsReply answers GET /v1/datasets.
type DataSetsReply struct {
	DataSets []DataSet `json:"dataSets"`
}

// DataSetRequest is the body of POST /v1/datasets and of POST /v1/datasets/remove.
type DataSetRequest struct {
	Name  string `json:"name,omitempty"`  // default: sha256: and the digest of the file
	Path  string `json:"path,omitempty"`  // absolute
	Share bool   `json:"share,omitempty"` // other sites may copy it
}

// DataSetReply answers POST /v1/datasets.
type DataSetReply struct {
	DataSet DataSet `json:"dataSet"`
}

// DataHolder is a site that holds a data set.
type DataHolder struct {
	Site     string `json:"site"`     // ID
	SiteName string `json:"siteName"` // the same for people
	Size     int64  `json:"size"`     // bytes, as it says
	Shared   bool   `json:"shared"`   // others may copy it
}

// HoldersReply answers GET /v1/datasets/find.
type HoldersReply struct {
	Holders []DataHolder `json:"holders"`
	Named   int          `json:"named"`  // other sites that the DHT named
	Silent  int          `json:"silent"` // of those, how many have not answered
}
