package classifier_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"agentsmith/activities/classifier"
)

// Who changes the prompt or the schema raises its version, and writes down its sum here:
// the logs must tell which words an answer was given to.
func TestWords_ChangeWithTheirVersion(t *testing.T) {
	words, err := classifier.Load()
	require.NoError(t, err)
	require.NotEmpty(t, words.Prompt)
	require.True(t, json.Valid([]byte(words.Schema)))
	for name, v := range map[string]struct {
		file    string
		version int
		sums    map[int]string
	}{
		"prompt": {"prompt.md", words.PromptVersion, map[int]string{1: "af4acbdf48b55dac"}},
		"schema": {"schema.json", words.SchemaVersion, map[int]string{1: "42b6d0999cf97303"}},
	} {
		b, err := os.ReadFile(v.file)
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		require.Equal(t, v.sums[v.version], hex.EncodeToString(sum[:8]), "%s has changed: raise its version, and add its sum here", name)
	}
}

func TestLines_AreEnoughAndShort(t *testing.T) {
	set, repos, err := classifier.Lines()
	require.NoError(t, err)
	require.NotEmpty(t, repos)
	require.GreaterOrEqual(t, len(set), 60)
	labels, langs, seen := map[classifier.Label]int{}, map[string]int{}, map[string]bool{}
	for _, l := range set {
		labels[l.Label]++
		langs[l.Lang]++
		require.NotEmpty(t, l.Text)
		require.LessOrEqual(t, utf8.RuneCountInString(l.Text), 120, l.Text)
		require.False(t, seen[l.Text], l.Text)
		seen[l.Text] = true
		require.True(t, l.Repo == "" || l.Kind() == "work", l.Text)
	}
	for _, label := range []classifier.Label{classifier.Work, classifier.Question, classifier.Ambiguous, classifier.Chatter} {
		require.GreaterOrEqual(t, labels[label], 10, label)
	}
	require.Len(t, labels, 4)
	for _, lang := range []string{"en", "de", "fr", "es", "ja", "zh", "ar"} {
		require.GreaterOrEqual(t, langs[lang], 4, lang)
	}
}
