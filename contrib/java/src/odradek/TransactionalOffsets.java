package odradek;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces a record, reads it in a group, commits its offset in a transaction, and deletes the group.
 *
 * <p>Arguments: bootstrap servers, topic with one partition, group. Output: {@code committed=N}, the group's offset,
 * then {@code unknown=}, {@code deleted=} and {@code again=}, the errors of deleting an unknown group, this group, and this group again.
 */
public final class TransactionalOffsets {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private TransactionalOffsets() { }

    public static void main(String[] args) throws Exception {
        if (args.length != 3) {
            throw new IllegalArgumentException("usage: TransactionalOffsets BOOTSTRAP TOPIC GROUP");
        }
        TopicPartition partition = new TopicPartition(args[1], 0);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            copyOnce(args[0], partition, args[2]);
            Map<TopicPartition, OffsetAndMetadata> offsets =
                admin.listConsumerGroupOffsets(args[2]).partitionsToOffsetAndMetadata().get();
            System.out.println("committed=" + offsets.get(partition).offset());
            System.out.println("unknown=" + errorOfDeleting(admin, "unknown"));
            System.out.println("deleted=" + errorOfDeleting(admin, args[2]));
            System.out.println("again=" + errorOfDeleting(admin, args[2]));
        }
    }

    private static void copyOnce(String bootstrap, TopicPartition partition, String group) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                    Map.of("bootstrap.servers", bootstrap, "transactional.id", group, "client.id", group),
                    new StringSerializer(), new StringSerializer());
                KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                    Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", "consumer",
                        "auto.offset.reset", "earliest", "isolation.level", "read_committed",
                        "enable.auto.commit", false),
                    new StringDeserializer(), new StringDeserializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), "key", "first"));
            producer.commitTransaction();
            consumer.subscribe(List.of(partition.topic()));
            ConsumerRecords<String, String> read = firstOf(consumer);
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), "key", "second"));
            producer.sendOffsetsToTransaction(
                Map.of(partition, new OffsetAndMetadata(read.iterator().next().offset() + 1)), consumer.groupMetadata());
            producer.commitTransaction();
        }
    }

    private static ConsumerRecords<String, String> firstOf(KafkaConsumer<String, String> consumer) {
        long end = System.nanoTime() + TIMEOUT.toNanos();
        while (System.nanoTime() < end) {
            ConsumerRecords<String, String> read = consumer.poll(Duration.ofMillis(100));
            if (!read.isEmpty()) {
                return read;
            }
        }
        throw new IllegalStateException("no record within " + TIMEOUT);
    }

    private static String errorOfDeleting(Admin admin, String group) throws InterruptedException {
        try {
            admin.deleteConsumerGroups(Set.of(group)).all().get();
            return "none";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
    }
}
