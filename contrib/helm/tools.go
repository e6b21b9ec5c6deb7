//go:build tools

// Package helm pins the Helm that the tests run; helm.py builds it.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
