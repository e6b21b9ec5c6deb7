package odradek;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/**
 * Runs main classes for a test in one JVM. A tool that runs for 0.1 s takes a second to start.
 *
 * <p>Each connection is one run. Runs take turns, because Kafka's tools keep counters in static fields. The
 * request is the standard input, the main class and its arguments; the response is the exit status, the standard
 * output and the standard error. A string is its length in four bytes and its UTF-8 bytes; arguments are preceded
 * by their count.
 *
 * <p>Prints the port to standard output, and ends when its own standard input does.
 */
public final class MainServer {
    private static final int BACKLOG = 50;

    private MainServer() {
    }

    public static void main(String[] args) throws IOException {
        InputStream lifeline = System.in;
        PrintStream out = System.out;
        PrintStream err = System.err;
        System.setIn(new RunInput());
        System.setOut(new PrintStream(new RunOutput(Run::out, out), true));
        System.setErr(new PrintStream(new RunOutput(Run::err, err), true));
        KafkaExit.endRunsOnly();
        try (ServerSocket server = new ServerSocket(0, BACKLOG, InetAddress.getLoopbackAddress())) {
            out.println(server.getLocalPort());
            Thread runs = new Thread(() -> answerAll(server, err), "runs");
            runs.setDaemon(true);
            runs.start();
            while (lifeline.read() != -1) {
                // only the end of the stream matters
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answerAll(ServerSocket server, PrintStream err) {
        while (!server.isClosed()) {
            try (Socket connection = server.accept()) {
                answer(connection);
            } catch (IOException error) {
                err.println("run failed: " + error);
            }
        }
    }

    private static void answer(Socket connection) throws IOException {
        DataInputStream request = new DataInputStream(connection.getInputStream());
        byte[] stdin = bytes(request);
        String mainClass = text(request);
        String[] args = new String[request.readInt()];
        for (int index = 0; index < args.length; index++) {
            args[index] = text(request);
        }
        Run run = new Run(stdin);
        int status = run.toTheEnd(mainClass, args);
        DataOutputStream response = new DataOutputStream(connection.getOutputStream());
        response.writeInt(status);
        write(response, run.out());
        write(response, run.err());
        response.flush();
    }

    private static byte[] bytes(DataInputStream request) throws IOException {
        return request.readNBytes(request.readInt());
    }

    private static String text(DataInputStream request) throws IOException {
        return new String(bytes(request), StandardCharsets.UTF_8);
    }

    private static void write(DataOutputStream response, Run.Captured stream) throws IOException {
        byte[] written = stream.toByteArray();
        response.writeInt(written.length);
        response.write(written);
    }

    /** The standard input of the run that the reading thread belongs to. */
    private static final class RunInput extends InputStream {
        @Override
        public int read() throws IOException {
            return Run.current().in().read();
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            return Run.current().in().read(into, offset, length);
        }
    }

    /** One of the output streams of the run that the writing thread belongs to; the server's own without a run. */
    private static final class RunOutput extends OutputStream {
        private final Function<Run, OutputStream> stream;
        private final OutputStream otherwise;

        RunOutput(Function<Run, OutputStream> stream, OutputStream otherwise) {
            this.stream = stream;
            this.otherwise = otherwise;
        }

        private OutputStream target() {
            Run run = Run.current();
            return run == null ? otherwise : stream.apply(run);
        }

        @Override
        public void write(int value) throws IOException {
            target().write(value);
        }

        @Override
        public void write(byte[] from, int offset, int length) throws IOException {
            target().write(from, offset, length);
        }

        @Override
        public void flush() throws IOException {
            target().flush();
        }
    }
}
