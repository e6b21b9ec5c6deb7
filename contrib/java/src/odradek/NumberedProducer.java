package odradek;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces numbered records of 100 bytes, idempotent, acks=all, over all partitions in turn.
 *
 * <p>Arguments: bootstrap servers, topic, partitions, records. Output: {@code acknowledged=N} for every ten
 * thousand records, and at the end {@code failed=N}. The value is the record's number in its partition, padded.
 */
public final class NumberedProducer {
    private static final int SIZE_BYTES = 100;
    private static final int STEP = 10_000;

    private NumberedProducer() { }

    public static void main(String[] args) {
        if (args.length != 4) {
            System.err.println("usage: NumberedProducer BOOTSTRAP TOPIC PARTITIONS RECORDS");
            System.exit(2);
        }
        int partitions = Integer.parseInt(args[2]);
        int records = Integer.parseInt(args[3]);
        AtomicInteger acknowledged = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        Callback report = (metadata, error) -> {
            if (error != null) {
                failed.incrementAndGet();
                System.err.println(error);
            } else if (acknowledged.incrementAndGet() % STEP == 0) {
                System.out.println("acknowledged=" + acknowledged.get());
            }
        };
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config(args[0]))) {
            for (int number = 0; number < records; number++) {
                byte[] value = value(number / partitions);
                producer.send(new ProducerRecord<>(args[1], number % partitions, null, value), report);
            }
        }
        System.out.println("failed=" + failed.get());
    }

    private static byte[] value(int number) {
        byte[] digits = Integer.toString(number).getBytes(StandardCharsets.US_ASCII);
        byte[] value = Arrays.copyOf(digits, SIZE_BYTES);
        Arrays.fill(value, digits.length, SIZE_BYTES, (byte) ' ');
        return value;
    }

    private static Map<String, Object> config(String bootstrap) {
        return Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ProducerConfig.ACKS_CONFIG, "all",
            ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true,
            ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class,
            ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    }
}
