package odradek.relay;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends records on a thread of its own.
 *
 * <p>The thread starts, and connects, with the first record: while a broker starts, its cluster cannot answer.
 * A record waits at the head of the queue until the topic is found. From then on the producer has it, which
 * repeats it as long as {@code delivery.timeout.ms} allows.
 */
final class RecordSender {
    private static final Logger LOG = LoggerFactory.getLogger(RecordSender.class);
    private static final long FIRST_WAIT_MS = 250;
    private static final long LONGEST_WAIT_MS = 2_000;
    /** A broker that stops does not wait longer for the relay. */
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(2);

    private static final String UNDELIVERED = "the broker stops, and the topic cannot be written";

    private final RelayConfig config;
    private final RelayAccounts accounts;
    private final BlockingQueue<PushRecord> queue = new LinkedBlockingQueue<>();
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;
    private final Function<Map<String, Object>, Producer<byte[], byte[]>> newProducer;
    private boolean started;
    /** Used by the thread alone. */
    private Producer<byte[], byte[]> producer;
    /** The cluster refused a record: some refusals leave a producer that fails forever. */
    private volatile boolean isSuspect;

    RecordSender(RelayConfig config, RelayAccounts accounts) {
        this(config, accounts, KafkaProducer::new);
    }

    RecordSender(
        RelayConfig config, RelayAccounts accounts, Function<Map<String, Object>, Producer<byte[], byte[]>> newProducer
    ) {
        this.config = config;
        this.accounts = accounts;
        this.newProducer = newProducer;
        thread = new Thread(this::run, "odradek-relay");
        thread.setDaemon(true);
        // the producer looks for its classes here
        thread.setContextClassLoader(RecordSender.class.getClassLoader());
    }

    /** Queue a record, for which the accounts have reserved memory. Never waits. */
    synchronized void enqueue(PushRecord record) {
        if (isClosing()) {
            accounts.giveUp(record.bytes, Reason.CLOSED, "the relay is closed");
            return;
        }
        queue.add(record);
        if (!started) {
            started = true;
            thread.start();
        }
    }

    /** Deliver what waits if that takes no longer than two seconds, and drop the rest. */
    void close() {
        synchronized (this) {
            closing.countDown();
            if (!started) {
                return;
            }
        }
        try {
            thread.join(CLOSE_TIMEOUT.toMillis());
            thread.interrupt();
            thread.join(CLOSE_TIMEOUT.toMillis());
        } catch (InterruptedException interrupted) {
            thread.interrupt();
            Thread.currentThread().interrupt();
        }
    }

    private boolean isClosing() {
        return closing.getCount() == 0;
    }

    private void run() {
        try {
            while (!isClosing() || !queue.isEmpty()) {
                PushRecord record = queue.poll(200, TimeUnit.MILLISECONDS);
                if (record != null) {
                    send(record);
                }
            }
        } catch (InterruptedException | InterruptException interrupted) {
            LOG.debug("Interrupted by the end of the broker");
        } finally {
            // a producer whose thread is interrupted does not wait, but throws
            Thread.interrupted();
            end();
        }
    }

    private void end() {
        closeProducer(CLOSE_TIMEOUT);
        for (PushRecord record = queue.poll(); record != null; record = queue.poll()) {
            accounts.giveUp(record.bytes, Reason.CLOSED, UNDELIVERED);
        }
    }

    /** Give a record to the producer; wait until there is a producer and a topic. */
    private void send(PushRecord record) throws InterruptedException {
        long waitMs = FIRST_WAIT_MS;
        boolean isGiven = false;
        try {
            if (isSuspect) {
                closing.await(FIRST_WAIT_MS, TimeUnit.MILLISECONDS);
                closeProducer(CLOSE_TIMEOUT);
                isSuspect = false;
            }
            Integer partitions = partitions();
            while (partitions == null && !closing.await(waitMs, TimeUnit.MILLISECONDS)) {
                waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
                partitions = partitions();
            }
            if (partitions != null) {
                isGiven = true;
                sendTo(record, partitions);
            }
        } finally {
            if (!isGiven) {
                accounts.giveUp(record.bytes, Reason.CLOSED, UNDELIVERED);
            }
        }
    }

    /** The number of partitions of the topic; null if the topic cannot be found now. */
    private Integer partitions() {
        try {
            if (producer == null) {
                producer = newProducer.apply(config.producer);
            }
            return producer.partitionsFor(config.topic).size();
        } catch (InterruptException interrupted) {
            throw interrupted;
        } catch (ApiException unavailable) {
            accounts.problem(config.topic + ": " + unavailable.getMessage());
        } catch (RuntimeException | LinkageError broken) {
            accounts.problem(described(broken));
            closeProducer(Duration.ZERO);
        }
        return null;
    }

    private void sendTo(PushRecord record, int partitions) {
        Settlement settlement = new Settlement(record.bytes);
        try {
            producer.send(record.toTopic(config.topic, partitions), (stored, error) -> settlement.settle(error));
        } catch (InterruptException interrupted) {
            settlement.settle(interrupted);
            throw interrupted;
        } catch (RuntimeException broken) {
            isSuspect = true;
            settlement.settle(broken);
        }
    }

    private void closeProducer(Duration timeout) {
        if (producer == null) {
            return;
        }
        try {
            producer.close(timeout);
        } catch (KafkaException late) {
            LOG.debug("The producer did not close", late);
        }
        producer = null;
    }

    private static String described(Throwable error) {
        Throwable cause = error.getCause();
        return cause == null || cause == error ? error.toString() : error + ": " + cause;
    }

    /** Settles one record once: a producer that throws may have called back before. */
    private final class Settlement {
        private final long bytes;
        private boolean settled;

        Settlement(long bytes) {
            this.bytes = bytes;
        }

        synchronized void settle(Exception error) {
            if (settled) {
                return;
            }
            settled = true;
            if (error == null) {
                accounts.deliver(bytes);
            } else if (error instanceof RecordTooLargeException) {
                accounts.giveUp(bytes, Reason.TOO_LARGE, described(error));
            } else {
                if (!(error instanceof TimeoutException)) {
                    isSuspect = true;
                }
                accounts.giveUp(bytes, isClosing() ? Reason.CLOSED : Reason.DELIVERY, described(error));
            }
        }
    }
}
