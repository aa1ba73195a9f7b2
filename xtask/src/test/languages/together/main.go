package main

import "github.com/undertick/undertick/go/ut"

func main() {
	done := make(chan bool)
	name := ut.Name("in Go")
	for n := 0; n < 30; n++ {
		go func() {
			defer func() { done <- true }()
			defer name.Begin().End()
		}()
	}
	for n := 0; n < 30; n++ {
		<-done
	}
}
