package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// hidden is what stands wherever a secret would be printed.
const hidden = "[secret]"

// Secret is a value from the environment that no log, error, history or post may
// show (X3): every way of printing it prints "[secret]". Reveal is the one way out.
type Secret string

// Reveal returns the secret itself, for the client that signs in with it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return hidden }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the secret from every verb of fmt, %x and %q included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText hides the secret from YAML and other writers of text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
