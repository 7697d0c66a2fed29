package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// room is a folder of the house, and what of ours may be imported there. "internal"
// stands for every package below it.
type room struct {
	name  string
	may   []string
	tests []string // what its tests may import besides
}

// rooms is the rule of the house: an import only ever points down. The first room
// that a package is in counts.
func rooms() []room {
	doubles := []string{"internal/slackbox", "internal/githubbox", "internal/standin", "internal/tools", "internal/failpoint"}
	return []room{
		{name: "rules"},
		{name: "internal/failpoint"},
		// The stack starts everything on one machine, so it may know everything but the mains.
		{name: "internal/stack", may: []string{"rules", "internal", "activities", "workflows", "starter", "worker"}},
		// What arrived in a session is read where its hooks write it.
		{name: "internal/terminal", may: []string{"rules", "internal/failpoint", "internal/outbox"}, tests: doubles},
		{name: "internal", may: []string{"rules", "internal/failpoint"}, tests: doubles},
		{name: "activities", may: []string{"rules", "internal"}},
		// Scenarios act on a running system: they stand beside the workflows, and are none.
		{name: scenarios, may: []string{"rules", "internal", "workflows"}},
		{name: "workflows", may: []string{"rules", "activities"}, tests: []string{"internal/tools"}},
		{name: "signals", may: []string{"rules", "internal/config", "activities", "workflows"}},
		{name: "starter", may: []string{"rules", "internal", "workflows", "signals"}},
		{name: "worker", may: []string{"rules", "internal", "activities", "workflows", "signals"}},
		{name: "replaytests", may: []string{"rules", "internal", "activities", "workflows", "histories"}},
		{name: "histories"},
		{name: "house"},
		{name: "cmd/capture", may: []string{"rules", "internal", "histories", scenarios}, tests: []string{"workflows"}},
		{name: "cmd/replay", may: []string{"internal", "workflows", "histories", "replaytests"}},
		{name: "cmd/sweep", may: []string{"rules", "internal", "activities", "workflows", "signals"}},
		{name: "cmd", may: []string{"rules", "internal", "activities", "workflows", "starter", "worker", "histories"}},
		{name: "e2e", may: []string{"rules", "internal", "activities", "workflows", "starter", "worker", "histories"}},
		{name: "bench", may: []string{"rules", "internal", "activities", "workflows", "starter", "worker", "histories", "replaytests"}},
	}
}

// scenarios is the folder beside the workflows that is no workflow code: what runs there
// runs once, in `task capture`, and is never replayed. Only what captures may import it.
const scenarios = "workflows/scenarios"

// within tells whether a package is the room, or stands below it.
func within(path, room string) bool { return path == room || strings.HasPrefix(path, room+"/") }

// checkImports returns the imports that point another way than down. own tells the
// packages of one internal folder from each other: slackbox may import slackbox/page.
func checkImports(pkgs []pkg) []breach {
	var found []breach
	for _, p := range pkgs {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		i := slices.IndexFunc(rooms(), func(r room) bool { return within(path, r.name) })
		if i < 0 {
			found = append(found, breach{p.ImportPath, "this folder is no room of the house; add it to rooms() with what it may import"})
			continue
		}
		r := rooms()[i]
		found = append(found, wrong(p, path, p.Imports, r.may, "imports")...)
		found = append(found, wrong(p, path, slices.Concat(p.TestImports, p.XTestImports), slices.Concat(r.may, r.tests), "a test imports")...)
	}
	return found
}

func wrong(p pkg, path string, imports, may []string, how string) []breach {
	var found []breach
	for _, imported := range imports {
		target, ours := strings.CutPrefix(imported, module+"/")
		if ours && within(target, scenarios) && !within(path, scenarios) && !slices.Contains(may, scenarios) {
			found = append(found, breach{p.ImportPath, fmt.Sprintf("%s %s, which is for captures only", how, imported)})
			continue
		}
		if !ours || within(target, folder(path)) {
			continue
		}
		if !slices.ContainsFunc(may, func(m string) bool { return within(target, m) }) {
			found = append(found, breach{p.ImportPath, fmt.Sprintf("%s %s, which is not below it", how, imported)})
		}
	}
	return found
}

