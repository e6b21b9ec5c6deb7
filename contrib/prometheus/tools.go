//go:build tools

// Package prometheus pins the Prometheus that the tests and trials run; prometheus.py builds it.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
