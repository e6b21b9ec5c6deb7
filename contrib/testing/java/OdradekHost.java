import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;

/** A Kafka broker for tests. */
public final class OdradekHost implements AutoCloseable {
    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String control;
    public final String bootstrap;

    public OdradekHost(String... options) throws IOException {
        List<String> command = new ArrayList<>(List.of("odradek", "serve", "--ephemeral"));
        command.addAll(List.of(options));
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = process.inputReader().readLine();
        if (ready == null) {
            throw new IOException("odradek has not started; its log on stderr says why");
        }
        bootstrap = ready.replaceAll(".*listeners=PLAINTEXT://([^ ,]+).*", "$1");
        control = ready.replaceAll(".*control=([^ ]+).*", "$1");
    }

    /** Calls an operation of the control port and returns its result, as JSON. */
    public String call(String operation, String arguments) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + "/" + operation))
            .POST(HttpRequest.BodyPublishers.ofString(arguments)).build();
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new AssertionError(response.body());
        }
        return response.body();
    }

    @Override
    public void close() {
        process.destroy();
    }
}
