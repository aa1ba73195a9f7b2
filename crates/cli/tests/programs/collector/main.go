// A collector of OpenTelemetry: its own OTLP receiver, whose traces its own exporter writes to a file.
//
// collector ADDRESS FILE json|proto
//
// It prints the address that it listens at, and ends when its standard input does.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func configured(config component.Config, values map[string]any) component.Config {
	if err := confmap.NewFromStringMap(values).Unmarshal(config); err != nil {
		log.Fatal(err)
	}
	return config
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: collector ADDRESS FILE json|proto")
	}
	address, file, format := os.Args[1], os.Args[2], os.Args[3]
	ctx, host := context.Background(), componenttest.NewNopHost()

	files := fileexporter.NewFactory()
	writer, err := files.CreateTraces(ctx, exporter.Settings{
		ID:                component.NewID(files.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, configured(files.CreateDefaultConfig(), map[string]any{"path": file, "format": format}))
	if err != nil {
		log.Fatal(err)
	}
	receivers := otlpreceiver.NewFactory()
	reader, err := receivers.CreateTraces(ctx, receiver.Settings{
		ID:                component.NewID(receivers.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, configured(receivers.CreateDefaultConfig(), map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": address}},
	}), writer)
	if err != nil {
		log.Fatal(err)
	}
	for _, part := range []component.Component{writer, reader} {
		if err := part.Start(ctx, host); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("listening at", address)
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, part := range []component.Component{reader, writer} {
		if err := part.Shutdown(ctx); err != nil {
			log.Fatal(err)
		}
	}
}