// folder is the folder whose packages are one thing: internal/slackbox for internal/slackbox/page.
func folder(path string) string {
	if within(path, scenarios) {
		return scenarios
	}
	parts := strings.SplitN(path, "/", 3)
	if (parts[0] == "internal" || parts[0] == "cmd") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func TestImports_PointDown(t *testing.T) {
	dec := json.NewDecoder(bytes.NewReader(command(t, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")))
	var pkgs []pkg
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
	require.NotEmpty(t, pkgs)
	requireNone(t, checkImports(pkgs))
}

func TestCheckImports_FindsWhatIsPlanted(t *testing.T) {
	ours := func(names ...string) (paths []string) {
		for _, n := range names {
			paths = append(paths, module+"/"+n)
		}
		return append(paths, "fmt", "github.com/google/uuid")
	}
	requireFound(t, checkImports([]pkg{
		{ImportPath: module + "/rules", Imports: ours("internal/store")},
		{ImportPath: module + "/rules", TestImports: ours("workflows")},
		{ImportPath: module + "/internal/store", Imports: ours("rules", "internal/failpoint", "internal/slackapi")},
		{ImportPath: module + "/internal/store", XTestImports: ours("internal/slackbox", "internal/agent")},
		{ImportPath: module + "/internal/slackbox", Imports: ours("internal/slackbox/page")},
		{ImportPath: module + "/internal/slackbox/page", Imports: ours("internal/slackbox", "internal/store")},
		{ImportPath: module + "/internal/storehouse", Imports: ours("internal/store")},
		{ImportPath: module + "/activities", Imports: ours("rules", "internal/store", "workflows")},
		{ImportPath: module + "/workflows", Imports: ours("rules", "activities", "internal/store")},
		{ImportPath: module + "/workflows", Imports: ours("workflows/scenarios")},
		{ImportPath: module + "/workflows/scenarios", Imports: ours("workflows", "internal/stack", "worker")},
		{ImportPath: module + "/worker", Imports: ours("workflows", "workflows/scenarios")},
		{ImportPath: module + "/cmd/capture", Imports: ours("workflows/scenarios", "internal/stack")},
		{ImportPath: module + "/starter", Imports: ours("workflows", "internal/store", "activities")},
		{ImportPath: module + "/worker", Imports: ours("workflows", "activities", "internal/store", "starter")},
		{ImportPath: module + "/attic", Imports: ours("rules")},
		{ImportPath: module + "/cmd/dev", Imports: ours("internal/stack", "cmd/setup")},
	}),
		"agentsmith/rules: imports agentsmith/internal/store",
		"agentsmith/rules: a test imports agentsmith/workflows",
		"agentsmith/internal/store: imports agentsmith/internal/slackapi",
		"agentsmith/internal/store: a test imports agentsmith/internal/agent",
		"agentsmith/internal/slackbox/page: imports agentsmith/internal/store",
		"agentsmith/internal/storehouse: imports agentsmith/internal/store",
		"agentsmith/activities: imports agentsmith/workflows",
		"agentsmith/workflows: imports agentsmith/internal/store",
		"agentsmith/workflows: imports agentsmith/workflows/scenarios, which is for captures only",
		"agentsmith/workflows/scenarios: imports agentsmith/worker",
		"agentsmith/worker: imports agentsmith/workflows/scenarios, which is for captures only",
		"agentsmith/starter: imports agentsmith/activities",
		"agentsmith/worker: imports agentsmith/starter",
		"agentsmith/attic: this folder is no room",
		"agentsmith/cmd/dev: imports agentsmith/cmd/setup",
	)
}
