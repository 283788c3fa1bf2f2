package kube

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingvalidation "k8s.io/kubernetes/pkg/apis/scheduling/validation"
	"k8s.io/pod-security-admission/api"
	security "k8s.io/pod-security-admission/policy"
)

// TestManifests: each kustomization of deploy/k8s decodes strictly, the API server would accept each object, and each
// pod is allowed by the Pod Security level `restricted`.
func TestManifests(t *testing.T) {
	for _, folder := range kustomizations(t) {
		t.Run(strings.ReplaceAll(folder, "/", "-"), func(t *testing.T) {
			objects, err := decode(build(t, folder))
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) == 0 {
				t.Fatal("no objects")
			}
			for _, object := range objects {
				for _, finding := range check(t, object) {
					t.Errorf("%s: %s", nameOf(t, object), finding)
				}
			}
		})
	}
}

// otherTypes are kustomizations with types of a program whose library is not needed here.
var otherTypes = []string{"cert-manager"}

// components are no kustomizations of their own: TestChartEqualsManifests builds them in an overlay.
var components = []string{"board", "exporter"}

// kustomizations returns the folders of deploy/k8s that `kustomize build` takes.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(manifests, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		folder, err := filepath.Rel(manifests, filepath.Dir(file))
		if !slices.Contains(otherTypes, folder) && !slices.Contains(components, folder) {
			all = append(all, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"overlays/small", "overlays/production", "monitoring", "backup"} {
		if !slices.Contains(all, want) {
			t.Fatalf("%s has no kustomization %s", manifests, want)
		}
	}
	return all
}

// TestChecksFindMistakes: each check finds the mistake that it is for, and names it.
func TestChecksFindMistakes(t *testing.T) {
	small := string(build(t, "overlays/small"))
	production := string(build(t, "overlays/production"))
	backup := string(build(t, "backup"))
	rules := string(build(t, "monitoring"))
	for _, c := range []struct{ name, text, from, to, want string }{
		{"unknown field", small, "readOnlyRootFilesystem: true", "readOnlyRootFileSystem: true", "unknown field"},
		{"field twice", small, "automountServiceAccountToken: false",
			"automountServiceAccountToken: false\n      automountServiceAccountToken: false", "already set"},
		{"unknown kind", small, "kind: StatefulSet", "kind: StatefulSets", "no kind"},
		{"unknown field of a rule", rules, "podMetricsEndpoints:", "podMetricEndpoints:", "unknown field"},
		{"port", small, "containerPort: 8480", "containerPort: 84800", "between 1 and 65535"},
		{"selector", small, "matchLabels:\n      app.kubernetes.io/component: ledger",
			"matchLabels:\n      app.kubernetes.io/component: other", "selector"},
		{"missing volume", small, "mountPath: /etc/nats\n          name: config\n",
			"mountPath: /etc/nats\n          name: other\n", "Not found"},
		{"key of a map", small, "  NATS_HOST: ", "  NATS HOST: ", "config key"},
		{"label", small, "enforce: restricted", "enforce: of all", "label"},
		{"priority", production, "value: 1000000\n", "value: 2000000000\n", "maximum allowed"},
		{"unknown validation", small, "kind: Namespace", "kind: ServiceAccount", "has no validation here"},
		{"schedule", backup, "schedule: 17 2 * * *", "schedule: 17 2 * *", "schedule"},
		{"claim", backup, "ReadWriteOnce", "WriteOnce", "supported"},
		{"policy", small, "protocol: UDP", "protocol: UPD", "supported"},
		{"budget", small, "maxUnavailable: 1\n  selector", "maxUnavailable: -1\n  selector", "greater than or equal"},
		{"service", small, "port: 4222\n    targetPort: client", "port: 422222\n    targetPort: client", "between 1"},
		{"privileges", small, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true",
			"allowPrivilegeEscalation"},
		{"user of the broker", small, "runAsUser: 1000", "runAsUser: 0", "runAsUser=0"},
		{"privileges of a job", backup, "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if !strings.Contains(c.text, c.from) {
				t.Fatalf("the manifests have no %q", c.from)
			}
			findings := findingsOf(t, strings.Replace(c.text, c.from, c.to, 1))
			if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("%q in place of %q: found %q, want %q", c.to, c.from, findings, c.want)
			}
		})
	}
}

// findingsOf returns what is wrong with documents.
func findingsOf(t *testing.T, text string) []string {
	t.Helper()
	objects, err := decode([]byte(text))
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, object := range objects {
		all = append(all, check(t, object)...)
	}
	return all
}

// check returns what the API server and Pod Security would refuse in an object.
func check(t *testing.T, object runtime.Object) []string {
	t.Helper()
	findings := insecure(t, object)
	if object.GetObjectKind().GroupVersionKind().Group == "monitoring.coreos.com" {
		// a custom resource: the strict decoding is its check
		return findings
	}
	object = object.DeepCopyObject()
	scheme.Default(object)
	internal, err := scheme.UnsafeConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		t.Fatal(err)
	}
	errs, known := validate(internal)
	if !known {
		return append(findings, fmt.Sprintf("%T has no validation here: add it", internal))
	}
	for _, err := range errs {
		findings = append(findings, err.Error())
	}
	return findings
}

// validate returns the errors of the API server for an object that is created. false: the kind is not known here.
func validate(object runtime.Object) (field.ErrorList, bool) {
	template := func(p *core.PodTemplateSpec) corevalidation.PodValidationOptions {
		return pod.GetValidationOptionsFromPodTemplate(p, nil)
	}
	switch o := object.(type) {
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, template(&o.Spec.Template)), true
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, template(&o.Spec.Template)), true
	case *batch.CronJob:
		return batchvalidation.ValidateCronJobCreate(o, template(&o.Spec.JobTemplate.Spec.Template)), true
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o), true
	case *core.Namespace:
		return corevalidation.ValidateNamespace(o), true
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o,
			corevalidation.ValidationOptionsForPersistentVolumeClaimCreate()), true
	case *core.Service:
		// the API server copies it before it validates
		if o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o), true
	case *networking.Ingress:
		return networkingvalidation.ValidateIngressCreate(o), true
	case *networking.NetworkPolicy:
		options := networkingvalidation.NetworkPolicyValidationOptions{}
		return networkingvalidation.ValidateNetworkPolicy(o, options), true
	case *policy.PodDisruptionBudget:
		options := policyvalidation.PodDisruptionBudgetValidationOptions{}
		return policyvalidation.ValidatePodDisruptionBudget(o, options), true
	case *scheduling.PriorityClass:
		return schedulingvalidation.ValidatePriorityClass(o), true
	}
	return nil, false
}

// insecure returns what the level `restricted` forbids in the pods that an object makes.
func insecure(t *testing.T, object runtime.Object) []string {
	t.Helper()
	var template corev1.PodTemplateSpec
	switch o := object.(type) {
	case *appsv1.Deployment:
		template = o.Spec.Template
	case *appsv1.StatefulSet:
		template = o.Spec.Template
	case *batchv1.CronJob:
		template = o.Spec.JobTemplate.Spec.Template
	default:
		return nil
	}
	evaluator, err := security.NewEvaluator(security.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var findings []string
	for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			findings = append(findings, result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return findings
}

// nameOf returns kind and name of an object.
func nameOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + accessor.GetName()
}
