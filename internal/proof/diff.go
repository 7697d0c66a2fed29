package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
)

// diff is one place where a call and its event differ.
type diff struct{ at, history, code string }

const absent = "absent"

// onlyRecorded are fields that the server or the SDK sets when the code does not: a call
// that leaves them out is no difference.
func onlyRecorded(name string) bool { return name == "id" || name == "workflow" || name == "data" }

// diffFields compares a call with its event, field by field.
func diffFields(event, code []field) (out []diff) {
	for _, c := range code {
		out = append(out, diffValue(c.name, find(event, c.name), c.value)...)
	}
	for _, e := range event {
		if !onlyRecorded(e.name) && !has(code, e.name) {
			out = append(out, diffValue(e.name, e.value, nil)...)
		}
	}
	return out
}

func has(fields []field, name string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
}

func find(fields []field, name string) any {
	for _, f := range fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func diffValue(at string, history, code any) []diff {
	switch {
	case isPayloads(history) || isPayloads(code):
		h, _ := history.(*commonpb.Payloads)
		c, _ := code.(*commonpb.Payloads)
		return diffPayloads(at, h.GetPayloads(), c.GetPayloads())
	case isPayload(history) || isPayload(code):
		h, _ := history.(*commonpb.Payload)
		c, _ := code.(*commonpb.Payload)
		return diffPayload(at, h, c)
	case isMap(history) || isMap(code):
		h, _ := history.(map[string]*commonpb.Payload)
		c, _ := code.(map[string]*commonpb.Payload)
		return diffMap(at, h, c)
	}
	h, c := text(history), text(code)
	if h == c {
		return nil
	}
	return []diff{{at, h, c}}
}

func isPayloads(v any) bool { _, ok := v.(*commonpb.Payloads); return ok }
func isPayload(v any) bool  { _, ok := v.(*commonpb.Payload); return ok }
func isMap(v any) bool      { _, ok := v.(map[string]*commonpb.Payload); return ok }

func text(v any) string {
	if v == nil {
		return absent
	}
	return fmt.Sprint(v)
}

func diffPayloads(at string, history, code []*commonpb.Payload) (out []diff) {
	for i := range max(len(history), len(code)) {
		var h, c *commonpb.Payload
		if i < len(history) {
			h = history[i]
		}
		if i < len(code) {
			c = code[i]
		}
		out = append(out, diffPayload(at+"["+strconv.Itoa(i)+"]", h, c)...)
	}
	return out
}

func diffMap(at string, history, code map[string]*commonpb.Payload) (out []diff) {
	keys := slices.Sorted(maps.Keys(history))
	for k := range code {
		if _, both := history[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		// The server adds a "type" to search attributes: only the data is the code's.
		if bytes.Equal(history[k].GetData(), code[k].GetData()) && (history[k] == nil) == (code[k] == nil) {
			continue
		}
		out = append(out, diffPayload(at+"."+k, history[k], code[k])...)
	}
	return out
}

func diffPayload(at string, history, code *commonpb.Payload) []diff {
	if history == nil && code == nil {
		return nil
	}
	if history != nil && code != nil && bytes.Equal(history.Data, code.Data) && sameEncoding(history, code) {
		return nil
	}
	if history == nil || code == nil || !sameEncoding(history, code) {
		return []diff{{at, payloadText(history), payloadText(code)}}
	}
	h, errH := decode(history.Data)
	c, errC := decode(code.Data)
	if errH != nil || errC != nil {
		return []diff{{at, payloadText(history), payloadText(code)}}
	}
	return diffJSON(at, h, c)
}

func sameEncoding(a, b *commonpb.Payload) bool {
	return bytes.Equal(a.GetMetadata()["encoding"], b.GetMetadata()["encoding"])
}

func payloadText(p *commonpb.Payload) string {
	if p == nil {
		return absent
	}
	return string(p.GetData())
}

func decode(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// diffJSON names the innermost places that differ, as input[0].lines[2].text.
func diffJSON(at string, history, code any) (out []diff) {
	switch h := history.(type) {
	case map[string]any:
		c, ok := code.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Collect(maps.Keys(h))
		for k := range c {
			if _, both := h[k]; !both {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			hv, inH := h[k]
			cv, inC := c[k]
			switch {
			case !inH:
				out = append(out, diff{at + "." + k, absent, jsonText(cv)})
			case !inC:
				out = append(out, diff{at + "." + k, jsonText(hv), absent})
			default:
				out = append(out, diffJSON(at+"."+k, hv, cv)...)
			}
		}
		return out
	case []any:
		c, ok := code.([]any)
		if !ok || len(c) != len(h) {
			break
		}
		for i := range h {
			out = append(out, diffJSON(at+"["+strconv.Itoa(i)+"]", h[i], c[i])...)
		}
		return out
	}
	if h, c := jsonText(history), jsonText(code); h != c {
		return []diff{{at, h, c}}
	}
	return nil
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
