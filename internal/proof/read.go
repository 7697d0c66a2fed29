package proof

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"
)

// sdkWorkflow is the package whose calls are read.
const sdkWorkflow = "go.temporal.io/sdk/workflow"

// Gate is a change ID that the source asks for.
type Gate struct {
	ID       string
	Min, Max workflow.Version
	// Sites are the places that ask it: the call of GetVersion itself, or of the predicate
	// that makes it.
	Sites []Site
	// Workflows are the types whose code can come to a site, by the names that the package
	// registers them under: too many rather than too few. Empty when reading cannot tell.
	Workflows []string
}

// Site is one place in the source.
type Site struct {
	// At is file:line.
	At string
	// Func is the function that it stands in.
	Func string
	// Conditional says how the place may be passed by without asking: "" when it may not.
	Conditional string
	// Loop: the place is asked again and again; a run keeps its first answer.
	Loop bool
}

// Reading is what a package's source says of its gates.
type Reading struct {
	Gates []Gate
	// Workflows are the types that the package registers; empty when reading cannot tell.
	Workflows []string
	// Problems are places where a gate cannot be told, or is not asked unconditionally.
	Problems []string
	commands map[string]string // file:line → the call, of each call that gives a command
}

// Read reads the Go files of one folder, without its tests. The source is only parsed and
// typed as far as the folder itself goes: an import need not be there. So a change ID must
// be a constant of the folder, and a gate that is asked in a folder below is a problem.
func Read(dir string) (*Reading, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the source in %s: %w", dir, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
		files[abs] = text
	}
	out, err := ReadFiles(files)
	if err != nil {
		return nil, err
	}
	below, err := askedBelow(dir)
	if err != nil {
		return nil, err
	}
	out.Problems = append(out.Problems, below...)
	return out, nil
}

// ReadFiles reads the given files of one package, by name.
func ReadFiles(files map[string][]byte) (*Reading, error) {
	r := &reader{fset: token.NewFileSet(), out: &Reading{commands: map[string]string{}}, gates: map[string]*Gate{},
		funcs: map[types.Object]*ast.FuncDecl{}, taken: map[*ast.Ident]bool{}, askedIn: map[string][]*ast.FuncDecl{}, helpers: map[types.Object]bool{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") {
			continue
		}
		file, err := parser.ParseFile(r.fset, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
		r.files = append(r.files, file)
	}
	if len(r.files) == 0 {
		return nil, errors.New("there is no Go source to read gates from")
	}
	r.info = &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Error: func(error) {}, Importer: noImports{}, FakeImportC: true}
	_, _ = conf.Check("p", r.fset, r.files, r.info) // what an import would tell is missing, and not needed
	r.read()
	r.consulting()
	slices.Sort(r.out.Problems)
	for _, id := range slices.Sorted(maps.Keys(r.gates)) {
		r.out.Gates = append(r.out.Gates, *r.gates[id])
	}
	return r.out, nil
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

type reader struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	out   *Reading
	gates map[string]*Gate
	funcs map[types.Object]*ast.FuncDecl
	taken map[*ast.Ident]bool // names that stand where they are called
	// askedIn are the functions that name a gate: its predicates, or who hands it to a helper.
	askedIn map[string][]*ast.FuncDecl
	// helpers are the functions that ask a gate which their caller names.
	helpers map[types.Object]bool
}

// visit is a node with what stands around it, the outermost first.
type visit struct {
	call  *ast.CallExpr
	stack []ast.Node
	in    *ast.FuncDecl
}

func (r *reader) read() {
	calls := map[types.Object][]visit{} // of the package's own functions
	var asks []visit
	for _, file := range r.files {
		for _, d := range file.Decls {
			f, _ := d.(*ast.FuncDecl)
			if f != nil {
				r.funcs[r.info.Defs[f.Name]] = f
			}
			r.walk(d, f, calls, &asks)
		}
	}
	for _, v := range asks {
		r.ask(v, calls)
	}
	r.hidden(asks, calls)
}

// walk collects the calls of a declaration with what stands around each.
func (r *reader) walk(d ast.Decl, f *ast.FuncDecl, calls map[types.Object][]visit, asks *[]visit) {
	var stack []ast.Node
	ast.Inspect(d, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := calledName(call)
		if name == nil {
			return true
		}
		r.taken[name] = true
		v := visit{call, slices.Clone(stack), f}
		if sdk := r.sdkCall(call); sdk != "" {
			if sdk == "GetVersion" || sdk == "GetVersionWithOptions" {
				*asks = append(*asks, v)
			}
			if slices.Contains(commandCalls(), sdk) {
				r.out.commands[r.at(call.Pos())] = "workflow." + sdk
			}
		} else if o := r.info.Uses[name]; o != nil {
			calls[o] = append(calls[o], v)
		}
		return true
	})
}

