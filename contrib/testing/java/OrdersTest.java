import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public final class OrdersTest {
    public static void main(String[] args) throws Exception {
        try (OdradekHost host = new OdradekHost()) {
            host.call("topics/create", "{\"name\": \"orders\"}");
            host.call("subscribe", "{\"prefixes\": \"org.apache.kafka.producer.\"}");
            host.call("fault", "{\"api\": \"Produce\", \"error\": \"NOT_ENOUGH_REPLICAS\"}");

            Map<String, Object> config = Map.of("bootstrap.servers", host.bootstrap, "client.id", "orders-app");
            try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>("orders", "one")).get();
                String points = host.call("telemetry/wait_for", "{\"client_id\": \"orders-app\"}");
                check(points.contains("org.apache.kafka.producer."), points);
            }

            String requests = host.call("requests/of", "{\"api\": \"Produce\"}");
            check(requests.split("orders-app").length - 1 == 2, "it tried twice: " + requests);
            String records = host.call("topics/records", "{\"name\": \"orders\"}");
            check(records.contains("\"value\": \"one\""), records);
        }
        System.out.println("passed");
    }

    static void check(boolean right, String found) {
        if (!right) {
            throw new AssertionError(found);
        }
    }
}
