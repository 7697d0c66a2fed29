package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Metrics is what a process counts, in Prometheus' format.
type Metrics struct {
	// Meter makes Smith's own instruments.
	Meter metric.Meter
	// Temporal is for client.Options.MetricsHandler: the SDK counts through it.
	Temporal client.MetricsHandler

	registry *prometheus.Registry
	provider *sdkmetric.MeterProvider
}

// secondsBuckets fit what is measured in seconds, from a hop between two tasks to
// the longest turn.
func secondsBuckets() []float64 {
	return []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800}
}

// NewMetrics returns the metrics of a process; nothing is registered globally, so
// that a test may have several.
func NewMetrics(log *slog.Logger) (*Metrics, error) {
	m := &Metrics{registry: prometheus.NewRegistry()}
	if err := errors.Join(
		m.registry.Register(collectors.NewGoCollector()),
		m.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	); err != nil {
		return nil, fmt.Errorf("register the process's metrics: %w", err)
	}
	exporter, err := otelprom.New(otelprom.WithRegisterer(m.registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make the metrics' exporter: %w", err)
	}
	seconds := sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: secondsBuckets()}},
	)
	m.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithView(seconds))
	m.Meter = m.provider.Meter("smith")
	m.Temporal = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                m.provider.Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { log.Warn("a metric of the Temporal SDK was not counted", KeyError, err) },
	})
	return m, nil
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
