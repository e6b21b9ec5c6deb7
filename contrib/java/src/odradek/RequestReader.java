package odradek;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * Reads requests as Kafka's broker does: a frame in hexadecimal digits on each line of the standard input.
 *
 * <p>For each it prints the client id and the body as Kafka writes them again, both in hexadecimal digits, or
 * {@code refused} and the reason: the broker then closes the connection. The body is {@code ?} if Kafka has read
 * it and cannot write it, such as unknown tags that are not in order.
 */
public final class RequestReader {
    private RequestReader() {
    }

    public static void main(String[] args) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(answer(HexFormat.of().parseHex(line))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(byte[] frame) {
        try {
            ByteBuffer buffer = ByteBuffer.wrap(frame);
            RequestHeader header = RequestHeader.parse(buffer);
            AbstractRequest request = AbstractRequest.parseRequest(
                header.apiKey(), header.apiVersion(), new ByteBufferAccessor(buffer)).request;
            byte[] clientId = header.clientId().getBytes(StandardCharsets.UTF_8);
            return HexFormat.of().formatHex(clientId) + " " + written(request, header.apiVersion());
        } catch (RuntimeException error) {
            return "refused " + String.valueOf(error).replace('\n', ' ');
        }
    }

    private static String written(AbstractRequest request, short version) {
        try {
            ByteBuffer body = MessageUtil.toByteBufferAccessor(request.data(), version).buffer();
            return HexFormat.of().formatHex(body.array(), body.arrayOffset(), body.limit());
        } catch (RuntimeException error) {
            return "?";
        }
    }
}
