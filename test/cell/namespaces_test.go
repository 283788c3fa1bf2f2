//go:build !clients

package cell

// isolated says whether the tests run in namespaces of their own.
const isolated = true
