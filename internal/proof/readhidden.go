package proof

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// helper notes a function that asks a gate which its caller names. What stands in its way
// inside of it holds for every gate that it asks.
func (r *reader) helper(v visit, id ast.Expr) {
	self := r.info.Defs[v.in.Name]
	if r.helpers[self] {
		return
	}
	r.helpers[self] = true
	if s := r.site(v); s.Conditional != "" {
		r.problem(v.call.Pos(), "the gates of %s are asked %s; ask them unconditionally, before", v.in.Name.Name, s.Conditional)
	}
	name, _ := ast.Unparen(id).(*ast.Ident)
	ast.Inspect(v.in.Body, func(n ast.Node) bool {
		var changed []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			changed = n.Lhs
		case *ast.RangeStmt:
			changed = []ast.Expr{n.Key, n.Value}
		case *ast.UnaryExpr:
			changed = []ast.Expr{n.X} // its address, or what else an operator takes of it
		}
		for _, e := range changed {
			if x, ok := e.(*ast.Ident); ok && name != nil && r.info.Uses[x] != nil && r.info.Uses[x] == r.info.Uses[name] {
				r.problem(x.Pos(), "%s changes the change ID that it is given: the gate cannot be told by reading", v.in.Name.Name)
			}
		}
		return true
	})
}

// hidden reports where a gate may be asked and cannot be read: GetVersion, or a function
// that asks for its caller, handed on as a value or called through an interface.
func (r *reader) hidden(asks []visit, calls map[types.Object][]visit) {
	asking, methods := map[types.Object]bool{}, map[string]bool{}
	note := func(o types.Object) {
		asking[o] = true
		if f := r.funcs[o]; f != nil && f.Recv != nil {
			methods[f.Name.Name] = true
		}
	}
	for o := range r.helpers {
		note(o)
	}
	for _, v := range asks {
		if v.in != nil && r.predicate(v.in) {
			note(r.info.Defs[v.in.Name])
		}
	}
	for name, o := range r.info.Uses {
		if asking[o] && !r.taken[name] {
			r.problem(name.Pos(), "%s asks a gate and is handed on as a value: where it is asked cannot be read", name.Name)
		}
	}
	for o, from := range calls {
		if f, ok := o.(*types.Func); !ok || r.funcs[f.Origin()] != nil || !methods[f.Name()] {
			continue
		}
		for _, c := range from {
			r.problem(c.call.Pos(), "%s may ask a gate and is called through an interface: the gate cannot be told by reading", o.Name())
		}
	}
	for _, file := range r.files {
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == sdkWorkflow && i.Name != nil && i.Name.Name == "." {
				r.problem(i.Pos(), "the SDK is imported under no name: the gates that are asked cannot be read")
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && strings.HasPrefix(sel.Sel.Name, "GetVersion") && r.isSDK(sel) && !r.taken[sel.Sel] {
				r.problem(sel.Pos(), "%s is handed on as a value: the gates that it asks cannot be read", sel.Sel.Name)
			}
			return true
		})
	}
}

// askedBelow reports gates in the folders below a folder: they are of other packages.
func askedBelow(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")):
			return fs.SkipDir
		case d.IsDir() || filepath.Dir(path) == filepath.Clean(dir) || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !imports(file, sdkWorkflow) {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "GetVersion") {
				name, _ := filepath.Rel(dir, path)
				out = append(out, fmt.Sprintf("%s:%d: %s stands in a package below: the gates that it asks are not read",
					filepath.ToSlash(name), fset.Position(id.Pos()).Line, id.Name))
			}
			return true
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the source below %s: %w", dir, err)
	}
	return out, nil
}

func imports(file *ast.File, path string) bool {
	for _, i := range file.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); p == path {
			return true
		}
	}
	return false
}
