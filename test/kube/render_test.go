// Package kube checks the Kubernetes manifests with the libraries of Kubernetes, kustomize and the Prometheus operator.
// It needs no cluster. It is a module of its own, so the product needs none of these libraries.
package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
)

const manifests = "../../deploy/k8s"

// scheme has the types that the API server knows, and those of the Prometheus operator.
var scheme = func() *runtime.Scheme {
	if err := monitoring.AddToScheme(legacyscheme.Scheme); err != nil {
		panic(err)
	}
	return legacyscheme.Scheme
}()

// codecs decode strictly: an unknown field, or one that is there twice, is an error.
var codecs = serializer.NewCodecFactory(scheme, serializer.EnableStrict)

// build returns the documents of a kustomization, as `make render` prints them.
func build(t *testing.T, folder string) []byte {
	t.Helper()
	k := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	list, err := k.Run(filesys.MakeFsOnDisk(), filepath.Join(manifests, folder))
	if err != nil {
		t.Fatalf("kustomize build %s: %v", folder, err)
	}
	text, err := list.AsYaml()
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return text
}

// decode returns the objects of documents. The error names the document by its kind and name.
func decode(text []byte) ([]runtime.Object, error) {
	var all []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", headOf(document), err)
		}
		all = append(all, object)
	}
}

// headOf returns the lines of a document that name it.
func headOf(document []byte) string {
	var head []string
	for line := range strings.Lines(string(document)) {
		if strings.HasPrefix(line, "kind:") || strings.HasPrefix(line, "  name:") {
			head = append(head, strings.TrimSpace(line))
		}
	}
	return strings.Join(head, ", ")
}
