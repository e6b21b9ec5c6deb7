package odradek.relay;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsContext;
import org.apache.kafka.common.metrics.MetricsReporter;

/** The part of a metrics reporter that both generations of the telemetry interface share. Metrics are ignored. */
abstract class RelayReporter implements MetricsReporter {
    private Relay relay;

    /** The relay of a broker, which will hand over pushes. */
    final Relay relay() {
        relay.show();
        return relay;
    }

    @Override
    public final void configure(Map<String, ?> configs) {
        relay = new Relay(configs);
    }

    @Override
    public final void contextChange(MetricsContext context) {
        relay.cluster(context.contextLabels().get("kafka.cluster.id"));
    }

    @Override
    public final void close() {
        relay.close();
    }

    @Override
    public final void init(List<KafkaMetric> metrics) { }

    @Override
    public final void metricChange(KafkaMetric metric) { }

    @Override
    public final void metricRemoval(KafkaMetric metric) { }
}
