package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func drained(t *testing.T, s *spool) []string {
	t.Helper()
	var got []string
	require.NoError(t, s.drain(func(e json.RawMessage) error {
		got = append(got, string(e))
		return nil
	}))
	return got
}

func TestSpool_GivesBackInOrderAndForgets(t *testing.T) {
	dir := t.TempDir()
	s, err := openSpool(dir, "smith")
	require.NoError(t, err)
	require.True(t, s.empty())
	require.NoError(t, s.keep(json.RawMessage(`{"n":1}`)))
	require.NoError(t, s.keep(json.RawMessage(`{"n":2}`)))
	require.NoError(t, s.close())

	s, err = openSpool(dir, "smith")
	require.NoError(t, err)
	require.False(t, s.empty(), "it outlives the process")
	require.Equal(t, []string{`{"n":1}`, `{"n":2}`}, drained(t, s))
	require.True(t, s.empty())
	require.Empty(t, drained(t, s))
	require.NoError(t, s.keep(json.RawMessage(`{"n":3}`)))
	require.Equal(t, []string{`{"n":3}`}, drained(t, s))
	require.NoError(t, s.close())
}

func TestSpool_KeepsAllWhenOneCannotBeHandedOver(t *testing.T) {
	s, err := openSpool(t.TempDir(), "smith")
	require.NoError(t, err)
	require.NoError(t, s.keep(json.RawMessage(`1`)))
	require.NoError(t, s.keep(json.RawMessage(`2`)))
	require.ErrorIs(t, s.drain(func(e json.RawMessage) error {
		if string(e) == `2` {
			return errDown
		}
		return nil
	}), errDown)
	require.Equal(t, []string{`1`, `2`}, drained(t, s))
}

func TestSpool_TakesWhatComesWhileItIsHandedOver(t *testing.T) {
	s, err := openSpool(t.TempDir(), "smith")
	require.NoError(t, err)
	require.NoError(t, s.keep(json.RawMessage(`0`)))
	var got []string
	require.NoError(t, s.drain(func(e json.RawMessage) error {
		if got = append(got, string(e)); len(got) < 4 {
			return s.keep(json.RawMessage(fmt.Sprint(len(got))))
		}
		return nil
	}))
	require.Equal(t, []string{`0`, `1`, `2`, `3`}, got)
	require.True(t, s.empty())
}

func TestSpool_SurvivesALineThatACrashCutShort(t *testing.T) {
	dir := t.TempDir()
	s, err := openSpool(dir, "smith")
	require.NoError(t, err)
	require.NoError(t, s.keep(json.RawMessage(`{"n":1}`)))
	require.NoError(t, s.close())
	f, err := os.OpenFile(filepath.Join(dir, "smith.jsonl"), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(`{"at":"2026-01-01T00:00:00Z","envelope":{"n":`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	s, err = openSpool(dir, "smith")
	require.NoError(t, err)
	require.NoError(t, s.keep(json.RawMessage(`{"n":2}`)))
	got := drained(t, s)
	require.Len(t, got, 3)
	require.Equal(t, `{"n":1}`, got[0])
	require.Equal(t, isStrange, readEnvelope(team, []byte(got[1])).kind, "it was never acked; it is looked at and kept raw")
	require.Equal(t, `{"n":2}`, got[2])
}

func TestSpool_RefusesALineThatIsTooLargeAndIsAsBefore(t *testing.T) {
	s, err := openSpool(t.TempDir(), "smith")
	require.NoError(t, err)
	require.ErrorIs(t, s.keep(json.RawMessage(`"`+strings.Repeat("x", spoolLine)+`"`)), errSpoolLine)
	require.True(t, s.empty())
	require.NoError(t, s.keep(json.RawMessage("\xff no json")))
	require.Len(t, drained(t, s), 1)
}

func TestSpool_IsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	_, err := openSpool(dir, "smith")
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, "smith.jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
