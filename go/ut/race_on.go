//go:build race

package ut

// isRace says whether the race detector watches. It does not know that a pinned goroutine has its
// P's ring for itself, so each use of a ring is marked by atomic operations for it.
const isRace = true
