package odradek;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.stats.CumulativeSum;
import org.apache.kafka.common.metrics.stats.WindowedCount;
import org.apache.kafka.common.telemetry.internals.MetricKey;
import org.apache.kafka.common.telemetry.internals.MetricNamingStrategy;
import org.apache.kafka.common.telemetry.internals.TelemetryMetricNamingConvention;

/**
 * The totals that a client itself had when it built its last push.
 *
 * <p>It is a metric of the application that is registered with the client (KIP-1076). The client reads it while it collects
 * the metrics of a push, on the thread that does its requests, so all totals are those of one moment, also those that
 * the push itself changes.
 */
final class PushedTotals implements Gauge<Double> {
    private static final MetricNamingStrategy<MetricName> NAMES =
        TelemetryMetricNamingConvention.getClientTelemetryMetricNamingStrategy("org.apache.kafka");

    private final Supplier<Map<MetricName, ? extends Metric>> metrics;
    private volatile Map<String, Double> totals = Map.of();

    private PushedTotals(Supplier<Map<MetricName, ? extends Metric>> metrics) {
        this.metrics = metrics;
    }

    static PushedTotals of(
            Metrics own, Supplier<Map<MetricName, ? extends Metric>> metrics, Consumer<KafkaMetric> register) {
        PushedTotals pushed = new PushedTotals(metrics);
        MetricName name = own.metricName("pushed-totals", "test-metrics");
        own.addMetric(name, pushed);
        register.accept(own.metric(name));
        return pushed;
    }

    @Override
    public Double value(MetricConfig config, long nowMs) {
        Map<String, Double> found = new TreeMap<>();
        metrics.get().values().forEach(metric -> {
            if (metric instanceof KafkaMetric each && each.isMeasurable()
                    && (each.measurable() instanceof CumulativeSum || each.measurable() instanceof WindowedCount)) {
                found.put(text(each.metricName()), (Double) each.metricValue());
            }
        });
        totals = found;
        return (double) found.size();
    }

    /** Print a line for each total: its OTLP name, its labels and its value, with tabs between them. */
    void print() {
        totals.forEach((name, value) -> System.out.println(name + "\t" + value));
    }

    private static String text(MetricName name) {
        MetricKey key = NAMES.metricKey(name);
        String labels = key.tags().entrySet().stream()
            .filter(entry -> !entry.getKey().equals("client_id")) // the client leaves it out of its pushes
            .map(entry -> entry.getKey() + "=" + entry.getValue())
            .sorted()
            .collect(Collectors.joining(","));
        return key.name() + "\t" + labels;
    }
}
