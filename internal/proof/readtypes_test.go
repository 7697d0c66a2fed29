package proof_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/proof"
)

// The types that can come to a gate: through methods, values, interfaces and what another
// package hands back; and none at all rather than too few.
func TestRead_TellsWhichWorkflowTypesCanComeToAGate(t *testing.T) {
	const head = `package p
import (
	"go.temporal.io/sdk/workflow"
	"somewhere/else/lo"
)
const typeOne = "O" + "ne"
type one struct{ n int }
func (o *one) ask(ctx workflow.Context) bool { return workflow.GetVersion(ctx, "g", workflow.DefaultVersion, 1) >= 1 }
func One(ctx workflow.Context) { %BODY% }
func Two(ctx workflow.Context) { println("nothing") }
func Other(ctx workflow.Context) { o := &one{}; if o.ask(ctx) { println() } }
`
	const both = `func Register(r any) {
	r.RegisterWorkflowWithOptions(One, workflow.RegisterOptions{Name: typeOne})
	r.RegisterWorkflow(Two)
}
`
	for name, c := range map[string]struct {
		body, more string
		want       []string
	}{
		"a method":                       {body: `o := &one{}; if o.ask(ctx) { println() }`, want: []string{"One"}},
		"a method of the same name":      {body: `other{}.ask(ctx)`, more: `type other struct{}; func (other) ask(ctx workflow.Context) { ask := 1; println(ask) }`, want: nil},
		"nobody that is registered":      {body: `println()`, want: nil},
		"through another function":       {body: `helper(ctx)`, more: `func helper(ctx workflow.Context) { Other(ctx) }`, want: []string{"One"}},
		"through a value of the package": {body: `table["x"](ctx)`, more: `var table = map[string]func(workflow.Context){"x": Other}`, want: []string{"One"}},
		"through an interface":           {body: `var i asker = thing(); i.ask(ctx)`, more: `type asker interface{ ask(workflow.Context) bool }; func thing() asker { return made }; var made asker`, want: []string{"One"}},
		"through another package":        {body: `x := lo.First(list()); x.ask(ctx)`, more: `func list() any { return nil }`, want: []string{"One"}},
		"by another package":             {body: `lo.Run(one{})`, want: []string{"One"}},
		"through a generic function":     {body: `each[one](ctx)`, more: `func each[T any](ctx workflow.Context) { Other(ctx) }`, want: []string{"One"}},
		"as a value":                     {body: `workflow.Go(ctx, Other)`, want: []string{"One"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, consultedBy(t, strings.Replace(head, "%BODY%", c.body, 1)+both+c.more))
		})
	}
	for name, register := range map[string]string{
		"no registration":            ``,
		"a name in a variable":       `func Register(r any, name string) { r.RegisterWorkflow(Two); r.RegisterWorkflowWithOptions(One, workflow.RegisterOptions{Name: name}) }`,
		"options in a variable":      `func Register(r any, o workflow.RegisterOptions) { r.RegisterWorkflow(Two); r.RegisterWorkflowWithOptions(One, o) }`,
		"a function in a variable":   `func Register(r any, f any) { r.RegisterWorkflow(One); r.RegisterWorkflow(f) }`,
		"another package's function": `func Register(r any) { r.RegisterWorkflow(One); r.RegisterWorkflow(lo.Flow) }`,
		"dynamic":                    `func Register(r any) { r.RegisterWorkflow(One); r.RegisterDynamicWorkflow(Two, workflow.DynamicRegisterOptions{}) }`,
		"asked where no function is": `func Register(r any) { r.RegisterWorkflow(One) }; var f = func(ctx workflow.Context) { workflow.GetVersion(ctx, "g", 1, 2) }`,
	} {
		t.Run("cannot be told: "+name, func(t *testing.T) {
			require.Empty(t, consultedBy(t, strings.Replace(head, "%BODY%", "Other(ctx)", 1)+register))
		})
	}
	// One type may have several functions, and one gate several types.
	require.Equal(t, []string{"One", "Two"}, consultedBy(t, strings.Replace(head, "%BODY%", "Other(ctx)", 1)+both+
		`func more(r any) { r.RegisterWorkflowWithOptions(Other, workflow.RegisterOptions{Name: "Two"}) }`))
}

func consultedBy(t *testing.T, source string) []string {
	t.Helper()
	r, err := proof.ReadFiles(map[string][]byte{"p.go": []byte(source)})
	require.NoError(t, err)
	require.Len(t, r.Gates, 1)
	return r.Gates[0].Workflows
}