// commandCalls are the SDK's functions that give a command.
func commandCalls() []string {
	return []string{"ExecuteActivity", "ExecuteLocalActivity", "ExecuteChildWorkflow", "NewTimer", "NewTimerWithOptions", "Sleep",
		"AwaitWithTimeout", "AwaitWithOptions", "SideEffect", "SideEffectWithOptions", "MutableSideEffect", "MutableSideEffectWithOptions",
		"UpsertSearchAttributes", "UpsertTypedSearchAttributes", "UpsertMemo", "RequestCancelExternalWorkflow",
		"SignalExternalWorkflow", "GetVersion"}
}

// calledName is the identifier that names what is called.
func calledName(call *ast.CallExpr) *ast.Ident {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	}
	return nil
}

// sdkCall is the name of the SDK's function that is called, "" for any other call.
func (r *reader) sdkCall(call *ast.CallExpr) string {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !r.isSDK(sel) {
		return ""
	}
	return sel.Sel.Name
}

func (r *reader) isSDK(sel *ast.SelectorExpr) bool {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	pkg, ok := r.info.Uses[x].(*types.PkgName)
	return ok && pkg.Imported().Path() == sdkWorkflow
}

func (r *reader) at(pos token.Pos) string {
	p := r.fset.Position(pos)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

func (r *reader) problem(pos token.Pos, format string, args ...any) {
	p := r.fset.Position(pos)
	r.out.Problems = append(r.out.Problems, fmt.Sprintf("%s:%d: ", filepath.Base(p.Filename), p.Line)+fmt.Sprintf(format, args...))
}

// ask notes the gate of one GetVersion call: by its constant, or by those that callers give.
func (r *reader) ask(v visit, calls map[types.Object][]visit) {
	if len(v.call.Args) < 4 {
		r.problem(v.call.Pos(), "GetVersion without its arguments cannot be read")
		return
	}
	r.resolve(v, v.call.Args[1], v.call.Args[2], v.call.Args[3], v, calls, 0)
}

// resolve finds the change ID that reaches id, and notes the gate at the outermost place
// that decides it. A function whose own call is unconditional hands the question of where
// it is asked to its callers.
func (r *reader) resolve(v visit, id, minV, maxV ast.Expr, ask visit, calls map[types.Object][]visit, depth int) {
	if depth > 8 {
		r.problem(ask.call.Pos(), "this gate is asked through too many functions to be followed")
		return
	}
	if name, ok := r.text(id); ok {
		g := r.gates[name]
		if g == nil {
			g = &Gate{ID: name, Min: workflow.DefaultVersion, Max: workflow.DefaultVersion}
			r.gates[name] = g
		}
		if n, ok := r.number(minV); ok {
			g.Min = n
		}
		if n, ok := r.number(maxV); ok {
			g.Max = max(g.Max, n)
		} else {
			r.problem(v.call.Pos(), "the newest version of the gate %q is no constant of the package", name)
		}
		r.askedIn[name] = append(r.askedIn[name], v.in)
		r.sites(g, v, calls, depth)
		return
	}
	// A parameter: its callers say which gate it is.
	if v.in != nil {
		if i := r.param(v.in, id); i >= 0 {
			r.helper(v, id)
			from := calls[r.info.Defs[v.in.Name]]
			for _, c := range from {
				if i < len(c.call.Args) {
					r.resolve(c, c.call.Args[i], r.through(v.in, minV, c), r.through(v.in, maxV, c), ask, calls, depth+1)
				}
			}
			if len(from) == 0 {
				r.problem(v.call.Pos(), "nothing calls %s, so that its change ID cannot be told", v.in.Name.Name)
			}
			return
		}
	}
	r.problem(id.Pos(), "this change ID is no constant of the package: the gate cannot be told by reading")
}

// sites notes where a gate is asked: at v, and where its function is a predicate, at each call of it.
func (r *reader) sites(g *Gate, v visit, calls map[types.Object][]visit, depth int) {
	if v.in != nil && r.predicate(v.in) && depth <= 8 {
		s := r.site(v)
		if s.Conditional == "" {
			callers := calls[r.info.Defs[v.in.Name]]
			for _, c := range callers {
				r.sites(g, c, calls, depth+1)
			}
			if len(callers) > 0 {
				return
			}
			r.problem(v.call.Pos(), "the gate %q is never asked: nothing calls %s", g.ID, v.in.Name.Name)
		}
	}
	s := r.site(v)
	g.Sites = append(g.Sites, s)
	if s.Conditional != "" {
		r.problem(v.call.Pos(), "the gate %q is asked %s; ask it unconditionally, before", g.ID, s.Conditional)
	}
}

// unreached are the calls that give a command where no replay has been.
func (r *Reading) unreached(reached map[string]bool) (out []string) {
	for _, at := range slices.Sorted(maps.Keys(r.commands)) {
		if !reached[at] {
			out = append(out, filepath.Base(at)+" "+r.commands[at])
		}
	}
	return out
}

func (r *reader) text(e ast.Expr) (string, bool) {
	v := r.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}
