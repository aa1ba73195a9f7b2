//go:build !race

package ut

const isRace = false
