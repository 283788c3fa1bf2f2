package kube

import (
	"regexp"
	"strings"
	"testing"
)

// ours are the rows of the guide's table beside other charts, with what the manifests of production and of all parts
// have to contain for the cell of Holdfast to be true. An empty one is shown by the test that is named.
var ours = map[string]string{
	"read at":                    "", // TestTableBesideOtherCharts
	"a schema checks the values": "", // TestChartRefuses
	"containers run as `restricted` requires": `runAsNonRoot: true`,
	"network policies": "(?s)kind: NetworkPolicy\n.*" +
		`podSelector: \{\}\n  policyTypes:\n  - Ingress\n  - Egress`,
	"PodDisruptionBudget":                                `kind: PodDisruptionBudget`,
	"priority class":                                     `kind: PriorityClass`,
	"spread over zones":                                  `topologyKey: topology\.kubernetes\.io/zone`,
	"`GOMEMLIMIT` follows the memory limit":              `name: GOMEMLIMIT`,
	"a changed password or certificate needs no restart": "", // TestReload of test/cell
	"PodMonitor":                                         `kind: PodMonitor`,
	"alerts as a PrometheusRule":                         `kind: PrometheusRule`,
	"Grafana dashboard":                                  `dashboard\.json`,
	"backup, restore":                                    `kind: CronJob`,
	"plain manifests beside the chart":                   "", // TestChartEqualsManifests
}

// TestTableBesideOtherCharts: each row of the table has its proof, and the manifests have what it says.
func TestTableBesideOtherCharts(t *testing.T) {
	_, table, found := strings.Cut(read(t, root+"docs/guide/kubernetes.md"), "## Beside other charts\n")
	if !found {
		t.Fatal("the guide has no table")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	text := string(overlay(t, "production"))
	for _, folder := range []string{"backup", "monitoring"} {
		text += "---\n" + string(build(t, folder))
	}
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| `).FindAllStringSubmatch(table, -1) {
		rows++
		want, known := ours[row[1]]
		if !known {
			t.Errorf("%q has no proof", row[1])
		} else if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%q: the manifests have no %s", row[1], want)
		}
	}
	if rows != len(ours) {
		t.Errorf("the table has %d rows, and %d have a proof", rows, len(ours))
	}
}
