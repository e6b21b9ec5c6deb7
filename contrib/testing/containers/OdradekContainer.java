import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** A Kafka broker for tests. */
public final class OdradekContainer extends GenericContainer<OdradekContainer> {
    private final HttpClient http = HttpClient.newHttpClient();
    private final String token = UUID.randomUUID().toString();

    public OdradekContainer() {
        super(DockerImageName.parse("odradek-ephemeral"));
        withEnv("ODRADEK_CONTROL_TOKEN", token);
        withExposedPorts(9092, 9093);
        waitingFor(Wait.forLogMessage("odradek ready.*\\n", 1));
    }

    @Override
    protected void containerIsStarted(com.github.dockerjava.api.command.InspectContainerResponse info) {
        call("advertise", "{\"host\": \"" + getHost() + "\", \"port\": " + getMappedPort(9092) + "}");
    }

    public String bootstrap() {
        return getHost() + ":" + getMappedPort(9092);
    }

    /** Calls an operation of the control port and returns its result, as JSON. */
    public String call(String operation, String arguments) {
        URI uri = URI.create("http://" + getHost() + ":" + getMappedPort(9093) + "/" + operation);
        HttpRequest request = HttpRequest.newBuilder(uri).header("Authorization", "Bearer " + token)
            .POST(HttpRequest.BodyPublishers.ofString(arguments)).build();
        HttpResponse<String> response = http.sendAsync(request, HttpResponse.BodyHandlers.ofString()).join();
        if (response.statusCode() != 200) {
            throw new AssertionError(response.body());
        }
        return response.body();
    }
}
