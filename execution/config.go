package execution

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// What a configuration gets when it does not say.
const (
	defaultWait        = 30 * time.Second
	defaultPoll        = 500 * time.Millisecond
	defaultConcurrency = 4
	defaultStopWithin  = 20 * time.Second
	defaultBreakAfter  = 5
	defaultProbeAfter  = 10 * time.Second

	maxWait        = 60 * time.Second
	maxConcurrency = 256
)

// Config tells an executor where the console and the business systems are.
// LoadConfig reads it from YAML, where durations are written like "30s"; a
// program may also fill it in. What is left zero gets the default.
type Config struct {
	Console     string        `yaml:"console"`     // base URL
	Key         Secret        `yaml:"key"`         // API key with the role executor
	Name        string        `yaml:"name"`        // told to the console in the User-Agent; default "executor"
	Wait        time.Duration `yaml:"wait"`        // one long poll for work, at most a minute; default 30 s
	Poll        time.Duration `yaml:"poll"`        // between polls that brought nothing to start; default 500 ms
	Concurrency int           `yaml:"concurrency"` // actions at a time, at most 256; default 4
	StopWithin  time.Duration `yaml:"stop_within"` // to finish what runs when asked to stop; default 20 s
	BreakAfter  int           `yaml:"break_after"` // requests in a row that a system does not answer, until it is left alone; default 5
	ProbeAfter  time.Duration `yaml:"probe_after"` // until a read finds out whether it is back; default 10 s
	Systems     []System      `yaml:"systems"`     // at least one for an Executor; of several that serve a tool the one that names it longest does
}

// System is one business system. Reading and writing have credentials of
// their own, so that what looks at a result cannot change it.
type System struct {
	Tools      []string `yaml:"tools"`       // tool names; a trailing "*" stands for any rest
	BaseURL    string   `yaml:"base_url"`    // http(s)://host[/path]
	ReadToken  Secret   `yaml:"read_token"`  // sent as Authorization: Bearer …; nothing is when it is not set
	WriteToken Secret   `yaml:"write_token"` // the same, for what may change something
	// ActorHeader, when set, is the header that names the actor to the system.
	ActorHeader string `yaml:"actor_header"`
}

// LoadConfig reads a configuration file in YAML. Unknown keys are refused. The
// console and the key may be left out, to be filled in before New checks the
// whole.
func LoadConfig(path string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the executor's configuration: %w", err)
	}
	return parseConfig(raw)
}

// parseConfig is LoadConfig of a file's text.
func parseConfig(raw []byte) (Config, error) {
	var c Config
	if err := yaml.UnmarshalWithOptions(raw, &c, yaml.Strict()); err != nil {
		return Config{}, fmt.Errorf("reading the executor's configuration: %w", err)
	}
	return c, nil
}

// complete fills in defaults and checks everything.
func (c Config) complete() (Config, error) {
	setDefault(&c.Wait, defaultWait)
	setDefault(&c.Poll, defaultPoll)
	setDefault(&c.StopWithin, defaultStopWithin)
	setDefault(&c.Concurrency, defaultConcurrency)
	setDefault(&c.BreakAfter, defaultBreakAfter)
	setDefault(&c.ProbeAfter, defaultProbeAfter)
	setDefault(&c.Name, "executor")
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := checkBaseURL(c.Console); err != nil {
		wrong("console: %w", err)
	}
	if !c.Key.Set() {
		wrong("key: is not set")
	}
	if c.Wait < 0 || c.Wait > maxWait {
		wrong("wait: is between 0s and %s", maxWait)
	}
	if c.Poll < 0 || c.StopWithin < 0 || c.BreakAfter < 0 || c.ProbeAfter < 0 {
		wrong("poll, stop_within, break_after and probe_after: are not negative")
	}
	if c.Concurrency < 1 || c.Concurrency > maxConcurrency {
		wrong("concurrency: is between 1 and %d", maxConcurrency)
	}
	for i, s := range c.Systems {
		if err := s.check(); err != nil {
			wrong("systems[%d]: %w", i, err)
		}
	}
	if err := errors.Join(append(problems, overlaps(c.Systems)...)...); err != nil {
		return c, fmt.Errorf("the executor's configuration: %w", err)
	}
	return c, nil
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

func (s System) check() error {
	var problems []error
	if len(s.Tools) == 0 {
		problems = append(problems, errors.New("tools: name at least one"))
	}
	for _, pattern := range s.Tools {
		if stem := strings.TrimSuffix(pattern, "*"); pattern == "" || strings.Contains(stem, "*") {
			problems = append(problems, fmt.Errorf("tools: %q is no name and no name with \"*\" at its end", pattern))
		}
	}
	if err := checkBaseURL(s.BaseURL); err != nil {
		problems = append(problems, fmt.Errorf("base_url: %w", err))
	}
	if s.ReadToken.Set() && s.ReadToken == s.WriteToken {
		problems = append(problems, errors.New("write_token: is the read token; what looks at results must not be able to change them"))
	}
	if name := http.CanonicalHeaderKey(s.ActorHeader); name != "" && !strings.HasPrefix(name, "X-") {
		problems = append(problems, errors.New("actor_header: is a header of your own, starting with X-"))
	}
	return errors.Join(problems...)
}

func checkBaseURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is not set")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return errors.New("is not http(s)://host[/path]")
	case u.User != nil:
		return errors.New("holds a user name; credentials go into tokens")
	}
	return nil
}

// overlaps finds patterns that are given twice. Different patterns may cover
// the same tool: the longest wins.
func overlaps(systems []System) []error {
	var problems []error
	seen := map[string]bool{}
	for _, s := range systems {
		for _, pattern := range s.Tools {
			if seen[pattern] {
				problems = append(problems, fmt.Errorf("systems: %q is given twice", pattern))
			}
			seen[pattern] = true
		}
	}
	return problems
}

// patterns lists the tools that the configuration serves.
func (c Config) patterns() []string {
	var all []string
	for _, s := range c.Systems {
		all = append(all, s.Tools...)
	}
	return all
}

// serving returns the system of a tool: the one with the longest pattern.
func (c Config) serving(tool string) (System, bool) {
	best, found := -1, System{}
	for _, s := range c.Systems {
		for _, pattern := range s.Tools {
			if len(pattern) > best && matches(pattern, tool) {
				best, found = len(pattern), s
			}
		}
	}
	return found, best >= 0
}

func matches(pattern, tool string) bool {
	if stem, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(tool, stem)
	}
	return pattern == tool
}
