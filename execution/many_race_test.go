//go:build race

package execution_test

// many is how many records a comparison is tried with. The race detector makes
// each of them many times slower.
const many = 20_000
