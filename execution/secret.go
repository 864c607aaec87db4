package execution

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret is a key or token. It prints as "(hidden)", so that logging a
// configuration tells nobody anything.
type Secret struct{ text string }

// NewSecret wraps a key or token.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the header it is sent in.
func (s Secret) Reveal() string { return s.text }

// Set reports whether there is a text at all.
func (s Secret) Set() bool { return s.text != "" }

// String tells only whether the secret is set.
func (s Secret) String() string {
	if s.Set() {
		return "(hidden)"
	}
	return "(not set)"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, for encoders and loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalYAML reads "{env: NAME}" or "{file: PATH}". A secret is never
// written into the configuration itself, which people copy and commit.
func (s *Secret) UnmarshalYAML(unmarshal func(any) error) error {
	var from map[string]string
	if err := unmarshal(&from); err != nil || len(from) != 1 {
		return errors.New("a secret is {env: NAME} or {file: PATH}")
	}
	text, err := fetchSecret(from)
	if err != nil {
		return err
	}
	if text = strings.TrimSpace(text); text == "" {
		return fmt.Errorf("the secret in %v is empty", from)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the secret in %v is no single printable ASCII word", from)
	}
	s.text = text
	return nil
}

func fetchSecret(from map[string]string) (string, error) {
	if name, ok := from["env"]; ok {
		text, found := os.LookupEnv(name)
		if !found {
			return "", fmt.Errorf("the environment has no variable %s", name)
		}
		return text, nil
	}
	path, ok := from["file"]
	if !ok {
		return "", errors.New("a secret is {env: NAME} or {file: PATH}")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	return string(data), nil
}
