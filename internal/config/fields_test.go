package config

import "reflect"

// fieldNames returns the name of every field that a config file may have.
func fieldNames() []string { return namesIn(reflect.TypeFor[Config]()) }

func namesIn(t reflect.Type) []string {
	if t.Kind() == reflect.Slice {
		return namesIn(t.Elem())
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			names = append(append(names, name), namesIn(t.Field(i).Type)...)
		}
	}
	return names
}
