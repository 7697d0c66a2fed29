package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// defaulter is a list's element that does not start from zero.
type defaulter interface{ setDefaults() }

// nodeReader is a field with a shape of its own.
type nodeReader interface {
	readNode(f *finding, path string, n *yaml.Node)
}

// tokenShape is how the secrets that people put into a config by mistake begin.
var tokenShape = regexp.MustCompile(`^(xox[a-z]|xapp|sk-ant)-`)

// yamlLine finds the line in an error of the YAML parser, which has no field for it.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parse reads the one YAML document of a config. A file that is no YAML at all has
// one problem: nothing after it could be told.
func parse(f *finding, text []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		f.addLine(1, "the file is empty; start from smith.example.yaml")
		return nil
	case err != nil:
		m := yamlLine.FindStringSubmatch(err.Error())
		line := 1
		if m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
		f.addLine(line, "not readable as YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		f.addLine(max(more.Line, 1), "a second YAML document begins here; a config is one document, remove what follows \"---\"")
	}
	if len(doc.Content) != 1 {
		f.addLine(1, "the file is empty; start from smith.example.yaml")
		return nil
	}
	return doc.Content[0]
}

// read sets v from n, and notes every problem on the way; it never stops at one.
func read(f *finding, path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		f.addLine(n.Line, "%s: anchors and aliases are not read here; write the value out", named(path))
		return
	}
	if n.ShortTag() == "!!null" {
		return // as if the field were not there: its default stands
	}
	if r, ok := v.Addr().Interface().(nodeReader); ok {
		r.readNode(f, path, n)
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		readDuration(f, path, n, v)
	case v.Kind() == reflect.Struct:
		readStruct(f, path, n, v)
	case v.Kind() == reflect.Slice:
		readSlice(f, path, n, v)
	default:
		readScalar(f, path, n, v)
	}
}

func readStruct(f *finding, path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		f.addLine(n.Line, "%s must be a group of fields, one a line, not %s", named(path), kind(n))
		return
	}
	fields, names := map[string]reflect.Value{}, []string{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		fields[name], names = v.Field(i), append(names, name)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := fields[key.Value]
		if key.Kind != yaml.ScalarNode || !known {
			unknown(f, path, key, names)
			continue
		}
		if first, twice := seen[key.Value]; twice {
			f.addLine(key.Line, "%s stands here a second time (first on line %d); keep one", join(path, key.Value), first)
			continue
		}
		seen[key.Value] = key.Line
		f.lines[join(path, key.Value)] = key.Line
		read(f, join(path, key.Value), value, field)
	}
}

func unknown(f *finding, path string, key *yaml.Node, names []string) {
	if key.Kind != yaml.ScalarNode {
		f.addLine(key.Line, "%s: a field's name must be a word, not %s", named(path), kind(key))
		return
	}
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	if near := nearest(key.Value, names); near != "" {
		f.addLine(key.Line, "unknown field %s %s; did you mean %s?", short(key.Value), where, near)
		return
	}
	sorted := slices.Sorted(slices.Values(names))
	f.addLine(key.Line, "unknown field %s %s; the fields there are %s", short(key.Value), where, strings.Join(sorted, ", "))
}

func readSlice(f *finding, path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		f.addLine(n.Line, "%s must be a list, not %s; write [a, b] or one \"- \" line each", named(path), kind(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		f.lines[at] = item.Line
		if d, ok := v.Index(i).Addr().Interface().(defaulter); ok {
			d.setDefaults()
		}
		read(f, at, item, v.Index(i))
	}
}

func readDuration(f *finding, path string, n *yaml.Node, v reflect.Value) {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		f.addLine(n.Line, "%s must be a duration with its unit, such as 30s, 5m or 1h30m, not %s", named(path), kind(n))
		return
	}
	v.SetInt(int64(d))
}

func readScalar(f *finding, path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		f.addLine(n.Line, "%s must be one value, not %s", named(path), kind(n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if tokenShape.MatchString(n.Value) {
			f.addLine(n.Line, "%s holds a token; put it into the environment and remove it here (and change it: it was written down)", named(path))
			return
		}
		if n.ShortTag() != "!!str" {
			f.addLine(n.Line, "%s must be text, not %s; put it in quotes", named(path), kind(n))
			return
		}
		if i := strings.IndexFunc(n.Value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }); i >= 0 {
			f.addLine(n.Line, "%s holds the control character %q; remove it", named(path), n.Value[i])
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.ShortTag() != "!!bool" || n.Decode(v.Addr().Interface()) != nil {
			f.addLine(n.Line, "%s must be true or false, not %s", named(path), kind(n))
		}
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if n.ShortTag() != "!!int" || err != nil {
			f.addLine(n.Line, "%s must be a whole number, not %s", named(path), kind(n))
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		x, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if t := n.ShortTag(); (t != "!!int" && t != "!!float") || err != nil {
			f.addLine(n.Line, "%s must be a number, not %s", named(path), kind(n))
			return
		}
		v.SetFloat(x)
	default:
		panic("config: no reader for " + v.Type().String())
	}
}

// kind says what a node is, for a message.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + short(n.Value)
	case "!!bool":
		return n.Value
	case "!!null":
		return "nothing"
	}
	if tokenShape.MatchString(n.Value) {
		return "a token (and no token stands in a config)"
	}
	return short(n.Value)
}

func named(path string) string {
	if path == "" {
		return "the config"
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
