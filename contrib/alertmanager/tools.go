//go:build tools

// Package alertmanager pins the Alertmanager that the tests run; alertmanager.py builds it.
package alertmanager

import _ "github.com/prometheus/alertmanager/cmd/alertmanager"
