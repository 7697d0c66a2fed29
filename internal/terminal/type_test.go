package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
	"agentsmith/rules"
)

func TestType_EachTextBecomesOnePromptAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	long := strings.Repeat("word after word ", 500)
	for i, body := range []string{
		"a plain line",
		"first\nsecond !touch made\n\nfourth",
		"!touch made",
		"/exit",
		"exit",
		"#note this",
		"@file.txt",
		"look at @fil",
		"then /exi",
		long,
		long + "\n\nand\nrows\n",
		"C-c", "-t", "Enter", "C-c C-c C-d Enter;", "ends in \\",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x03\x04\x1a end",
		"a\x1b[201~\r!touch made\r\x1b[200~b",
		"😀 👩‍👩‍👧 🇩🇪 e\u0301 q\u0303 漢字 עברית العربية हिन्दी",
		"#{pane_id} $(touch made) `touch made` %0 ;",
		"[Pasted text #1 +3 lines]",
		"1",
	} {
		r.arrives(body)
		r.quiet()
		r.waitFor("its hook", func() bool { return len(r.prompts()) > i }) // the transcript may tell of it sooner
		require.Len(t, r.prompts(), i+1, "%q", body)
		require.Equal(t, outbox.Squash(rules.PlainForTerminal(body)), outbox.Squash(r.prompts()[i]), "%q", body)
		r.waitFor("the stand-in to be asked", func() bool { _, asked := r.times(body); return asked > 0 })
	}
	require.NoFileExists(t, r.dir+"/made")
}
