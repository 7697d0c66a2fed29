package house

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is what ties a file to the machine that it was written on: a person's
// folder, or the host that packages were taken from. It is put together so that
// this file does not name it.
func machine() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`(^|[^\w.])/(home|Users)/[a-z]\w*`, `(^|[^\w.])/ro` + `ot/`, `C:\\\\?Users`,
		`registry\.npm` + `js\.`, `"reso` + `lved": *"http`, `proxy\.gol` + `ang\.org`, `GOPRO` + `XY=http`,
		`deb\.deb` + `ian\.org`, `(index-url|registry) *[=:] *"?https?:`,
	}, "|"))
}

// nobody matches the folders of the persons that examples are about.
func nobody() *regexp.Regexp {
	return regexp.MustCompile(`/(home|Users)/(agent|person|somebody|example)$`)
}

// checkMachine returns the lines of a file that name a machine or a package host.
func checkMachine(name string, text []byte) []breach {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil // a picture
	}
	var found []breach
	shape := machine()
	for i, line := range bytes.Split(text, []byte("\n")) {
		for _, m := range shape.FindAll(line, -1) {
			if nobody().Match(m) {
				continue
			}
			found = append(found, breach{fmt.Sprintf("%s:%d", name, i+1), fmt.Sprintf("names %q, which is of one machine", m)})
		}
	}
	return found
}

func TestCommittedFiles_NameNoMachine(t *testing.T) {
	files := strings.Split(strings.TrimRight(string(command(t, "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")), "\x00"), "\x00")
	require.Greater(t, len(files), 10)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, not committed yet
		}
		require.NoError(t, err)
		requireNone(t, checkMachine(name, text))
	}
}

func TestCheckMachine_FindsWhatIsPlanted(t *testing.T) {
	text := strings.Join([]string{
		"fine: /home/agent/x /home/person /var/lib/smith ~/smith https://slack.com/api/",
		"a: /ho" + "me/ana/smith",
		"b: [/ro" + "ot/go]",
		`"reso` + `lved": "https://example.org/a.tgz"`,
		"registry" + "=https://example.org/",
		"GOPRO" + "XY=https://example.org",
	}, "\n")
	requireFound(t, checkMachine("f", []byte(text)), "f:2:", "f:3:", "f:4:", "f:5:", "f:6:")
}
