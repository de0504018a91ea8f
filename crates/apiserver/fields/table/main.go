// Command table writes ../src/table.txt: the structure of the served kinds, without descriptions.
// With -descriptions it writes ../src/openapi/descriptions.json instead: their descriptions.
//
// Names, Go types, what the encoder omits and patch strategies come from the Go types by
// reflection. List types, defaults, enums and descriptions come from an API server's OpenAPI
// documents, whose files are the arguments: /openapi/v2 first, then those of /openapi/v3 (only
// these have defaults). With a reference server running:
//
//	kubectl get --raw /openapi/v2 > v2.json
//	kubectl get --raw /openapi/v3/api/v1 > core.json
//	go run . v2.json core.json > ../src/table.txt
//	go run . -descriptions v2.json > ../src/openapi/descriptions.json
//
// # Notation
//
// A line "kind GROUP VERSION KIND TYPE" gives the type of a kind by its index in the list of types
// that follows. A line "type NAME OPENAPI-NAME [atomic]" starts a struct, and each indented line is
// a field of it: its name, its shape, two marks, its Go type, and then attributes.
//
// Shapes: s string, i int32, l int64, b bool, q quantity, o int or string, t time, u time with
// microseconds, y bytes, a anything, @N the struct N, [X a list of X, {X a map from strings to X.
// First mark: what the encoder omits ("." nothing, "e" omitempty, "z" omitzero).
// Second mark: "*" for a pointer.
// Attributes: required; in=NAME (inlined from that struct); atomic, granular, set or keys=A,B (list
// or map type); patch=STRATEGY and by=KEY (strategic merge patches); enum=A|B; default=JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"sort"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type root struct {
	group, version string
	object         any
}

var roots = []root{
	{"", "v1", core.Namespace{}}, {"", "v1", core.NamespaceList{}},
	{"", "v1", core.Node{}}, {"", "v1", core.NodeList{}},
	{"", "v1", core.Pod{}}, {"", "v1", core.PodList{}},
	{"", "v1", core.PersistentVolume{}}, {"", "v1", core.PersistentVolumeList{}},
	{"", "v1", core.PersistentVolumeClaim{}}, {"", "v1", core.PersistentVolumeClaimList{}},
	{"", "v1", core.Event{}}, {"", "v1", core.EventList{}},
	{"", "v1", core.ConfigMap{}}, {"", "v1", core.ConfigMapList{}},
	{"", "v1", core.Secret{}}, {"", "v1", core.SecretList{}},
	{"", "v1", core.ServiceAccount{}}, {"", "v1", core.ServiceAccountList{}},
	{"", "v1", core.Binding{}},
	{"events.k8s.io", "v1", events.Event{}}, {"events.k8s.io", "v1", events.EventList{}},
	{"storage.k8s.io", "v1", storage.StorageClass{}}, {"storage.k8s.io", "v1", storage.StorageClassList{}},
	{"storage.k8s.io", "v1", storage.VolumeAttributesClass{}}, {"storage.k8s.io", "v1", storage.VolumeAttributesClassList{}},
	{"storage.k8s.io", "v1", storage.CSIDriver{}}, {"storage.k8s.io", "v1", storage.CSIDriverList{}},
	{"storage.k8s.io", "v1", storage.CSINode{}}, {"storage.k8s.io", "v1", storage.CSINodeList{}},
	{"storage.k8s.io", "v1", storage.CSIStorageCapacity{}}, {"storage.k8s.io", "v1", storage.CSIStorageCapacityList{}},
	{"storage.k8s.io", "v1", storage.VolumeAttachment{}}, {"storage.k8s.io", "v1", storage.VolumeAttachmentList{}},
	{"coordination.k8s.io", "v1", coordination.Lease{}}, {"coordination.k8s.io", "v1", coordination.LeaseList{}},
	{"meta.k8s.io", "v1", meta.Status{}}, {"meta.k8s.io", "v1", meta.DeleteOptions{}},
}

// scalars are the Go types that have their own encoding in JSON.
var scalars = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():    "q",
	reflect.TypeFor[intstr.IntOrString]():   "o",
	reflect.TypeFor[meta.Time]():            "t",
	reflect.TypeFor[meta.MicroTime]():       "u",
	reflect.TypeFor[meta.FieldsV1]():        "a",
	reflect.TypeFor[runtime.RawExtension](): "a",
	reflect.TypeFor[[]byte]():               "y",
}

type definition struct {
	Description string                `json:"description"`
	Required    []string              `json:"required"`
	Properties  map[string]definition `json:"properties"`
	Items       *definition           `json:"items"`
	Default     json.RawMessage       `json:"default"`
	Enum        []string              `json:"enum"`
	ListType    string                `json:"x-kubernetes-list-type"`
	ListKeys    []string              `json:"x-kubernetes-list-map-keys"`
	MapType     string                `json:"x-kubernetes-map-type"`
	Ref         string                `json:"$ref"`
}

var (
	definitions map[string]definition
	defaults    = map[string]definition{}
	indices     = map[reflect.Type]int{}
	queue       []reflect.Type
)

