package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// checkDocs returns the exported names of a file that have no doc comment, and its
// init functions. The doc of a group of constants or variables counts for all of it.
func checkDocs(fset *token.FileSet, file *ast.File) []breach {
	var found []breach
	add := func(pos token.Pos, format string, args ...any) {
		p := fset.Position(pos)
		found = append(found, breach{fmt.Sprintf("%s:%d", strings.TrimPrefix(p.Filename, root+"/"), p.Line), fmt.Sprintf(format, args...)})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				add(d.Pos(), "has an init function; let the caller call")
			}
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				add(d.Pos(), "%s has no doc comment", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				checkSpec(d, spec, add)
			}
		}
	}
	return found
}

func checkSpec(d *ast.GenDecl, spec ast.Spec, add func(token.Pos, string, ...any)) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
			add(s.Pos(), "%s has no doc comment", s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				add(name.Pos(), "%s has no doc comment", name.Name)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func TestExportedNames_HaveADocComment(t *testing.T) {
	fset := token.NewFileSet()
	documented := map[string]bool{} // folder → has a package comment
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		documented[filepath.Dir(path)] = documented[filepath.Dir(path)] || file.Doc != nil
		requireNone(t, checkDocs(fset, file))
		return nil
	})
	require.NoError(t, err)
	for dir, has := range documented {
		if !has {
			t.Errorf("%s: the package has no comment that says what it is for", strings.TrimPrefix(dir, root+"/"))
		}
	}
}

func TestCheckDocs_FindsWhatIsPlanted(t *testing.T) {
	const planted = `package planted

func Bare() {}

// Good is good.
func Good() {}

type BareType struct{}

func (BareType) Method()     {}
func (*BareType) Pointer()   {}
func (hidden) Method()       {}
func (g Generic[T]) Method() {}

type hidden struct{}

// A group.
const (
	A = 1
	B = 2
)

var (
	C = 1
	D = 2 // D has one.
)

func init() {}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "planted.go", planted, parser.ParseComments)
	require.NoError(t, err)
	requireFound(t, checkDocs(fset, file),
		"planted.go:3: Bare has no doc", "planted.go:8: BareType has no doc", "planted.go:10: Method has no doc",
		"planted.go:11: Pointer has no doc", "planted.go:13: Method has no doc", "planted.go:24: C has no doc", "planted.go:28: has an init function")
}

// checkTasks returns the tasks of a Taskfile that do not say what they are for.
func checkTasks(text []byte) ([]breach, error) {
	var file struct {
		Tasks map[string]struct {
			Desc string `yaml:"desc"`
		} `yaml:"tasks"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the Taskfile: %w", err)
	}
	var found []breach
	for name, task := range file.Tasks {
		if strings.TrimSpace(task.Desc) == "" {
			found = append(found, breach{"Taskfile.yml", "task " + name + " has no desc"})
		}
	}
	if len(file.Tasks) == 0 {
		found = append(found, breach{"Taskfile.yml", "has no task"})
	}
	return found, nil
}

func TestTasks_SayWhatTheyAreFor(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Taskfile.yml"))
	require.NoError(t, err)
	found, err := checkTasks(text)
	require.NoError(t, err)
	requireNone(t, found)
}

func TestCheckTasks_FindsWhatIsPlanted(t *testing.T) {
	found, err := checkTasks([]byte("tasks:\n  a: {desc: good, cmd: x}\n  b: {cmd: x}\n"))
	require.NoError(t, err)
	requireFound(t, found, "task b has no desc")
}
