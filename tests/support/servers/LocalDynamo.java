import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBRequestHandler;
import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBServerHandler;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * DynamoDB Local in memory, reachable from this host alone: its own launcher listens on every
 * interface. Prints "port N" when it is up, and ends when its standard input does.
 */
public final class LocalDynamo {
  private LocalDynamo() {}

  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // what the server logs must not fill the pipe that nobody reads
    LocalDynamoDBRequestHandler tables =
        new LocalDynamoDBRequestHandler(0, true, null, true, false);
    Server server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    server.setHandler(new LocalDynamoDBServerHandler(tables, null));
    server.start();
    answers.println("port " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    answers.flush();
    while (System.in.read() >= 0) {
      continue;
    }
    server.stop();
    tables.shutdown();
    System.exit(0);
  }
}
