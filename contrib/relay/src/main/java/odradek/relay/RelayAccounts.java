package odradek.relay;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts pushes and bounds those that wait.
 *
 * <p>A log that repeats with doubling distance says why pushes are dropped.
 */
final class RelayAccounts implements RelayMXBean {
    private static final Logger LOG = LoggerFactory.getLogger(RelayAccounts.class);

    private final long maxRecords;
    private final long maxBytes;
    private final Map<Reason, Long> dropped = new EnumMap<>(Reason.class);
    private long received;
    private long delivered;
    private long waiting;
    private long waitingBytes;
    private long problems;

    RelayAccounts(long maxRecords, long maxBytes) {
        this.maxRecords = maxRecords;
        this.maxBytes = maxBytes;
        for (Reason reason : Reason.values()) {
            dropped.put(reason, 0L);
        }
    }

    /** Count a push, and reserve memory for it. If there is none left, the push is counted as dropped. */
    boolean reserve(long bytes) {
        synchronized (this) {
            received++;
            if (waiting < maxRecords && waitingBytes + bytes <= maxBytes) {
                waiting++;
                waitingBytes += bytes;
                return true;
            }
        }
        drop(Reason.QUEUE_FULL, "the queue is full; see the attribute Problems and earlier lines of this log");
        return false;
    }

    /** Count a push that is dropped at once. */
    void refuse(Reason reason, String detail) {
        synchronized (this) {
            received++;
        }
        drop(reason, detail);
    }

    /** A waiting push was confirmed. */
    synchronized void deliver(long bytes) {
        delivered++;
        release(bytes);
    }

    /** A waiting push is given up. */
    void giveUp(long bytes, Reason reason, String detail) {
        synchronized (this) {
            release(bytes);
        }
        drop(reason, detail);
    }

    /** Count a problem of the connection, which loses nothing by itself. */
    void problem(String detail) {
        long count;
        synchronized (this) {
            count = ++problems;
        }
        if (isPowerOfTwo(count)) {
            LOG.warn("Cannot write client telemetry to the topic, trying again: {} (problem {})", detail, count);
        }
    }

    private void release(long bytes) {
        waiting--;
        waitingBytes -= bytes;
    }

    private void drop(Reason reason, String detail) {
        long count;
        synchronized (this) {
            count = dropped.merge(reason, 1L, Long::sum);
        }
        if (isPowerOfTwo(count)) {
            LOG.warn("Dropped {} pushes of clients so far because of {}: {}", count, reason.key, detail);
        }
    }

    private static boolean isPowerOfTwo(long count) {
        return Long.bitCount(count) == 1;
    }

    @Override
    public synchronized long getReceived() {
        return received;
    }

    @Override
    public synchronized long getDelivered() {
        return delivered;
    }

    @Override
    public synchronized Map<String, Long> getDropped() {
        Map<String, Long> named = new LinkedHashMap<>();
        dropped.forEach((reason, count) -> named.put(reason.key, count));
        return named;
    }

    @Override
    public synchronized long getWaiting() {
        return waiting;
    }

    @Override
    public synchronized long getWaitingBytes() {
        return waitingBytes;
    }

    @Override
    public synchronized long getProblems() {
        return problems;
    }

    @Override
    public synchronized String toString() {
        return "received=" + received + " delivered=" + delivered + " dropped=" + getDropped()
            + " waiting=" + waiting + " problems=" + problems;
    }
}
