//go:build !race

package execution_test

// many is how many records a comparison is tried with.
const many = 100_000
