package tools

// The versions of the programs that Smith is built and tested with. They stand here
// and nowhere else; the npm packages' own stand in npm/*/package.json, with the
// checksums of everything below them in package-lock.json.
const (
	temporalVersion = "v1.5.1" // newer ones cannot be installed by go install
	temporalPackage = "github.com/temporalio/cli/cmd/temporal"
)
