// Package languages tests the example agents in other languages, with `make languages`.
package languages
