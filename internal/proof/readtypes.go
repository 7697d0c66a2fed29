package proof

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// uses is what a declaration of the package mentions: whatever it could run.
type uses struct {
	objects map[types.Object]bool
	// names are those of methods whose receiver has a type that reading does not know.
	names map[string]bool
}

// consulting finds the workflow types that can come to each gate: those whose function
// mentions, through whatever functions of the package, one in which the gate is asked. It
// takes too many rather than too few. One registration that cannot be read leaves all
// unknown.
func (r *reader) consulting() {
	roots, known := r.registered()
	if !known {
		return
	}
	r.out.Workflows = slices.Sorted(maps.Keys(roots))
	mentioned := r.mentions()
	reached := map[string]map[types.Object]bool{}
	for name, functions := range roots {
		reached[name] = r.reach(functions, mentioned)
	}
	for _, g := range r.gates {
		found := map[string]bool{}
		for _, in := range r.askedIn[g.ID] {
			if in == nil {
				clear(found)
				break // asked outside of any function: who runs it cannot be read
			}
			for name, all := range reached {
				if all[r.info.Defs[in.Name]] {
					found[name] = true
				}
			}
		}
		g.Workflows = slices.Sorted(maps.Keys(found))
	}
}

// registered are the functions that the package registers as workflows, by type name.
func (r *reader) registered() (map[string][]types.Object, bool) {
	roots, known := map[string][]types.Object{}, true
	for _, file := range r.files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := calledName(call); {
			case name == nil:
			case name.Name == "RegisterWorkflow" && len(call.Args) == 1, name.Name == "RegisterWorkflowWithOptions" && len(call.Args) == 2:
				as, f := r.registration(call)
				if f == nil || as == "" {
					known = false
				} else {
					roots[as] = append(roots[as], f)
				}
			case name.Name == "RegisterDynamicWorkflow":
				known = false
			}
			return true
		})
	}
	return roots, known && len(roots) > 0
}

// registration reads one call: the type's name and its function; either is empty when it
// is none of the package or no constant.
func (r *reader) registration(call *ast.CallExpr) (string, types.Object) {
	var id *ast.Ident
	switch f := ast.Unparen(call.Args[0]).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return "", nil
	}
	f := r.info.Uses[id]
	if r.funcs[f] == nil {
		return "", nil
	}
	if len(call.Args) == 1 {
		return id.Name, f
	}
	options, ok := ast.Unparen(call.Args[1]).(*ast.CompositeLit)
	if !ok {
		return "", nil
	}
	for _, e := range options.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return "", nil
		}
		if key, ok := field.Key.(*ast.Ident); ok && key.Name == "Name" {
			name, known := r.text(field.Value)
			if known && name == "" {
				name = id.Name
			}
			return name, f
		}
	}
	return id.Name, f
}

// mentions collects what each declaration of the package mentions.
func (r *reader) mentions() map[types.Object]uses {
	out := map[types.Object]uses{}
	note := func(of types.Object, n ast.Node) {
		if of == nil || n == nil {
			return
		}
		u, ok := out[of]
		if !ok {
			u = uses{map[types.Object]bool{}, map[string]bool{}}
			out[of] = u
		}
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if _, defines := r.info.Defs[id]; !ok || defines {
				return true
			}
			switch o := r.info.Uses[id].(type) {
			case nil:
				u.names[id.Name] = true
			case *types.Func:
				u.objects[o.Origin()] = true
				if r.funcs[o.Origin()] == nil {
					u.names[id.Name] = true // an interface's method: any that is called so
				}
			default:
				u.objects[o] = true
			}
			return true
		})
	}
	for _, file := range r.files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				note(r.info.Defs[d.Name], d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range s.Names {
							note(r.info.Defs[name], s)
						}
					case *ast.TypeSpec:
						note(r.info.Defs[s.Name], s)
					}
				}
			}
		}
	}
	return out
}

// methods are the package's methods, by their own name and by the type that has them.
func (r *reader) methods() (named map[string][]types.Object, of map[types.Object][]types.Object) {
	named, of = map[string][]types.Object{}, map[types.Object][]types.Object{}
	for f, decl := range r.funcs {
		if decl.Recv == nil {
			continue
		}
		named[decl.Name.Name] = append(named[decl.Name.Name], f)
		ast.Inspect(decl.Recv, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if t, ok := r.info.Uses[id].(*types.TypeName); ok {
					of[t] = append(of[t], f)
				}
			}
			return true
		})
	}
	return named, of
}

// reach is everything that functions can come to. Who mentions a type can come to every
// method of it: another package may call them.
func (r *reader) reach(from []types.Object, mentioned map[types.Object]uses) map[types.Object]bool {
	named, of := r.methods()
	seen := map[types.Object]bool{}
	todo := slices.Clone(from)
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[o] {
			continue
		}
		seen[o] = true
		todo = append(todo, of[o]...)
		todo = slices.AppendSeq(todo, maps.Keys(mentioned[o].objects))
		for name := range mentioned[o].names {
			todo = append(todo, named[name]...)
		}
	}
	return seen
}
