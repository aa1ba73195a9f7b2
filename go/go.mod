module github.com/undertick/undertick/go

go 1.25
