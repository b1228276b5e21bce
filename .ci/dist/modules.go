package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// modules has the Go modules from which the programs were built. Go writes this list into each program, and addPrograms reads the list from the
// programs.
type modules struct {
	versions map[string]string // version of each module; the key is its path
	compiler string            // version of Go that compiled the programs
}

// addPrograms adds the modules that are compiled into the programs of a folder, with their versions. It also sets the version of the compiler.
func (m *modules) addPrograms(t target, folder string) error {
	if m.versions == nil {
		m.versions = map[string]string{}
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(folder, t.fileName(program)))
		if err != nil {
			return err
		}
		m.compiler = info.GoVersion
		for _, module := range info.Deps {
			m.versions[module.Path] = module.Version
		}
	}
	return nil
}

// writeModules writes the modules as a CycloneDX file (SBOM).
func (r *release) writeModules(m modules) (err error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cdx.Component{Type: cdx.ComponentTypeApplication, BOMRef: "reeltally", Name: "reeltally", Version: r.version},
	}
	components := []cdx.Component{{Type: cdx.ComponentTypeLibrary, BOMRef: "std", Name: "std", Version: m.compiler,
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(m.compiler, "go")}}
	for path, version := range m.versions {
		purl := "pkg:golang/" + path + "@" + version
		components = append(components, cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: path, Version: version, PackageURL: purl})
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.Name, b.Name) })
	bom.Components = &components
	out, err := os.Create(filepath.Join(r.out, "sbom.cdx.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// writeProvenance writes provenance.json, an unsigned statement in the format of in-toto. It says that the files of the release were built
// from the commit.
func (r *release) writeProvenance(files map[string]string, compiler string) error {
	type object = map[string]any
	var subjects []object
	for name, sum := range files {
		subjects = append(subjects, object{"name": name, "digest": object{"sha256": sum}})
	}
	slices.SortFunc(subjects, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	const repository = "https://github.com/reeltally/reeltally"
	statement, err := json.MarshalIndent(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            repository + "/blob/main/.ci/dist",
				"externalParameters":   object{"command": "make dist", "version": r.version},
				"internalParameters":   object{"go": compiler},
				"resolvedDependencies": []object{{"uri": "git+" + repository, "digest": object{"gitCommit": r.revision}}},
			},
			"runDetails": object{"builder": object{"id": repository + "/blob/main/Makefile"}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "provenance.json"), append(statement, '\n'), 0o644)
}
