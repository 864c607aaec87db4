package sandbox

import (
	"embed"
	"io/fs"
)

//go:embed contracts/*.yaml
var contractFiles embed.FS

// Contracts are the contracts of the tools that these systems offer, one YAML
// file each, at the root of the returned file system. Paths are relative to the
// name of the system, which a tool's name begins with.
func Contracts() fs.FS {
	files, err := fs.Sub(contractFiles, "contracts")
	if err != nil { // only an invalid path can fail, and this one is constant
		return contractFiles
	}
	return files
}
