package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// pure are the packages of the standard library that give the same answer each
// time. What is not here is refused in rules and workflows: workflowcheck misses
// function variables, globals, the environment and more, and so do replays.
func pure() []string {
	return []string{
		"bytes", "cmp", "crypto/sha1", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex",
		"encoding/json", "errors", "fmt", "hash/fnv", "iter", "math", "math/bits", "net/url", "path", "regexp",
		"slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
	}
}

// ofWorkflows are the other packages that a workflow may import.
func ofWorkflows() []string {
	return []string{
		module + "/rules", module + "/activities",
		"go.temporal.io/sdk/workflow", "go.temporal.io/sdk/temporal", "go.temporal.io/sdk/log",
		"go.temporal.io/sdk/worker", // its Registry, for register.go
		"go.temporal.io/api/enums/v1", "go.temporal.io/api/common/v1",
		"github.com/google/uuid", // the part that makes an id from a name
	}
}

// impure are names of packages that are else allowed.
func impure() map[string][]string {
	return map[string][]string{
		"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick", "Local", "LoadLocation"},
		"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}, // what takes a writer has no outside one here
		"github.com/google/uuid": {"New", "NewString", "NewRandom", "NewRandomFromReader", "NewUUID", "NewV6", "NewV7",
			"NewV7FromReader", "NewDCEGroup", "NewDCEPerson", "NewDCESecurity", "NodeID", "GetTime", "SetRand", "EnableRandPool"},
		"go.temporal.io/sdk/worker": {"New"},
	}
}

// checkDeterminism returns what in a package might not happen again when it is
// replayed: banned imports and names, goroutines, channels, map order, and
// variables of the package that change.
func checkDeterminism(p *packages.Package, may []string) []breach {
	var found []breach
	add := func(pos token.Pos, what string) { found = append(found, breach{at(p, pos), what}) }
	for _, file := range p.Syntax {
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err != nil || !slices.Contains(may, path) {
				add(spec.Pos(), "imports "+spec.Path.Value+", which is not known to give the same answer each time")
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			checkNode(p, n, add)
			return true
		})
	}
	return found
}

func checkNode(p *packages.Package, n ast.Node, add func(token.Pos, string)) {
	switch n := n.(type) {
	case *ast.Ident:
		if obj := p.TypesInfo.Uses[n]; obj != nil && obj.Pkg() != nil && slices.Contains(impure()[obj.Pkg().Path()], obj.Name()) {
			add(n.Pos(), "uses "+obj.Pkg().Name()+"."+obj.Name())
		}
	case *ast.GoStmt:
		add(n.Pos(), "starts a goroutine with go")
	case *ast.SelectStmt:
		add(n.Pos(), "selects on native channels")
	case *ast.SendStmt:
		add(n.Pos(), "sends on a native channel")
	case *ast.ChanType:
		add(n.Pos(), "has a native channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			add(n.Pos(), "receives from a native channel")
		}
	case *ast.RangeStmt:
		switch under(p.TypesInfo.TypeOf(n.X)).(type) {
		case *types.Map:
			add(n.Pos(), "ranges over a map; range over its sorted keys")
		case *types.Chan:
			add(n.Pos(), "ranges over a native channel")
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if global(p, left) {
				add(left.Pos(), "changes a variable of the package")
			}
		}
	case *ast.IncDecStmt:
		if global(p, n.X) {
			add(n.Pos(), "changes a variable of the package")
		}
	}
}

func under(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	if param, ok := t.(*types.TypeParam); ok {
		t = param.Constraint()
		if i, ok := t.Underlying().(*types.Interface); ok && i.NumEmbeddeds() == 1 {
			t = i.EmbeddedType(0)
			if u, ok := t.(*types.Union); ok && u.Len() == 1 {
				t = u.Term(0).Type()
			}
		}
	}
	return t.Underlying()
}

// global tells whether what is assigned to is, or is part of, a variable of the package.
func global(p *packages.Package, e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			v, ok := p.TypesInfo.Uses[x].(*types.Var)
			return ok && v.Parent() == p.Types.Scope()
		default:
			return false
		}
	}
}

func allowed(path string) []string {
	if path == module+"/workflows" || strings.HasPrefix(path, module+"/workflows/") {
		return slices.Concat(pure(), ofWorkflows())
	}
	return pure()
}

func TestWorkflowsAndRules_GiveTheSameAnswerEachTime(t *testing.T) {
	for _, p := range loadTyped(t, nil, "./workflows/...", "./rules/...") {
		if within(strings.TrimPrefix(p.PkgPath, module+"/"), scenarios) {
			continue // it drives a running system, once: it is no workflow, and nothing that ships imports it
		}
		requireNone(t, checkDeterminism(p, allowed(p.PkgPath)))
	}
}

func TestCheckDeterminism_FindsWhatIsPlanted(t *testing.T) {
	const planted = `package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	clock "time"
)

var plantedGlobal struct{ m map[string]int }

func planted(m map[string]int, c chan int) {
	_ = rand.Int()
	_ = os.Getenv("A")
	_ = maps.Keys(m)
	_ = clock.Now()
	sleep := clock.Sleep
	sleep(clock.Second)
	_ = clock.Time{}.Local()
	fmt.Println(clock.Minute)
	go func() {}()
	select {}
}

func plantedChannels() {
	c := make(chan int)
	c <- 1
	<-c
	for range c {
	}
}

type plantedMap map[string]int

func plantedRange[M map[string]int](m plantedMap, g M) {
	for range m {
	}
	for range g {
	}
	for range len(m) {
	}
	plantedGlobal.m["a"] = 1
	plantedGlobal.m["a"]++
	local := plantedGlobal
	local.m = nil
}
`
	pkgs := loadTyped(t, map[string]string{"rules/planted.go": planted}, "./rules")
	require.Len(t, pkgs, 1)
	requireFound(t, checkDeterminism(pkgs[0], allowed(pkgs[0].PkgPath)),
		`planted.go:5: imports "maps"`, `planted.go:6: imports "math/rand/v2"`, `planted.go:7: imports "os"`,
		"planted.go:13: has a native channel",
		"planted.go:17: uses time.Now", "planted.go:18: uses time.Sleep", "planted.go:20: uses time.Local",
		"planted.go:21: uses fmt.Println", "planted.go:22: starts a goroutine", "planted.go:23: selects",
		"planted.go:27: has a native channel", "planted.go:28: sends", "planted.go:29: receives", "planted.go:30: ranges over a native channel",
		"planted.go:37: ranges over a map", "planted.go:39: ranges over a map",
		"planted.go:43: changes a variable of the package", "planted.go:44: changes a variable of the package",
	)
}

func TestAllowed_RulesKnowNeitherTemporalNorTheRestOfTheHouse(t *testing.T) {
	for _, path := range allowed(module + "/rules") {
		require.False(t, strings.HasPrefix(path, module) || strings.Contains(path, "."), path)
	}
	require.NotContains(t, allowed(module+"/workflows"), module+"/internal/store")
}