func public(t reflect.Type) string {
	return "io." + strings.NewReplacer("k8s.io/", "k8s.", "/", ".").Replace(t.PkgPath()) + "." + t.Name()
}

func index(t reflect.Type) int {
	if _, known := indices[t]; !known {
		indices[t] = len(queue)
		queue = append(queue, t)
	}
	return indices[t]
}

// shape returns a type in the table's notation: a letter, [element, {value, or @ and the index of a
// struct.
func shape(t reflect.Type) string {
	if letter, known := scalars[t]; known {
		return letter
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shape(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("@%d", index(t))
	case reflect.Slice:
		return "[" + shape(t.Elem())
	case reflect.Map:
		return "{" + shape(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64:
		return "l"
	}
	panic("no shape for " + t.String())
}

func field(f reflect.StructField, of, with definition, inlined string, out *bufio.Writer) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	t := f.Type
	pointer := "."
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), "*"
	}
	omit := "."
	if strings.Contains(options, "omitzero") {
		omit = "z"
	} else if strings.Contains(options, "omitempty") {
		omit = "e"
	}
	d := of.Properties[name]
	fmt.Fprintf(out, "\t%s %s %s%s %s", name, shape(t), omit, pointer, t.String())
	if inlined != "" {
		fmt.Fprintf(out, " in=%s", inlined)
	}
	for _, r := range of.Required {
		if r == name {
			fmt.Fprint(out, " required")
		}
	}
	switch d.ListType {
	case "":
	case "map":
		fmt.Fprintf(out, " keys=%s", strings.Join(d.ListKeys, ","))
	default:
		fmt.Fprintf(out, " %s", d.ListType)
	}
	if d.MapType != "" {
		fmt.Fprintf(out, " %s", d.MapType)
	}
	if s := f.Tag.Get("patchStrategy"); s != "" {
		fmt.Fprintf(out, " patch=%s", s)
	}
	if k := f.Tag.Get("patchMergeKey"); k != "" {
		fmt.Fprintf(out, " by=%s", k)
	}
	enum := d.Enum
	if d.Items != nil {
		enum = append(enum, d.Items.Enum...)
	}
	if len(enum) > 0 {
		fmt.Fprintf(out, " enum=%s", strings.Join(enum, "|"))
	}
	if text := string(with.Properties[name].Default); text != "" && text != "{}" && text != `""` && text != "0" && text != "false" {
		fmt.Fprintf(out, " default=%s", text)
	}
	fmt.Fprintln(out)
}

func fields(t reflect.Type, of, with definition, inlined string, out *bufio.Writer) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			fields(f.Type, of, with, f.Name, out)
		default:
			field(f, of, with, inlined, out)
		}
	}
}

// descriptions writes the descriptions of the types of the table and of their fields. The key of a
// type's own description is empty.
func descriptions(out *bufio.Writer) {
	types := map[string]map[string]string{}
	add := func(name string) {
		texts := map[string]string{"": definitions[name].Description}
		for field, property := range definitions[name].Properties {
			texts[field] = property.Description
		}
		maps.DeleteFunc(texts, func(_, text string) bool { return text == "" })
		if len(texts) > 0 {
			types[name] = texts
		}
	}
	for _, t := range queue {
		add(public(t))
	}
	for t := range scalars {
		add(public(t))
	}
	add("io.k8s.apimachinery.pkg.apis.meta.v1.Patch")
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(types); err != nil {
		panic(err)
	}
}

func main() {
	paths := os.Args[1:]
	describe := len(paths) > 0 && paths[0] == "-descriptions"
	if describe {
		paths = paths[1:]
	}
	for _, path := range paths {
		var document struct {
			Definitions map[string]definition
			Components  struct{ Schemas map[string]definition }
		}
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		if err := json.Unmarshal(text, &document); err != nil {
			panic(err)
		}
		if document.Definitions != nil {
			definitions = document.Definitions
		}
		maps.Copy(defaults, document.Components.Schemas)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if describe {
		table(bufio.NewWriter(io.Discard))
		descriptions(out)
	} else {
		table(out)
	}
}

// table writes all kinds and all types that they refer to.
func table(out *bufio.Writer) {
	fmt.Fprintln(out, "# Written by ../table from the Go types of Kubernetes v1.36.4 and its OpenAPI documents. See")
	fmt.Fprintln(out, "# ../table/main.go for the notation.")
	for _, r := range roots {
		t := reflect.TypeOf(r.object)
		fmt.Fprintf(out, "kind %q %s %s %d\n", r.group, r.version, t.Name(), index(t))
	}
	for i := 0; i < len(queue); i++ {
		t := queue[i]
		of, known := definitions[public(t)]
		flags := ""
		if of.MapType != "" {
			flags = " " + of.MapType
		}
		if !known {
			flags += " private"
		}
		fmt.Fprintf(out, "type %s %s%s\n", t.Name(), public(t), flags)
		sort.Strings(of.Required)
		fields(t, of, defaults[public(t)], "", out)
	}
}
