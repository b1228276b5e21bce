package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// manifest has the objects of docs/kubernetes.yaml. The key of each map is the name of the object.
type manifest struct {
	jobs        map[string]batchv1.Job
	deployments map[string]appsv1.Deployment
	services    map[string]corev1.Service
	configMaps  map[string]corev1.ConfigMap
	budgets     map[string]policyv1.PodDisruptionBudget
}

// decodeObject adds the Kubernetes object in a YAML document to a map. It fails for unknown fields
// and for values of the wrong type.
func decodeObject[T any](t *testing.T, document string, objects map[string]T, name func(*T) string) {
	t.Helper()
	var object T
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object), document)
	require.NotEmpty(t, name(&object))
	require.NotContains(t, objects, name(&object))
	objects[name(&object)] = object
}

// readManifest reads docs/kubernetes.yaml. It fails for kinds of objects that the tests do not know.
func readManifest(t *testing.T) (m manifest, text string) {
	t.Helper()
	all, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubernetes.yaml"))
	require.NoError(t, err)
	m = manifest{map[string]batchv1.Job{}, map[string]appsv1.Deployment{}, map[string]corev1.Service{}, map[string]corev1.ConfigMap{}, map[string]policyv1.PodDisruptionBudget{}}
	for document := range strings.SplitSeq(string(all), "\n---\n") {
		var kind struct{ APIVersion, Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
		switch kind.APIVersion + " " + kind.Kind {
		case "batch/v1 Job":
			decodeObject(t, document, m.jobs, func(o *batchv1.Job) string { return o.Name })
		case "apps/v1 Deployment":
			decodeObject(t, document, m.deployments, func(o *appsv1.Deployment) string { return o.Name })
		case "v1 Service":
			decodeObject(t, document, m.services, func(o *corev1.Service) string { return o.Name })
		case "v1 ConfigMap":
			decodeObject(t, document, m.configMaps, func(o *corev1.ConfigMap) string { return o.Name })
		case "policy/v1 PodDisruptionBudget":
			decodeObject(t, document, m.budgets, func(o *policyv1.PodDisruptionBudget) string { return o.Name })
		default:
			require.Fail(t, "unknown kind", document)
		}
	}
	return m, string(all)
}

func TestKubernetes_podsHaveLimitsAndNoPrivileges(t *testing.T) {
	t.Parallel()
	m, _ := readManifest(t)
	pods := map[string]corev1.PodSpec{}
	for name, o := range m.jobs {
		pods[name] = o.Spec.Template.Spec
	}
	for name, o := range m.deployments {
		pods[name] = o.Spec.Template.Spec
		require.Equal(t, o.Spec.Selector.MatchLabels, o.Spec.Template.Labels, name)
		require.Positive(t, *o.Spec.Replicas)
	}
	require.Len(t, pods, 3)
	for name, pod := range pods {
		require.False(t, *pod.AutomountServiceAccountToken, name)
		require.False(t, *pod.EnableServiceLinks, "%s must set enableServiceLinks to false, because the programs refuse the variables that Kubernetes sets for services", name)
		require.True(t, *pod.SecurityContext.RunAsNonRoot, name)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, name)
		require.Len(t, pod.Containers, 1)
		c := pod.Containers[0]
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
		for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[resource], c.Resources.Limits[resource]
			require.False(t, request.IsZero(), name)
			require.GreaterOrEqual(t, limit.Cmp(request), 0, "%s: the limit of a resource must not be below its request", name)
		}
		require.Regexp(t, `:\d+\.\d+\.\d+$`, c.Image, "%s: the image must have an exact version", name)
		require.Contains(t, []string{"/server", "/collector", "/reeltally"}, c.Command[0], name)
	}
}

func TestKubernetes_probesAndTheServiceUseThePortsOfThePrograms(t *testing.T) {
	t.Parallel()
	m, _ := readManifest(t)
	for name, o := range m.deployments {
		c := o.Spec.Template.Spec.Containers[0]
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			require.NotNil(t, probe, name)
			if probe.HTTPGet != nil {
				require.Contains(t, ports, probe.HTTPGet.Port.StrVal, name)
				require.Contains(t, []string{"/livez", "/readyz", "/metrics"}, probe.HTTPGet.Path, name)
			} else {
				require.Contains(t, ports, probe.TCPSocket.Port.StrVal, name)
			}
		}
	}
	server := m.deployments["reeltally-server"]
	require.Equal(t, server.Spec.Template.Labels, m.services["reeltally-server"].Spec.Selector)
	require.Equal(t, server.Spec.Template.Labels, m.budgets["reeltally-server"].Spec.Selector.MatchLabels)
	require.Equal(t, "http", m.services["reeltally-server"].Spec.Ports[0].TargetPort.StrVal)
	require.Equal(t, int32(8080), server.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort)
}

// The manifest must contain no Secret, because the manifest is public. The programs must know each variable REELTALLY_… that the manifest
// names.
func TestKubernetes_variablesAreKnownAndSecretsAreNotInTheManifest(t *testing.T) {
	t.Parallel()
	m, text := readManifest(t)
	require.NotContains(t, text, "kind: Secret\n")
	for _, name := range regexp.MustCompile(`REELTALLY_[A-Z_]*[A-Z]`).FindAllString(text, -1) {
		require.Contains(t, boot.Variables, name)
	}
	sources := func(pod corev1.PodSpec) (names []string) {
		for _, from := range pod.Containers[0].EnvFrom {
			if from.SecretRef != nil {
				names = append(names, from.SecretRef.Name)
			} else {
				require.Contains(t, m.configMaps, from.ConfigMapRef.Name)
			}
		}
		return names
	}
	require.Equal(t, []string{"reeltally-database"}, sources(m.jobs["reeltally-migrate"].Spec.Template.Spec))
	require.Equal(t, []string{"reeltally-database"}, sources(m.deployments["reeltally-server"].Spec.Template.Spec))
	require.Equal(t, []string{"reeltally-database", "reeltally-sources"}, sources(m.deployments["reeltally-collector"].Spec.Template.Spec))
	for _, secret := range []string{"reeltally-database", "reeltally-sources"} {
		require.Contains(t, text, "kubectl create secret generic "+secret)
	}
}
