//go:build linux && (amd64 || arm64)

package ut

import (
	"fmt"
	"os"
)

// runProgram runs one of the programs that tests record.
func runProgram(name string) {
	switch name {
	case "state":
		fmt.Println(Enabled(), Err())
		Event("event", 42)
	default:
		fmt.Fprintf(os.Stderr, "no program %q\n", name)
		os.Exit(2)
	}
}
