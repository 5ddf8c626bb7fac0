package openapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"gridnode/node/api"
	"gridnode/node/api/openapi"
	"gridnode/node/api/server"
)

var update = flag.Bool("update", false, "write openapi.json")

const octetStream = "application/octet-stream"

// inPath finds the parameters of a path.
var inPath = regexp.MustCompile(`{(\w+)}`)

// object is a JSON object under construction.
type object = map[string]any

// describe writes the description of routes.
func describe(t *testing.T) []byte {
	r := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, Mapper: func(of reflect.Type) *jsonschema.Schema {
		switch of {
		case reflect.TypeFor[api.Seconds]():
			return &jsonschema.Schema{Type: "number", Description: "seconds, exact to the microsecond"}
		case reflect.TypeFor[api.Amount]():
			return &jsonschema.Schema{Type: "number", Description: "credits, with at most six decimals"}
		case reflect.TypeFor[api.Instant]():
			return &jsonschema.Schema{Type: "string", Format: "date-time"}
		}
		return nil
	}}
	if err := r.AddGoComments("gridnode/node/api/openapi", "..", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	for key, text := range r.CommentMap {
		r.CommentMap[key] = strings.Join(strings.Fields(text), " ")
	}
	schemas := object{}
	schema := func(zero any) any {
		if zero == nil {
			return nil
		}
		b, err := json.Marshal(r.Reflect(zero))
		if err != nil {
			t.Fatal(err)
		}
		var s object
		if err := json.Unmarshal(bytes.ReplaceAll(b, []byte("#/$defs/"), []byte("#/components/schemas/")), &s); err != nil {
			t.Fatal(err)
		}
		if defs, ok := s["$defs"].(object); ok {
			maps.Copy(schemas, defs)
		}
		delete(s, "$defs")
		delete(s, "$schema")
		return s
	}
	body := func(media string, schema any) object {
		content := object{}
		if schema != nil {
			content["schema"] = schema
		}
		return object{media: content}
	}
	failure := object{"description": "what was wrong", "content": body("application/json", schema(api.Error{}))}
	paths := object{}
	for pattern, queries := range server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		o := openapi.Operations[pattern]
		var parameters []object
		answer := object{"description": "as asked", "content": body(cmp.Or(o.Media, "application/json"), schema(o.Gives))}
		name := strings.NewReplacer("/v1/", "", "/", "_", "{", "", "}", "", ".", "_").Replace(path)
		operation := object{
			"operationId": strings.ToLower(method) + "_" + strings.TrimPrefix(name, "_"), "summary": strings.TrimSuffix(o.About, "."),
			"tags":      []string{strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/v1"), "/"), "/")[0]},
			"responses": object{"200": answer, "default": failure},
		}
		if o.Also != "" { // of what its events have, the page says
			maps.Copy(answer["content"].(object), body(o.Also, object{"type": "string"}))
			parameters = append(parameters, object{"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string"},
				"description": "of " + o.Also + ": the last id that was read; the answer goes on behind it"})
		}
		if o.Switches {
			operation["responses"] = object{"101": object{"description": "frames, in both directions"}, "default": failure}
		}
		for _, p := range inPath.FindAllStringSubmatch(path, -1) {
			parameters = append(parameters, object{"name": p[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, p := range queries {
			parameters = append(parameters, object{"name": p, "in": "query", "schema": object{"type": "string"}})
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		switch {
		case o.Takes != nil:
			operation["requestBody"] = object{"required": true, "content": body("application/json", schema(o.Takes))}
		case o.Bytes:
			operation["requestBody"] = object{"required": true, "content": body(octetStream, nil)}
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = operation
	}
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "gridnode", "version": "v1", "license": object{"name": "see LICENSE", "url": "https://localhost/LICENSE"},
			"description": "The API of a site's daemon: HTTP with JSON on a Unix socket, or over TLS with a token. See docs/api.md.",
		},
		"servers":  []object{{"url": "http://gridnode", "description": "on the socket api.sock of the site's home"}},
		"security": []object{{}, {"token": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "gridnode token create; at a port only"}},
		},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// TestOpenAPI: what is served describes what is answered.
func TestOpenAPI(t *testing.T) {
	routes := slices.Sorted(maps.Keys(server.Routes()))
	if described := slices.Sorted(maps.Keys(openapi.Operations)); !slices.Equal(routes, described) {
		t.Fatalf("Operations does not describe %q; it describes %q, which nobody answers", without(routes, described), without(described, routes))
	}
	text := describe(t)
	if *update {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	answer := httptest.NewRecorder()
	if err := openapi.Serve(answer, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, answer.Body.Bytes()) {
		t.Error("openapi.json is not of these routes and types: go test ./node/api/openapi -update")
	}
}

// without returns what of list is not in others.
func without(list, others []string) (left []string) {
	for _, s := range list {
		if !slices.Contains(others, s) {
			left = append(left, s)
		}
	}
	return left
}
