package odradek.relay;

import java.lang.management.ManagementFactory;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes pushes from a broker's request threads. No method throws or waits.
 *
 * <p>If the configuration is invalid, the relay says so in the broker's log, and drops and counts every push.
 */
final class Relay {
    private static final Logger LOG = LoggerFactory.getLogger(Relay.class);
    private static final String OTLP = "OTLP";
    static final int NOT_KNOWN = 0;

    private final RelayAccounts accounts;
    private final int nodeId;
    /** Null if the configuration is invalid. */
    private final RecordSender sender;
    /** For brokers that do not tell it. */
    private final int usualIntervalMs;
    private volatile PushRecord.Origin origin;
    private ObjectName bean;

    Relay(Map<String, ?> broker) {
        nodeId = RelayConfig.nodeId(broker);
        origin = new PushRecord.Origin(nodeId, null);
        RelayConfig config = null;
        try {
            config = new RelayConfig(broker);
        } catch (RuntimeException | LinkageError invalid) {
            LOG.error("The relay of client telemetry is not configured correctly, and drops all pushes of clients. "
                + "Correct the keys {}* and restart the broker: {}", RelayConfig.PREFIX, invalid.toString());
        }
        accounts = config == null ? new RelayAccounts(0, 0) : new RelayAccounts(config.maxRecords, config.maxBytes);
        sender = config == null ? null : new RecordSender(config, accounts);
        usualIntervalMs = config == null ? NOT_KNOWN : config.pushIntervalMs;
        if (config != null) {
            LOG.info("The relay writes client telemetry to the topic {} at {}",
                config.topic, config.producer.get("bootstrap.servers"));
        }
    }

    /** The broker now knows the cluster that it belongs to. */
    void cluster(String clusterId) {
        origin = new PushRecord.Origin(nodeId, clusterId);
    }

    /** Show the metrics over JMX. Only a broker does: the controller of the same process has a relay that does nothing. */
    void show() {
        try {
            ObjectName name = new ObjectName("odradek.relay:type=Relay,node=" + nodeId);
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            if (server.isRegistered(name)) {
                server.unregisterMBean(name);
            }
            server.registerMBean(accounts, name);
            bean = name;
        } catch (JMException | RuntimeException | LinkageError invisible) {
            LOG.warn("The relay's metrics cannot be seen over JMX: {}", invisible.toString());
        }
    }

    /**
     * Take one push.
     *
     * @param pushIntervalMs {@link #NOT_KNOWN} if the broker does not tell it
     */
    void take(AuthorizableRequestContext context, ClientTelemetryPayload payload, int pushIntervalMs) {
        long reserved = 0;
        try {
            if (sender == null) {
                accounts.refuse(Reason.NOT_CONFIGURED, "the configuration is invalid; see the broker's first log lines");
                return;
            }
            if (!OTLP.equals(payload.contentType())) {
                accounts.refuse(Reason.CONTENT_TYPE, String.valueOf(payload.contentType()));
                return;
            }
            long bytes = PushRecord.size(payload);
            if (!accounts.reserve(bytes)) {
                return;
            }
            reserved = bytes;
            int intervalMs = pushIntervalMs == NOT_KNOWN ? usualIntervalMs : pushIntervalMs;
            PushRecord record = new PushRecord(origin, context, payload, intervalMs, System.currentTimeMillis());
            reserved = 0;
            sender.enqueue(record);
        } catch (Throwable unexpected) {
            // a client would be told that its metrics are invalid, and would stop pushing
            if (reserved > 0) {
                accounts.giveUp(reserved, Reason.FAILED, unexpected.toString());
            } else {
                accounts.refuse(Reason.FAILED, unexpected.toString());
            }
        }
    }

    void close() {
        try {
            if (sender != null) {
                sender.close();
            }
            if (bean != null) {
                LOG.info("The relay of client telemetry is closed: {}", accounts);
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(bean);
            }
        } catch (JMException | RuntimeException | LinkageError late) {
            LOG.warn("The relay of client telemetry was not closed properly: {}", late.toString());
        }
    }
}
