package proof

import (
	"go/ast"
	"go/constant"
	"go/token"

	"go.temporal.io/sdk/workflow"
)

// number is a constant version.
func (r *reader) number(e ast.Expr) (workflow.Version, bool) {
	if e == nil {
		return 0, false
	}
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok && sel.Sel.Name == "DefaultVersion" && r.isSDK(sel) {
		return workflow.DefaultVersion, true
	}
	v := r.info.Types[e].Value
	if v == nil {
		return 0, false
	}
	n, ok := constant.Int64Val(constant.ToInt(v))
	return workflow.Version(n), ok
}

// param is the place of the parameter that an expression is, -1 when it is none.
func (r *reader) param(f *ast.FuncDecl, e ast.Expr) int {
	name, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return -1
	}
	i := 0
	for _, group := range f.Type.Params.List {
		for _, p := range group.Names {
			if r.info.Uses[name] != nil && r.info.Defs[p] == r.info.Uses[name] {
				return i
			}
			i++
		}
		if len(group.Names) == 0 {
			i++
		}
	}
	return -1
}

// through is what a caller gives for an expression of the called function.
func (r *reader) through(f *ast.FuncDecl, e ast.Expr, caller visit) ast.Expr {
	if e == nil {
		return nil
	}
	if i := r.param(f, e); i >= 0 {
		if i < len(caller.call.Args) {
			return caller.call.Args[i]
		}
		return nil
	}
	return e
}

// predicate tells whether a function answers for a gate: it returns one bool or version
// and does nothing but ask.
func (r *reader) predicate(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 || f.Body == nil || len(f.Body.List) != 1 {
		return false
	}
	_, returns := f.Body.List[0].(*ast.ReturnStmt)
	return returns
}

// site says how a place may be passed by, from what stands around it in its function.
func (r *reader) site(v visit) Site {
	s := Site{At: r.at(v.call.Pos())}
	if v.in != nil {
		s.Func = v.in.Name.Name
	}
	for i := len(v.stack) - 2; i >= 0; i-- {
		how, loop := passes(v.stack[i], v.stack[i+1])
		if _, literal := v.stack[i+1].(*ast.FuncLit); literal && !given(v.stack[i]) {
			how = "in a function that is kept as a value"
		}
		s.Loop = s.Loop || loop
		if how != "" {
			s.Conditional = how // the outermost says most
		}
	}
	return s
}

// given tells whether a function literal is called where it stands, or handed to a call.
func given(n ast.Node) bool { _, ok := n.(*ast.CallExpr); return ok }

// passes tells whether a node may be run without the child in which the place stands.
func passes(n, child ast.Node) (how string, loop bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.LAND || n.Op == token.LOR) && child == n.Y {
			return "behind the short-circuit of " + n.Op.String(), false
		}
	case *ast.IfStmt:
		if child == n.Body {
			return "in the body of an if", false
		}
		if child == n.Else {
			return "in the else of an if", false
		}
	case *ast.CaseClause:
		return "in a case of a switch", false
	case *ast.CommClause:
		return "in a case of a select", false
	case *ast.ForStmt:
		return "", child == n.Body || child == n.Cond || child == n.Post
	case *ast.RangeStmt:
		return "", child == n.Body
	case *ast.DeferStmt:
		return "in a deferred call", false
	}
	return "", false
}
