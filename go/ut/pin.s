// Functions without a body, such as those of pin.go, need an assembly file in their package.
